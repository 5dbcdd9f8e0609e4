//go:build linux

package machine

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// builtVariable names the folder, inside, in which build has put what a cluster is made
// of: inside there is no way out, to fetch a module by.
const builtVariable = "WINDLASS_TEST_BUILT"

// insideCluster is inside for a test that needs a whole cluster.
func insideCluster(t *testing.T) bool {
	t.Helper()
	if Inside() {
		return true
	}
	needMachines(t)
	build(t)
	return inside(t)
}

func build(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane and machines")
	}
	dir, end, err := temporaryFolder() // not the test's: a kill would leave it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	supervisor := filepath.Join(dir, "controlplane")
	for _, command := range [][]string{
		{"go", "build", "-C", "../controlplane", "-o", supervisor, "."},
		{"go", "build", "-o", filepath.Join(dir, "boot"), "./boot"},
		{supervisor, "build"},
		{supervisor, "build", kubeletName, kubeProxyName},
		{"make", "-s", "-C", "../..", "e2e-images", "IMAGES=" + dir, "BINARIES=bin/linux/machine"},
	} {
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, said)
		}
	}
	t.Setenv(builtVariable, dir)
}

// built is the path of something that build has made.
func built(name string) string { return filepath.Join(os.Getenv(builtVariable), name) }

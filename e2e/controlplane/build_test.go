package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestKubernetesVersion: the version that the programs are told is the one that
// they are built from.
func TestKubernetesVersion(t *testing.T) {
	if want := "k8s.io/kubernetes " + kubernetesVersion + "\n"; !strings.Contains(string(goMod), want) {
		t.Errorf("go.mod does not require %s", want)
	}
}

// TestPinned: every program's package that no source here imports is held in go.mod by a tool line.
func TestPinned(t *testing.T) {
	for name, pkg := range packages {
		if name != plane && !strings.Contains(string(goMod), "\n\t"+pkg+"\n") {
			t.Errorf("go.mod has no tool line for %s (%s)", name, pkg)
		}
	}
}

// TestBuildIsCached: what is there is not built again, and the place depends on
// the flags.
func TestBuildIsCached(t *testing.T) {
	t.Setenv("WINDLASS_CACHE", t.TempDir())
	b, err := newBuilder(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, plane), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "") // no go command: a build would fail
	if err := b.build(t.Context(), []string{plane}); err != nil {
		t.Errorf("building what is there: %v", err)
	}
	if err := b.build(t.Context(), []string{"kubectl"}); err == nil {
		t.Error("building what is not there without a go command was no error")
	}
	if err := b.build(t.Context(), []string{"nonsense"}); err == nil {
		t.Error("building an unknown program was no error")
	}
	key := b.key("go1")
	if b.flags = append(b.flags, "-race"); b.key("go1") == key {
		t.Error("the key does not depend on the flags")
	}
}

func TestLastLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte(strings.Repeat("filler\n", 10000)+"a\nb\nc\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := lastLines(file, 2); got != "b\nc" {
		t.Errorf("lastLines = %q", got)
	}
}

// TestSharedVersions: what the programs share with ours has one version, so that the demo compiles
// it once: all of Kubernetes' libraries stand upon it.
func TestSharedVersions(t *testing.T) {
	ours, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	required := regexp.MustCompile(`(?m)^(?:require )?\s*(\S+\.\S+/\S+) (v\S+)(?: // indirect)?$`)
	versions := map[string]string{}
	for _, r := range required.FindAllSubmatch(ours, -1) {
		versions[string(r[1])] = string(r[2])
	}
	shared := 0
	for _, r := range required.FindAllSubmatch(goMod, -1) {
		module, version := string(r[1]), string(r[2])
		if want, is := versions[module]; is && !strings.HasPrefix(module, "k8s.io/") {
			if shared++; version != want {
				t.Errorf("%s is %s here and %s for our programs", module, version, want)
			}
		}
	}
	if shared < 50 {
		t.Errorf("%d modules are shared: go.mod is not read well", shared)
	}
}

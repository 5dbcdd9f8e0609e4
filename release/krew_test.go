package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// krewManifest is what krew reads of one.
type krewManifest struct {
	Spec struct {
		Version   string
		Platforms []struct {
			Selector struct{ MatchLabels map[string]string }
			URI      string
			SHA256   string
			Files    []struct{ From, To string }
		}
	}
}

// TestKrew: the manifest of a release has the hash of each archive that it names.
func TestKrew(t *testing.T) {
	dir := t.TempDir()
	k := krew{manifest: "../cli/windlass.yaml", checksums: filepath.Join(dir, "checksums.txt"), downloads: "https://example.com/download/", out: filepath.Join(dir, "windlass.yaml")}
	var sums strings.Builder
	hash := func(file string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(file))) }
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			format := "tar.gz"
			if system == "windows" {
				format = "zip"
			}
			file := "kubectl-windlass_v1.2.3_" + system + "_" + arch + "." + format
			fmt.Fprintf(&sums, "%s  %s\n", hash(file), file)
		}
	}
	if err := os.WriteFile(k.checksums, []byte(sums.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := k.write("v1.2.3"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(k.out)
	if err != nil {
		t.Fatal(err)
	}
	var m krewManifest
	if err := yaml.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	if m.Spec.Version != "v1.2.3" || len(m.Spec.Platforms) != 6 {
		t.Errorf("version %s, %d platforms", m.Spec.Version, len(m.Spec.Platforms))
	}
	for _, p := range m.Spec.Platforms {
		file := strings.TrimPrefix(p.URI, "https://example.com/download/v1.2.3/")
		if p.SHA256 != hash(file) || !strings.Contains(sums.String(), "  "+file+"\n") {
			t.Errorf("%s has hash %s", p.URI, p.SHA256)
		}
	}
	if err := k.write("v1.2.4"); err == nil || !strings.Contains(err.Error(), "has no SHA-256 of kubectl-windlass_v1.2.4_linux_amd64.tar.gz") {
		t.Errorf("error %v", err)
	}
}

// TestReleaseTag: no release is made of which the plugin's manifest has another version.
func TestReleaseTag(t *testing.T) {
	out, err := exec.Command("make", "-C", "..", "--no-print-directory", "release-tag", "VERSION=v9.9.9").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "cli/windlass.yaml:") || !strings.Contains(string(out), "manifests/kustomization.yaml:") {
		t.Errorf("error %v:\n%s", err, out)
	}
	version, err := exec.Command("sed", "-n", `s/^ *newTag: *//p`, "../manifests/kustomization.yaml").Output()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("make", "-C", "..", "release-tag", "VERSION="+strings.Fields(string(version))[0]).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

//go:build linux

package machine

import (
	"slices"
	"strings"
	"testing"
)

// What people are told to install is what `make` installs.
func TestPackages(t *testing.T) {
	var named []string
	for _, p := range programs {
		named = append(named, p.pkg)
	}
	listed := Packages()
	slices.Sort(named)
	slices.Sort(listed)
	if !slices.Equal(named, listed) {
		t.Errorf("packages.txt lists %q, and the programs are of %q", listed, named)
	}
}

// A host without the programs is told so, one by one, and nothing is tried with them.
func TestMissingPrograms(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	got := missingPrograms()
	for _, p := range programs {
		for _, name := range p.names {
			if strings.HasPrefix(name, "/") {
				continue // It is not looked for in PATH.
			}
			if line := name + ": install Debian's package " + p.pkg; !slices.Contains(got, line) {
				t.Errorf("%q is not said in %q", line, got)
			}
		}
	}
	if got := append(missingTables(), missingOverlay()...); len(got) > 0 {
		t.Errorf("tried without the programs: %q", got)
	}
}

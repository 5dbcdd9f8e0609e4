package windlass

import (
	"os"
	"regexp"
	"testing"
)

// All modules name one Go release: what is shipped, and what it is tested with, come of the
// same compiler.
func TestToolchain(t *testing.T) {
	named := regexp.MustCompile(`(?m)^go (\S+)\n\ntoolchain (go\S+)$`)
	var first [][]byte
	for _, path := range []string{"go.mod", "e2e/controlplane/go.mod", "e2e/helm/go.mod"} {
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := named.FindSubmatch(body)
		switch {
		case found == nil:
			t.Errorf("%s names no toolchain", path)
		case first == nil:
			first = found
		case string(found[0]) != string(first[0]):
			t.Errorf("%s has %q, and go.mod %q", path, found[0], first[0])
		}
	}
}

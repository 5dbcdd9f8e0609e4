package windlass

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
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

// Whatever builds the scaler leaves out the pages of traces of grpc, whose templates link every
// method of every type: it would be twice as large.
func TestNoTraces(t *testing.T) {
	for _, path := range []string{"Makefile", ".goreleaser.yaml", "e2e/world/build.go"} {
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(body)) {
			if strings.Contains(line, "-trimpath") && !strings.Contains(line, "-tags=grpcnotrace") {
				t.Errorf("%s builds with traces: %s", path, line)
			}
		}
	}
	out, err := exec.Command("go", "list", "-deps", "-tags=grpcnotrace", "./scaler").Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), "golang.org/x/net/trace\n") {
		t.Error("the tag does not leave them out")
	}
}

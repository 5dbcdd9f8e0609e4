package fleet

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// Of each part of the state it is said who writes it, when it goes, and what it costs to lose
// it: so it can be told what a state that was shed, or was not written, does to a cluster.
func TestStateSaysWhatItsPartsAreFor(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "fleet.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	fields := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.TypeSpec)
		if !is || spec.Name.Name != "State" {
			return true
		}
		for _, field := range spec.Type.(*ast.StructType).Fields.List {
			fields++
			for _, label := range []string{"Writer: ", "Dropped: ", "Lost: "} {
				if !strings.Contains(field.Doc.Text(), label) {
					t.Errorf("nothing is said of %s after %q", field.Names[0], label)
				}
			}
		}
		return false
	})
	if fields != len(StateParts()) {
		t.Errorf("found %d of %d parts", fields, len(StateParts()))
	}
}

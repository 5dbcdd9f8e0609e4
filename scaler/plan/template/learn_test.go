package template

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
)

// likeWithFeatures are nodes n0, n1, … with these features.
func likeWithFeatures(features ...[]string) []*cluster.Node {
	var list []*cluster.Node
	for i, f := range features {
		list = append(list, &cluster.Node{Row: &cluster.Row{Node: &fleet.Node{Name: fmt.Sprintf("n%d", i), DeclaredFeatures: f}}})
	}
	return list
}

// A new node declares what one of its kind declares.
func TestDeclaredFeatures(t *testing.T) {
	for _, c := range []struct {
		reason   string
		features [][]string
		want     []string
	}{
		{"one node", [][]string{{"a", "b"}}, []string{"a", "b"}},
		{"the same", [][]string{{"a", "b"}, {"b", "a"}}, []string{"a", "b"}},
		{"one knows less", [][]string{{"a", "b"}, {"b"}}, []string{"a", "b"}},
		{"one is of an older version", [][]string{{"a"}, nil}, []string{"a"}},
	} {
		if diff := cmp.Diff(c.want, declaredFeatures(likeWithFeatures(c.features...))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, diff)
		}
	}
}

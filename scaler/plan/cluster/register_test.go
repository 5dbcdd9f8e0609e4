package cluster

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/fleet"
)

// However pods come, go and change rows, every roll is as if it were written anew.
func TestRegister(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var register Register
		var pods []*fleet.Pod
		for look := range 5 {
			pods = slices.DeleteFunc(slices.Clone(pods), func(*fleet.Pod) bool { return rapid.Bool().Draw(t, "gone") })
			for i := range rapid.IntRange(0, 6).Draw(t, "new") {
				pods = append(pods, &fleet.Pod{
					Namespace: rapid.SampledFrom([]string{"a", "a-b", "kube-system"}).Draw(t, "namespace"), Name: fmt.Sprintf("p%d", rapid.IntRange(0, 3).Draw(t, "name")),
					UID: types.UID(fmt.Sprint(look, i)), Node: rapid.SampledFrom([]string{"", "n", "m"}).Draw(t, "node"),
				})
			}
			if rapid.Bool().Draw(t, "list") {
				pods = rapid.Permutation(pods).Draw(t, "rows")
			}
			register.update(pods)
			var anew Register
			anew.update(pods)
			for i, roll := range anew.lists() {
				if got := register.lists()[i].Roll; !reflect.DeepEqual(got.Pods, roll.Pods) && len(roll.Pods) > 0 || !slices.Equal(got.Rows, roll.Rows) {
					t.Fatalf("look %d: list %d is %v, want %v", look, i, got, roll.Roll)
				}
			}
			for _, node := range []string{"n", "m"} {
				want := slices.SortedFunc(slices.Values(pods), byName)
				want = slices.DeleteFunc(want, func(p *fleet.Pod) bool { return p.Node != node })
				roll := register.households[register.homeOf(node)].Roll
				if !slices.Equal(roll.Pods, want) {
					t.Fatalf("look %d: other pods at %s", look, node)
				}
				for i, row := range roll.Rows {
					if pods[row] != roll.Pods[i] {
						t.Fatalf("look %d: %s is not in row %d", look, roll.Pods[i].Key(), row)
					}
				}
			}
		}
	})
}

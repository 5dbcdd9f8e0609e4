package cluster

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/fleet"
)

// However pods come and go, their order is that of sorting them anew.
func TestPodOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var order PodOrder
		var pods []*fleet.Pod
		for look := range 5 {
			pods = slices.DeleteFunc(pods, func(*fleet.Pod) bool { return rapid.Bool().Draw(t, "gone") })
			for i := range rapid.IntRange(0, 6).Draw(t, "new") {
				name := fmt.Sprintf("p%d", rapid.IntRange(0, 3).Draw(t, "name"))
				pods = append(pods, &fleet.Pod{Namespace: "a", Name: name, UID: types.UID(fmt.Sprint(look, i))})
			}
			pods = rapid.Permutation(pods).Draw(t, "order")
			want := slices.SortedFunc(slices.Values(pods), byName)
			if got := order.of(pods); !slices.Equal(got, want) {
				t.Fatalf("look %d: another order than sorting gives", look)
			}
		}
	})
}

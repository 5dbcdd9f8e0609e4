package observe

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// TestIndex: whatever comes and goes, each key is found in its row, and none that is not there.
func TestIndex(t *testing.T) {
	var all []types.NamespacedName
	for i := range 40 {
		all = append(all, types.NamespacedName{Namespace: fmt.Sprint(i % 3), Name: fmt.Sprint(i / 3)})
	}
	rapid.Check(t, func(t *rapid.T) {
		var rows index
		var list []types.NamespacedName
		keyAt := func(row int) types.NamespacedName { return list[row] }
		for range rapid.IntRange(1, 200).Draw(t, "events") {
			key := rapid.SampledFrom(all).Draw(t, "key")
			if at, known := rows.find(key, keyAt); known {
				last := len(list) - 1
				rows.remove(at, keyAt)
				rows.move(last, at, keyAt)
				list[at] = list[last]
				list = list[:last]
			} else {
				list = append(list, key)
				rows = rows.with(len(list)-1, keyAt)
			}
			for _, key := range all {
				at, known := rows.find(key, keyAt)
				if want := slices.Index(list, key); known != (want >= 0) || known && at != want {
					t.Fatalf("%s: row %d, %t, want %d", key, at, known, want)
				}
			}
			if taken := len(rows) - len(slices.DeleteFunc(slices.Clone(rows), func(slot int32) bool { return slot == 0 })); len(rows)-taken != len(list) {
				t.Fatalf("%d slots are taken for %d rows", len(rows)-taken, len(list))
			}
		}
	})
}

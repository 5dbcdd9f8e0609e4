package observe

import (
	"hash/maphash"

	"k8s.io/apimachinery/pkg/types"
)

// index finds rows of a list by their keys: a hash table with open addressing, which holds where a row
// is. The key stands in the row: a map would hold it once more, which is a sixth of what a pod takes.
// keyAt is the key of a row.
type index []int32 // a row and one; 0 where there is none

var indexSeed = maphash.MakeSeed()

// slot is where the search for a key begins.
func (x index) slot(key types.NamespacedName) int {
	return int(maphash.Comparable(indexSeed, key) & uint64(len(x)-1))
}

func (x index) next(slot int) int { return (slot + 1) & (len(x) - 1) }

// find returns the row of a key.
func (x index) find(key types.NamespacedName, keyAt func(row int) types.NamespacedName) (row int, known bool) {
	if len(x) == 0 {
		return 0, false
	}
	for slot := x.slot(key); x[slot] != 0; slot = x.next(slot) {
		if row := int(x[slot]) - 1; keyAt(row) == key {
			return row, true
		}
	}
	return 0, false
}

// with has a row that comes after all others, and whose key none of them has. At least a quarter of
// the slots stays free.
func (x index) with(row int, keyAt func(row int) types.NamespacedName) index {
	if 4*(row+1) <= 3*len(x) {
		x.add(row, keyAt)
		return x
	}
	larger := make(index, max(8, 2*len(x)))
	for i := range row + 1 {
		larger.add(i, keyAt)
	}
	return larger
}

func (x index) add(row int, keyAt func(row int) types.NamespacedName) {
	slot := x.slot(keyAt(row))
	for x[slot] != 0 {
		slot = x.next(slot)
	}
	x[slot] = int32(row) + 1
}

// slotOf is where a row that is there stands.
func (x index) slotOf(row int, keyAt func(row int) types.NamespacedName) int {
	slot := x.slot(keyAt(row))
	for x[slot] != int32(row)+1 {
		slot = x.next(slot)
	}
	return slot
}

// remove takes a row out, and moves those that stand behind it to where a search that ends at the
// first free slot finds them.
func (x index) remove(row int, keyAt func(row int) types.NamespacedName) {
	free := x.slotOf(row, keyAt)
	for slot := x.next(free); x[slot] != 0; slot = x.next(slot) {
		begin := x.slot(keyAt(int(x[slot]) - 1))
		// It may go there unless that is before its search begins.
		if (slot-begin)&(len(x)-1) >= (slot-free)&(len(x)-1) {
			x[free], free = x[slot], slot
		}
	}
	x[free] = 0
}

// move renames a row, unless it has been removed. Its key stays at the former place until then.
func (x index) move(from, to int, keyAt func(row int) types.NamespacedName) {
	if from != to {
		x[x.slotOf(from, keyAt)] = int32(to) + 1
	}
}

package scaledown

import "windlass.dev/windlass/scaler/fit"

// What headroom loses at most to pods that may land on any node with such room.

// stake is the room that a node has for pods of a headroom.
type stake struct {
	slots int
	// brim is how much of what one pod asks for is not free beside these slots, in
	// thousandths: pods that take more than the rest of it cost a slot more than they take
	// room of.
	brim int64
	// grade is how much of a slot at most each pod costs, by its number; see grades.
	grade int
}

// grades are parts of a slot, in thousandths. A node that is full by the number of its
// pods loses its slots to as many as it has of these and beside: each costs one slot's
// share of that number.
var grades = [...]int64{16, 32, 63, 125, 250, 500, 1000}

func newStake(s fit.Slots) stake {
	h := stake{slots: s.N, brim: 1000 - s.Over}
	for h.grade < len(grades)-1 && int64(h.slots)*1000 > grades[h.grade]*int64(h.slots+s.Beside) {
		h.grade++
	}
	return h
}

// free is the room of several nodes together.
type free struct {
	room int
	brim int64
	// graded are the slots by the grades of their nodes.
	graded [len(grades)]int
}

// with counts one more node, or by -1 one less.
func (f free) with(h stake, sign int) free {
	if h.slots == 0 {
		return f
	}
	f.room, f.brim = f.room+sign*h.slots, f.brim+int64(sign)*h.brim
	f.graded[h.grade] += sign * h.slots
	return f
}

// adrift is pods without a place of their own, measured in those of a headroom.
type adrift struct {
	// count is how many they are, and takers those of them that take any room.
	count, takers int
	// share is what they take room of, in thousandths, and whole the same in pods, each
	// of them rounded up and at least one. Graded is the share where each pod costs a
	// grade at least.
	share, whole int64
	graded       [len(grades)]int64
}

// oneAdrift is one pod that takes that share.
func oneAdrift(share int64) adrift {
	a := adrift{count: 1, share: share, whole: max(1, (share+999)/1000)}
	if share > 0 {
		a.takers = 1
	}
	for i, least := range grades {
		a.graded[i] = max(share, least)
	}
	return a
}

func (a adrift) with(b adrift) adrift {
	sum := adrift{count: a.count + b.count, takers: a.takers + b.takers, share: a.share + b.share, whole: a.whole + b.whole}
	for i := range grades {
		sum.graded[i] = a.graded[i] + b.graded[i]
	}
	return sum
}

func (a adrift) times(n int) adrift {
	product := adrift{count: a.count * n, takers: a.takers * n, share: a.share * int64(n), whole: a.whole * int64(n)}
	for i := range grades {
		product.graded[i] = a.graded[i] * int64(n)
	}
	return product
}

// cost is how many pods of a headroom lose their room at most, wherever these land on
// nodes with such room. By what they take, a node loses that, and its brim; by their
// number, as much as its grade says for each, and never more than all it has. So nodes of
// the higher grades are given up as a whole where that costs less.
func (a adrift) cost(on free) int {
	least, givenUp := min(a.whole, 1<<30), 0
	brim := min(on.brim, int64(a.takers)*1000)
	for i := len(grades) - 1; i >= 0; i-- {
		least = min(least, int64(givenUp)+(a.graded[i]+brim)/1000)
		givenUp += on.graded[i]
	}
	return int(min(least, int64(givenUp)))
}

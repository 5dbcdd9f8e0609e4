package happening

import (
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
)

const (
	// mostHappenings is how many are kept. When there are more, those go first that have ended,
	// the oldest of them first, and then the newest: what people were told of stays, or it would
	// begin anew while it lasts.
	mostHappenings = 1500
	// mostMembers is how many nodes one scale-down has, before another begins.
	mostMembers = 500
	// mostFaults is how many faults of one page are looked at.
	mostFaults = 50
	// unsent is how long what has ended waits for a service that does not take it.
	unsent = 24 * time.Hour
	// mostName is the most bytes of a name: one of Kubernetes has 253, a pod's with its namespace
	// twice as many. mostID is that of an id.
	mostName, mostID = 512, 512
)

func name(text string) string { return contract.Shorten(text, mostName) }

// few are as many names of a list as are kept.
func few(names []string) []string {
	var list []string
	for _, n := range names[:min(len(names), mostNames)] {
		list = append(list, name(n))
	}
	return list
}

// unknown stands for every kind of notice that Windlass does not know: others are free to write
// any.
const unknown contract.Kind = "unknown"

func known(kind contract.Kind) contract.Kind {
	if k, err := contract.ParseKind(string(kind)); err == nil {
		return k
	}
	return unknown
}

// bound sheds what there is no room for, and counts it.
func (f *fold) bound() {
	standing := f.world.standing()
	f.shed(func(h *Happening) bool {
		return h.Over() && f.world.Now.After(h.Ended.Add(unsent)) && !h.stands(standing)
	}, len(f.Happenings))
	f.shed((*Happening).Over, len(f.Happenings)-mostHappenings)
	f.shedNewest(len(f.Happenings) - mostHappenings)
}

// room reports whether something that lasts may begin: what finds none stands where it is seen,
// and begins when there is.
func (f *fold) room() bool {
	lasting := 0
	for i := range f.Happenings {
		if !f.Happenings[i].Over() {
			lasting++
		}
	}
	return lasting < mostHappenings
}

func (f *fold) shedNewest(n int) {
	if n > 0 {
		f.Happenings = f.Happenings[:len(f.Happenings)-n]
		f.Totals.Shed += n
	}
}

// shed drops so many at the most, the oldest first.
func (f *fold) shed(may func(*Happening) bool, n int) {
	f.Happenings = slices.DeleteFunc(f.Happenings, func(h Happening) bool {
		if n <= 0 || !may(&h) {
			return false
		}
		n--
		f.Totals.Shed++
		return true
	})
}

// Settled reports whether nothing can come any more that is of it: Events of it that are late
// are not new ones.
func (h *Happening) Settled(now time.Time) bool {
	return h.Over() && !now.Before(h.Ended.Add(margin+vanishes))
}

// Without drops what may be forgotten: what is settled, and what all were told of that are to
// be. What a Node shows still is kept.
func (s State) Without(told func(*Happening) bool, w World) State {
	standing := w.standing()
	s.Happenings = slices.DeleteFunc(slices.Clone(s.Happenings), func(h Happening) bool {
		return h.Settled(w.Now) && !h.stands(standing) && (h.Hidden || told(&h))
	})
	return s
}

// Shed is the state without so many happenings: those that all were told of go first, then
// others that have ended, the oldest of them first, then the newest. Without any it forgets which Events it took
// in one by one. It reports false where there is nothing to forget.
func (s State) Shed(n int, told func(id string) bool) (State, bool) {
	if len(s.Happenings) == 0 {
		some := len(s.Cursors) > 0
		s.Cursors = nil
		return s, some
	}
	f := &fold{State: s.clone()}
	left := len(f.Happenings) - n
	for _, may := range []func(*Happening) bool{
		func(h *Happening) bool { return h.Over() && told(h.ID) },
		(*Happening).Over,
	} {
		f.shed(may, len(f.Happenings)-left)
	}
	f.shedNewest(len(f.Happenings) - left)
	return f.State, true
}

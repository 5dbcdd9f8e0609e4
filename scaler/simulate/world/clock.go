package world

import "container/heap"

// event is something that happens at a moment, in seconds since the start.
type event struct {
	at int64
	// number keeps those of one moment in the order in which they were planned.
	number int64
	happen func()
}

type calendar []event

func (c calendar) Len() int { return len(c) }
func (c calendar) Less(i, j int) bool {
	if c[i].at != c[j].at {
		return c[i].at < c[j].at
	}
	return c[i].number < c[j].number
}
func (c calendar) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *calendar) Push(x any)   { *c = append(*c, x.(event)) }
func (c *calendar) Pop() any {
	old := *c
	last := old[len(old)-1]
	old[len(old)-1] = event{}
	*c = old[:len(old)-1]
	return last
}

// at has something happen at a moment.
func (w *World) at(moment int64, happen func()) {
	w.planned++
	heap.Push(&w.events, event{max(moment, w.now), w.planned, happen})
}

// in has something happen so many seconds from now.
func (w *World) in(seconds int64, happen func()) { w.at(w.now+seconds, happen) }

// happen has everything of this moment happen.
func (w *World) happen() {
	for len(w.events) > 0 && w.events[0].at <= w.now {
		heap.Pop(&w.events).(event).happen()
	}
}

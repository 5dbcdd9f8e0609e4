package main

import (
	"math/rand/v2"
	"slices"
	"time"

	"windlass.dev/windlass/agent/drain"
)

const (
	// firstAtOnce is how many evictions a drain begins with at one time, and
	// mostAtOnce how many there are ever.
	firstAtOnce, mostAtOnce = 4, 20
	// firstRest and longestRest bound the back-off after an answer that the API server
	// has no time.
	firstRest, longestRest = 500 * time.Millisecond, 4 * time.Second
	// prompt is how long an answer takes at most of a server that has time: one that
	// takes longer has stood in a queue, and more at once would make that longer.
	prompt = 500 * time.Millisecond
	// hanging is after how long one is taken to hang by itself.
	hanging = 4 * prompt
	// crowdedFor is how long an answer that the server has no time says something of it.
	crowdedFor = 30 * time.Second
)

// pace bounds how many evictions of a node are under way at one time, as TCP
// bounds what it sends: one more for each that is answered promptly, so that a lone
// node is served as fast as the API server can, or for each round of slow ones, and half
// of them after an answer that it has no time. A thousand nodes that drain at one moment
// each ask for less than one at a time then, and the server spends its time on pods and
// not on refusals.
//
// One that hangs, in a webhook or over its budget, says nothing of the server's time,
// and the others do not wait behind it; but where the server is crowded all of them hang.
type pace struct {
	// window is how many may be under way that do not hang.
	window float64
	// begun are the moments at which those under way were asked for, in their order.
	begun []time.Time
	// refused is when the server last had no time for us.
	refused time.Time
	// rests counts the back-offs since the last eviction that was accepted; nothing is asked for
	// before resumes.
	rests   int
	resumes time.Time
	// took is what an eviction takes, lately.
	took time.Duration
	// held: there was more to ask for than was admitted.
	held bool
}

func newPace() pace { return pace{window: firstAtOnce} }

// admits reports whether one more may be asked for now.
func (p *pace) admits(now time.Time) bool {
	return !now.Before(p.resumes) && len(p.begun) < mostAtOnce && p.counting(now) < int(p.window)
}

// counting is how many of those under way the window bounds.
func (p *pace) counting(now time.Time) int {
	if p.crowded(now) {
		return len(p.begun)
	}
	n := 0
	for _, at := range p.begun {
		if now.Sub(at) < hanging {
			n++
		}
	}
	return n
}

func (p *pace) crowded(now time.Time) bool {
	return !p.refused.IsZero() && now.Before(p.refused.Add(crowdedFor))
}

// resumesAfter is when one more may be asked for, if no answer comes before; zero where
// only an answer can bring that.
func (p *pace) resumesAfter(now time.Time) time.Time {
	switch {
	case now.Before(p.resumes):
		return p.resumes
	case len(p.begun) >= mostAtOnce:
		return time.Time{}
	case p.crowded(now):
		return p.refused.Add(crowdedFor)
	}
	for _, at := range p.begun {
		if hangs := at.Add(hanging); now.Before(hangs) {
			return hangs
		}
	}
	return time.Time{}
}

// busy reports whether evictions are under way, or wait for their turn.
func (p *pace) busy() bool { return len(p.begun) > 0 || p.held }

// begin notes that one is asked for, and end what came of the one that was asked for
// at that moment.
func (p *pace) begin(now time.Time) { p.begun = append(p.begun, now) }

func (p *pace) end(now, begun time.Time, outcome drain.Outcome) {
	i := slices.IndexFunc(p.begun, begun.Equal)
	p.begun = slices.Delete(p.begun, i, i+1)
	took := now.Sub(begun)
	p.took = (3*p.took + took) / 4
	if outcome == drain.Overloaded {
		p.refused = now
		p.window = max(p.window/2, 1)
		rest := min(firstRest<<min(p.rests, 10), longestRest)
		p.rests++
		p.resumes = now.Add(rest/2 + rand.N(rest))
		return
	}
	if outcome == drain.Accepted || outcome == drain.Gone {
		p.rests = 0
	}
	p.window = min(p.window+p.growth(now, took), mostAtOnce)
}

// growth for an answer that took so long: where the server is busy, one more for a
// round of answers and not for each.
func (p *pace) growth(now time.Time, took time.Duration) float64 {
	if p.crowded(now) || took > prompt {
		return 1 / p.window
	}
	return 1
}

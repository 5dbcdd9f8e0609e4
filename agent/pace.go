package main

import (
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/agent/drain"
)

const (
	// firstAtOnce is how many evictions a drain begins with at one time, and
	// mostAtOnce how many there are ever. Less than one at a time is one with a pause
	// after it; leastAtOnce bounds that.
	firstAtOnce, mostAtOnce, leastAtOnce = 4, 20, 1.0 / 16
	// firstRest and longestRest bound the rest after an answer that the API server
	// has no time; no pause is longer.
	firstRest, longestRest = 500 * time.Millisecond, 4 * time.Second
	// prompt is how long an answer takes at most of a server that has time: one that
	// takes longer has stood in a queue, and more at once would make that longer.
	prompt = 250 * time.Millisecond
	// promptly is how long a write of the Node takes at most there, which stands in the
	// way of nothing.
	promptly = 100 * time.Millisecond
	// timely is how long after the answer the watch tells at most there.
	timely = 500 * time.Millisecond
	// hanging is after how long one is taken to hang by itself.
	hanging = 2 * time.Second
	// crowdedFor is how long a sign that the server has no time says something of it.
	crowdedFor = 30 * time.Second
)

// pace bounds how many evictions of a node are under way at one time, as TCP
// bounds what it sends: one more for each that is answered promptly, so that a lone
// node is served as fast as the API server can, or for each round of slow ones, and
// fewer where the server has no time. A thousand nodes that drain at one moment each ask
// for less than one at a time then, and the server spends its time on pods and not on
// queues and refusals.
//
// An eviction that takes long says nothing of the server's time: it may stand in a
// webhook, or in the way of others of its budget. That it has none, the server says by
// refusing, and shows by what no webhook and no budget has a part in: how long a write of
// the Node takes, and how much later than the answer to an eviction the watch tells of
// the pod's end. A server with hundreds of requests at work is behind with its watches
// long before it refuses any, and then kubelets, too, hear seconds late what to do.
//
// One that hangs keeps no other waiting; but where the server is crowded all of them hang.
type pace struct {
	// window is how many may be under way that do not hang.
	window float64
	// begun are the moments at which those under way were asked for, in their order.
	begun []time.Time
	// unseen are evictions that were accepted and that the watch has not told of yet;
	// behind says that it should have.
	unseen map[types.UID]accepted
	behind bool
	// strained is when the server last showed that it had no time, and narrowed when the
	// window was last made smaller for it: what was asked for before says that again.
	strained, narrowed time.Time
	// rests counts the rests since the last that was accepted; nothing is asked for
	// before resumes.
	rests   int
	resumes time.Time
	// every is the time in which one eviction comes to its end, lately.
	every time.Duration
	// held: there was more to ask for than was admitted.
	held bool
}

// accepted is an eviction that was asked for and accepted at these moments.
type accepted struct{ begun, answered time.Time }

func newPace() pace { return pace{window: firstAtOnce, unseen: map[types.UID]accepted{}} }

// admits says whether one more may be asked for now.
func (p *pace) admits(now time.Time) bool {
	return !now.Before(p.resumes) && len(p.begun) < mostAtOnce && p.counting(now) < max(int(p.window), 1)
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

// crowded says that the server had no time a while ago.
func (p *pace) crowded(now time.Time) bool {
	return !p.strained.IsZero() && now.Before(p.strained.Add(crowdedFor))
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
		return p.strained.Add(crowdedFor)
	}
	for _, at := range p.begun {
		if hangs := at.Add(hanging); now.Before(hangs) {
			return hangs
		}
	}
	return time.Time{}
}

// busy says that evictions are under way, or wait for their turn.
func (p *pace) busy() bool { return len(p.begun) > 0 || p.held }

// begin notes that one is asked for, and end what came of the one that was asked for
// at that moment.
func (p *pace) begin(now time.Time) { p.begun = append(p.begun, now) }

func (p *pace) end(now, begun time.Time, pod types.UID, outcome drain.Outcome) {
	i := slices.IndexFunc(p.begun, begun.Equal)
	p.begun = slices.Delete(p.begun, i, i+1)
	took := now.Sub(begun)
	p.every = (3*p.every + p.pauseAfter(took) + took) / 4
	if outcome == drain.Overloaded {
		p.refuse(now, begun)
		return
	}
	switch outcome {
	case drain.Accepted:
		p.rests, p.unseen[pod] = 0, accepted{begun, now}
	case drain.Gone:
		p.rests = 0
	}
	p.window = min(p.window+p.growth(now, took), mostAtOnce)
	if pause := p.pauseAfter(took); pause > 0 {
		p.rest(now, pause)
	}
}

// refuse takes note that the server refused, for want of time, one that was asked for at
// that moment.
func (p *pace) refuse(now, begun time.Time) {
	p.strain(now, begun, half, 1)
	p.rest(now, min(firstRest<<min(p.rests, 10), longestRest))
	p.rests++
}

// rest has nothing asked for before about that time has passed.
func (p *pace) rest(now time.Time, about time.Duration) {
	if resumes := now.Add(about/2 + rand.N(about)); resumes.After(p.resumes) {
		p.resumes = resumes
	}
}

// pauseAfter an eviction that took so long: what makes one at a time as few as the window
// says, on a server that answers promptly.
func (p *pace) pauseAfter(took time.Duration) time.Duration {
	if p.window >= 1 {
		return 0
	}
	return time.Duration(float64(min(took, prompt)) * (1/p.window - 1))
}

// growth for an answer that took so long: where the server is busy, one more for a
// round of answers and not for each, or for a few rounds where there are pauses between
// them; where it is behind, none.
func (p *pace) growth(now time.Time, took time.Duration) float64 {
	switch {
	case p.behind:
		return 0
	case p.window < 1:
		return 1.0 / 8
	case p.crowded(now) || took > prompt:
		return 1 / p.window
	}
	return 1
}

// wrote takes note that a write of the Node took from begun until now.
func (p *pace) wrote(now, begun time.Time) {
	const most = 8
	if took := now.Sub(begun); took > promptly {
		p.strain(now, begun, min(max(float64(took)/float64(promptly), half), most), leastAtOnce)
	}
}

// saw takes note of the evictions of which the watch has told by now: those of pods that
// leave, or are not there any more. Of a watch that tells of none nobody knows whether it
// is late or broken: one at a time goes on then.
func (p *pace) saw(now time.Time, stays func(types.UID) bool) {
	p.behind = false
	for pod, a := range p.unseen {
		late, least := now.Sub(a.answered) > timely, leastAtOnce
		switch {
		case stays(pod):
			p.behind, least = p.behind || late, 1
		default:
			delete(p.unseen, pod)
		}
		if late {
			p.strain(now, a.begun, half, least)
		}
	}
}

// half makes the window half as wide.
const half = 2.0

// strain takes note that the server had no time, and makes the window so many times
// smaller, but not smaller than least, unless that was done since the moment at which it
// was asked.
func (p *pace) strain(now, asked time.Time, times, least float64) {
	p.strained = now
	if narrower := max(p.window/times, least); narrower < p.window && !asked.Before(p.narrowed) {
		p.window, p.narrowed = narrower, now
	}
}

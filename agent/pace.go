package main

import (
	"math/rand/v2"
	"slices"
	"time"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/pkg/contract"
)

const (
	// firstAtOnce is how many evictions a drain begins with at one time where the server has
	// time, and mostAtOnce how many there are ever: a connection bears a hundred requests at one
	// time, and watches, reads and writes of the Node share it.
	firstAtOnce, mostAtOnce = 50, 64
	// sharedAtOnce is how many are divided among drains that begin beside each other, where the share of each
	// is more than it would begin with otherwise.
	sharedAtOnce = 18
	// quick is how long a server that has time takes at most for a list of a node's pods, or for
	// a read or a write of the Node.
	quick = 50 * time.Millisecond
	// firstRest and longestRest bound the back-off after an answer that the API server
	// has no time.
	firstRest, longestRest = 500 * time.Millisecond, 4 * time.Second
	// prompt is how long an answer takes at most of a server that has time: one that
	// takes longer has stood in a queue, and more at once would make that longer.
	prompt = 500 * time.Millisecond
	// hanging is after how long one is taken to hang by itself.
	hanging = 2 * time.Second
	// crowdedFor is how long a sign that the server has no time says something of it to evictions, and
	// crowdedForReports to reports: one that was slow to write, or was refused first, is a sign for the
	// next.
	crowdedFor        = 30 * time.Second
	crowdedForReports = contract.CrowdedReportEvery + 15*time.Second
)

// pace bounds how many evictions of a node are under way at one time, by what the server's
// answers tell of its time.
//
// Webhooks and budgets make evictions slow, but no lists; and a drain that begins lists its pods and
// writes to the Node before its first eviction. As much longer as that took than it needs to, as many requests
// of others are ahead, and as many times fewer others should be added to each of those. So a lone
// node begins with all that most nodes have, in one round: each takes the server a tenth of a second,
// for a consistent read of the budgets. Not all that is ahead are drains: what evicted pods are replaced by
// is made, scheduled and started meanwhile, and overtakes what is not asked for. So each of sixty that drain
// at one moment begins with its share, see sharedAtOnce, and of a thousand each with one. Then
// there is one more for each prompt answer, one for a round or for some rounds of others, see growth, and
// half of them after an answer that the server has no time, when nothing is asked for a while.
//
// One that hangs, in a webhook or over its budget, says nothing of the server's time,
// and the others do not wait behind it, unless the others take long as well.
type pace struct {
	// window is how many may be under way that do not hang.
	window float64
	// begun are the moments at which those under way were asked for, in their order.
	begun []time.Time
	// crowdedAt is when the server last showed that it has no time, refusedAt when it last said so, and
	// judgedAt when the window was last set by what a request took before the first eviction.
	crowdedAt, refusedAt, judgedAt time.Time
	// rests counts the back-offs since the last eviction that was accepted; nothing is asked for
	// before resumes.
	rests   int
	resumes time.Time
	// took is what an eviction takes, lately; zero before the first answer.
	took time.Duration
	// random draws a time below another, so that not all come back together.
	random func(below time.Duration) time.Duration
	// held: there was more to ask for than was admitted.
	held bool
}

func newPace() pace { return pace{window: firstAtOnce, random: rand.N[time.Duration]} }

// hear notes how long a read has taken, or a write of the Node. A drain may wait for hours before its
// first eviction: the slowest counts for half a minute.
func (p *pace) hear(now time.Time, took time.Duration) {
	if took > prompt {
		p.crowdedAt = now
	}
	if p.hasBegun() {
		return
	}
	share := float64(quick) / float64(max(took, quick))
	if window := max(firstAtOnce*share, sharedAtOnce) * share; window < p.window || now.After(p.judgedAt.Add(crowdedFor)) {
		p.setWindow(window)
		p.judgedAt = now
	}
}

// refuse notes that the server said that it has no time: for a read or a write of the Node, or an eviction.
func (p *pace) refuse(now time.Time) { p.crowdedAt, p.refusedAt = now, now }

func (p *pace) setWindow(to float64) { p.window = min(max(to, 1), mostAtOnce) }

// admits reports whether one more may be asked for now.
func (p *pace) admits(now time.Time) bool {
	return !now.Before(p.resumes) && len(p.begun) < mostAtOnce && p.counting(now) < int(p.window)
}

// counting is how many of those under way the window bounds.
func (p *pace) counting(now time.Time) int {
	if p.allSlow(now) {
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

// allSlow reports whether one that takes long says nothing of itself.
func (p *pace) allSlow(now time.Time) bool { return p.crowded(now) || p.took > prompt }

func (p *pace) crowded(now time.Time) bool { return p.crowdedWithin(crowdedFor, now) }

// crowdedWithin reports whether there was a sign that the server has no time so shortly before.
func (p *pace) crowdedWithin(span time.Duration, now time.Time) bool {
	return isWithin(span, p.crowdedAt, now)
}

// isWithin reports whether it was so shortly before now; zero is never.
func isWithin(span time.Duration, at, now time.Time) bool {
	return !at.IsZero() && now.Before(at.Add(span))
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
		return p.crowdedAt.Add(crowdedFor)
	case p.allSlow(now):
		return time.Time{}
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

// hasBegun reports whether an eviction was asked for.
func (p *pace) hasBegun() bool { return p.took != 0 || len(p.begun) > 0 }

// begin notes that one is asked for, and end what came of the one that was asked for
// at that moment.
func (p *pace) begin(now time.Time) { p.begun = append(p.begun, now) }

func (p *pace) end(now, begun time.Time, answer drain.Answer) {
	i := slices.IndexFunc(p.begun, begun.Equal)
	p.begun = slices.Delete(p.begun, i, i+1)
	took := now.Sub(begun)
	if p.took == 0 {
		p.took = max(took, 1)
	}
	p.took = (3*p.took + took) / 4
	if answer.Outcome == drain.Overloaded {
		p.refuse(now)
		if begun.Before(p.resumes) {
			return // it was sent together with one that was refused already
		}
		p.setWindow(p.window / 2)
		rest := min(max(firstRest<<min(p.rests, 10), answer.RetryAfter), longestRest)
		p.rests++
		p.resumes = now.Add(rest + p.random(rest/2))
		return
	}
	done := answer.Outcome == drain.Accepted || answer.Outcome == drain.Gone
	if done {
		p.rests = 0
	}
	p.setWindow(p.window + p.growth(now, took, done))
}

// growth for an answer that took so long: where answers are slow, or the server refused something lately, one
// more for a round of them and not for each. Where answers are slow and the server was busy, others wait as
// well, and a longer queue gives it no time: one more for as many rounds as they are too slow, squared, and for
// eight at the most, so that a node with many pods is through before its two minutes are over even if all of that is
// the work of others. That an eviction is done promptly says more of the server's time than a slow write before: of
// sixty drains, the few whose first write was slow ended four seconds after the others. That one failed says nothing.
func (p *pace) growth(now time.Time, took time.Duration, done bool) float64 {
	slow, crowded := took > prompt, p.crowded(now)
	switch {
	case slow && crowded:
		tooSlow := float64(took) / float64(prompt)
		return 1 / (min(tooSlow*tooSlow, 8) * p.window)
	case slow, crowded && !done, isWithin(crowdedFor, p.refusedAt, now):
		return 1 / p.window
	}
	return 1
}

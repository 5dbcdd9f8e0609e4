package main

import (
	"math/rand/v2"
	"time"

	"windlass.dev/windlass/agent/drain"
)

const (
	// mostAtOnce is how many evictions a drain has under way ever. It begins with one:
	// a thousand that begin with more have filled the server before it has answered
	// any of them.
	mostAtOnce = 20
	// promptGrowth is how many more at once each prompt answer brings. 1, 3, 9 and 20
	// are a node's evictions in the first rounds, as long as they are.
	promptGrowth = 2
	// firstRest and longestRest bound the rest after an answer that the API server
	// has no time.
	firstRest, longestRest = 500 * time.Millisecond, 4 * time.Second
	// prompt is how long an answer takes at most of a server that has time: one that
	// takes longer has stood in a queue, and more at once would make that longer.
	prompt = 500 * time.Millisecond
	// crawling is what an answer takes at least of a server that has more to do than it
	// can, where it has said so before.
	crawling = 2 * prompt
)

// pace bounds how many evictions of a node are under way at one time, as TCP
// bounds what it sends: more for each that is accepted promptly, so that a lone node is
// served as fast as the API server can, one more for each round of slow ones, and half
// of them after an answer that it has no time. A thousand nodes that drain at one moment
// each ask for less than one at a time then, and the server spends its time on pods and
// not on refusals.
type pace struct {
	// window is how many may be under way, underWay how many are.
	window   float64
	underWay int
	// crowded: the server had no time for us once.
	crowded bool
	// rests counts the rests since the last that was accepted; nothing is asked for
	// before resumes.
	rests   int
	resumes time.Time
	// took is what an eviction takes, lately.
	took time.Duration
	// held: there was more to ask for than was admitted.
	held bool
}

func newPace() pace { return pace{window: 1} }

// admits says whether one more may be asked for now.
func (p *pace) admits(now time.Time) bool {
	return p.underWay < int(p.window) && !now.Before(p.resumes)
}

// resumesAfter is when the rest ends; zero where there is none.
func (p *pace) resumesAfter(now time.Time) time.Time {
	if now.Before(p.resumes) {
		return p.resumes
	}
	return time.Time{}
}

// busy says that evictions are under way, or wait for their turn.
func (p *pace) busy() bool { return p.underWay > 0 || p.held }

// begin notes that one is asked for, and end what came of it, and how long it
// took.
func (p *pace) begin() { p.underWay++ }

func (p *pace) end(now time.Time, took time.Duration, outcome drain.Outcome) {
	p.underWay--
	p.took = (3*p.took + took) / 4
	switch outcome {
	case drain.Accepted, drain.Gone:
		p.rests = 0
		p.window = min(p.window+p.growth(took), mostAtOnce)
	case drain.Overloaded:
		p.crowded = true
		p.window = max(p.window/2, 1)
		rest := min(firstRest<<min(p.rests, 10), longestRest)
		p.rests++
		p.resumes = now.Add(rest/2 + rand.N(rest))
	}
}

// growth for an answer that took so long: where the server is busy, one more for a
// round of answers and not for each, and one less where it is too busy. How long an
// answer takes tells that only of a server that has refused for want of time: a slow
// webhook is served best by more at once.
func (p *pace) growth(took time.Duration) float64 {
	switch {
	case p.crowded && took > crawling:
		return max(-1/p.window, 1-p.window)
	case p.crowded || took > prompt:
		return 1 / p.window
	}
	return promptGrowth
}

package main

import (
	"testing"
	"time"

	"windlass.dev/windlass/agent/drain"
)

// ask begins as many as the pace admits, and returns how many.
func (p *pace) ask(now time.Time) int {
	n := 0
	for p.admits(now) {
		p.begin()
		n++
	}
	return n
}

func (p *pace) answer(now time.Time, n int, outcome drain.Outcome) {
	for range n {
		p.end(now, prompt, outcome)
	}
}

func TestPaceAlone(t *testing.T) {
	p, now := newPace(), time.Now()
	for round, want := range []int{1, 3, 9, 20, 20} {
		n := p.ask(now)
		if n != want {
			t.Errorf("round %d: %d at once, want %d", round, n, want)
		}
		p.answer(now, n, drain.Accepted)
	}
	if p.took < prompt*9/10 || p.took > prompt {
		t.Errorf("an eviction takes %s, they all took %s", p.took, prompt)
	}
}

// A server that lets evictions stand in a queue is asked for little more at once.
func TestPaceOfAQueue(t *testing.T) {
	p, now := newPace(), time.Now()
	for range 5 {
		for range p.ask(now) {
			p.end(now, prompt+1, drain.Accepted)
		}
	}
	if n := p.ask(now); n <= 1 || n > 1+5 {
		t.Errorf("%d at once after five slow rounds, want one more for each at most", n)
	}
}

// A server that has refused for want of time, and crawls, is asked for less and less,
// but for one at a time.
func TestPaceOfACrawl(t *testing.T) {
	p, now := newPace(), time.Now()
	for range 5 {
		p.answer(now, p.ask(now), drain.Accepted)
	}
	p.answer(now, p.ask(now), drain.Overloaded)
	p.window = mostAtOnce
	last := mostAtOnce
	for range 30 {
		now = now.Add(time.Minute)
		n := p.ask(now)
		if n > last || n < last-2 {
			t.Fatalf("%d at once after %d, want one less or so", n, last)
		}
		for range n {
			p.end(now, crawling+1, drain.Accepted)
		}
		last = n
	}
	if last != 1 {
		t.Errorf("%d at once in the end, want 1", last)
	}
}

// What is refused by a budget or fails says nothing about the server's time.
func TestPaceOfRefusals(t *testing.T) {
	p, now := newPace(), time.Now()
	for _, outcome := range []drain.Outcome{drain.Refused, drain.Forbidden, drain.Failed} {
		p.answer(now, p.ask(now), outcome)
		if p.window != 1 || !p.resumes.IsZero() {
			t.Errorf("after %s: %+v", outcome, p)
		}
	}
}

func TestPaceInACrowd(t *testing.T) {
	p, now := newPace(), time.Now()
	for range 5 {
		p.answer(now, p.ask(now), drain.Accepted)
	}
	for range 6 { // the server has no time for a while
		n := p.ask(now)
		p.answer(now, n, drain.Overloaded)
		if p.ask(now) > 0 || p.admits(p.resumes.Add(-time.Nanosecond)) {
			t.Fatalf("asks on without a rest: %+v", p)
		}
		if rest := p.resumes.Sub(now); rest < firstRest/2 || rest > longestRest*3/2 {
			t.Errorf("a rest of %s", rest)
		}
		now = p.resumes
	}
	if n := p.ask(now); n != 1 {
		t.Errorf("%d at once after all this, want 1", n)
	}
	p.answer(now, 1, drain.Accepted)
	most := 0
	for range 10 { // ten rounds bring less than ten more
		n := p.ask(now)
		most = max(most, n)
		p.answer(now, n, drain.Accepted)
	}
	if most < 5 || most > 11 {
		t.Errorf("%d at once after ten good rounds", most)
	}
	p.answer(now, p.ask(now), drain.Overloaded)
	if rest := p.resumes.Sub(now); rest > longestRest*3/2 {
		t.Errorf("a rest of %s", rest)
	}
}

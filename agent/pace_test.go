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
		p.begin(now)
		n++
	}
	return n
}

// answer ends n that were asked for as long before now as an answer takes.
func (p *pace) answer(now time.Time, n int, took time.Duration, outcome drain.Outcome) {
	for range n {
		p.end(now.Add(took), now, outcome)
	}
}

func TestPaceAlone(t *testing.T) {
	p, now := newPace(), time.Now()
	for round, want := range []int{4, 8, 16, 20, 20} {
		n := p.ask(now)
		if n != want {
			t.Errorf("round %d: %d at once, want %d", round, n, want)
		}
		p.answer(now, n, prompt, drain.Accepted)
	}
	if p.took < prompt*9/10 || p.took > prompt {
		t.Errorf("an eviction takes %s, they all took %s", p.took, prompt)
	}
}

// A server that lets evictions stand in a queue is asked for little more at once.
func TestPaceOfAQueue(t *testing.T) {
	p, now := newPace(), time.Now()
	for range 5 {
		p.answer(now, p.ask(now), prompt+1, drain.Accepted)
	}
	if n := p.ask(now); n <= firstAtOnce || n > firstAtOnce+5 {
		t.Errorf("%d at once after five slow rounds, want one more for each at most", n)
	}
}

// A refusal for want of time counts for a while, and no longer.
func TestPaceAfterACrowd(t *testing.T) {
	p, now := newPace(), time.Now()
	p.answer(now, p.ask(now), prompt, drain.Overloaded)
	now = p.resumes
	p.answer(now, p.ask(now), prompt, drain.Accepted)
	if n := p.ask(now); n != 2 {
		t.Errorf("%d at once after one good answer in a crowd, want 2", n)
	}
	p.answer(now, 2, prompt, drain.Accepted)
	now = now.Add(crowdedFor)
	before := int(p.window)
	p.answer(now, p.ask(now), prompt, drain.Accepted)
	if n := p.ask(now); n != 2*before {
		t.Errorf("%d at once a while later, want twice %d", n, before)
	}
}

// What is refused by a budget or fails is an answer of a server that has time.
func TestPaceOfRefusals(t *testing.T) {
	for _, outcome := range []drain.Outcome{drain.Refused, drain.Forbidden, drain.Failed} {
		p, now := newPace(), time.Now()
		n := p.ask(now)
		p.answer(now, n, prompt, outcome)
		if more := p.ask(now); more <= n || !p.resumes.IsZero() {
			t.Errorf("after %s: %d at once, then %d: %+v", outcome, n, more, p)
		}
	}
}

// Evictions that hang, in a webhook or over their budget, do not keep the free ones
// waiting.
func TestPaceBesideWhatHangs(t *testing.T) {
	for hanging, most := range map[int]time.Duration{1: 0, 4: hanging, 12: 3 * hanging, 19: 4 * hanging} {
		p, now := newPace(), time.Now()
		begun, asked := now, p.ask(now)
		for asked <= hanging {
			if now = p.resumesAfter(now); now.IsZero() {
				t.Fatalf("%d of %d asked for, and no more until they answer", asked, hanging)
			}
			asked += p.ask(now)
		}
		if took := now.Sub(begun); took > most {
			t.Errorf("beside %d that hang, the first free one is asked for after %s, want %s", hanging, took, most)
		}
	}
}

// Where the server is crowded, all of them hang, and no more is asked for.
func TestPaceHangsInACrowd(t *testing.T) {
	p, now := newPace(), time.Now()
	n := p.ask(now)
	p.answer(now, 1, prompt, drain.Overloaded)
	p.resumes = time.Time{}
	p.ask(now) // as many as the smaller window bears
	if more := p.ask(now.Add(hanging)); more > 0 {
		t.Errorf("%d more beside the %d under way", more, n)
	}
	if at, want := p.resumesAfter(now.Add(hanging)), p.refused.Add(crowdedFor); !at.Equal(want) {
		t.Errorf("resumes at %s, want %s", at, want)
	}
}

func TestPaceInACrowd(t *testing.T) {
	p, now := newPace(), time.Now()
	for range 5 {
		p.answer(now, p.ask(now), prompt, drain.Accepted)
	}
	for range 6 { // the server has no time for a while
		n := p.ask(now)
		p.answer(now, n, prompt, drain.Overloaded)
		if p.ask(now) > 0 || p.admits(p.resumes.Add(-time.Nanosecond)) {
			t.Fatalf("asks on without a rest: %+v", p)
		}
		if rest := p.resumes.Sub(now.Add(prompt)); rest < firstRest/2 || rest > longestRest*3/2 {
			t.Errorf("a rest of %s", rest)
		}
		now = p.resumes
	}
	if n := p.ask(now); n != 1 {
		t.Errorf("%d at once after all this, want 1", n)
	}
	p.answer(now, 1, prompt, drain.Accepted)
	most := 0
	for range 10 { // ten rounds bring less than ten more
		n := p.ask(now)
		most = max(most, n)
		p.answer(now, n, prompt, drain.Accepted)
	}
	if most < 5 || most > 11 {
		t.Errorf("%d at once after ten good rounds", most)
	}
	p.answer(now, p.ask(now), prompt, drain.Overloaded)
	if rest := p.resumes.Sub(now.Add(prompt)); rest > longestRest*3/2 {
		t.Errorf("a rest of %s", rest)
	}
}

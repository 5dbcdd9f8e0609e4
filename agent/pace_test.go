package main

import (
	"container/heap"
	"math/rand/v2"
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
		p.end(now.Add(took), now, drain.Answer{Outcome: outcome})
	}
}

func TestPaceByHowLongItTook(t *testing.T) {
	for times, want := range map[int]int{0: 50, 1: 50, 2: 12, 3: 6, 4: 4, 7: 2, 18: 1, 100: 1} {
		p := newPace()
		p.hear(time.Unix(0, 0), time.Duration(times)*quick)
		if n := p.ask(time.Unix(0, 0)); n != want {
			t.Errorf("where it took %d times as long: %d at one time, want %d", times, n, want)
		}
	}
}

// A slow answer says nothing of evictions that begin long after it, and a quick one beside it does
// not undo it.
func TestPaceBeforeTheFirst(t *testing.T) {
	const slow = 7 * quick
	for _, test := range []struct {
		about string
		after []time.Duration // an answer that is slow, and then quick ones
		want  int
	}{
		{"slow alone", nil, sharedAtOnce / 7},
		{"quick right after", []time.Duration{time.Second}, sharedAtOnce / 7},
		{"quick much later", []time.Duration{time.Second, time.Hour}, firstAtOnce},
		{"quick answers all the while", []time.Duration{10 * time.Second, 10 * time.Second, 10 * time.Second, 10 * time.Second}, firstAtOnce},
	} {
		p, now := newPace(), time.Unix(0, 0)
		p.hear(now, slow)
		for _, pause := range test.after {
			now = now.Add(pause)
			p.hear(now, quick)
		}
		if n := p.ask(now); n != test.want {
			t.Errorf("%s: %d at one time, want %d", test.about, n, test.want)
		}
	}
}

// apiServer is one in virtual time that works on so many requests at one time, lets others
// wait in a queue, and refuses what finds no place there.
type apiServer struct {
	seats, queue  int
	evict         time.Duration // what an eviction takes, and a list of a node's pods
	now           time.Time
	events        moments
	dice          *rand.Rand
	working       int
	waiting       []func()
	refused, most int // most is how many evictions of one node were under way
}

// moment is when something happens.
type moment struct {
	at time.Time
	do func()
}

type moments []moment

func (m moments) Len() int           { return len(m) }
func (m moments) Less(i, j int) bool { return m[i].at.Before(m[j].at) }
func (m moments) Swap(i, j int)      { m[i], m[j] = m[j], m[i] }
func (m *moments) Push(x any)        { *m = append(*m, x.(moment)) }
func (m *moments) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}

func (s *apiServer) at(at time.Time, do func()) { heap.Push(&s.events, moment{at, do}) }

// ask has a request worked on for as long as it takes; answered is told whether it was.
func (s *apiServer) ask(takes time.Duration, answered func(ok bool)) {
	work := func() {
		s.working++
		s.at(s.now.Add(takes), func() {
			s.working--
			if len(s.waiting) > 0 {
				next := s.waiting[0]
				s.waiting = s.waiting[1:]
				next()
			}
			answered(true)
		})
	}
	switch {
	case s.working < s.seats:
		work()
	case len(s.waiting) < s.queue:
		s.waiting = append(s.waiting, work)
	default:
		s.refused++
		s.at(s.now.Add(time.Millisecond), func() { answered(false) })
	}
}

// drain has a node's pods listed and evicted.
func (s *apiServer) drain(pods int) {
	p, wake := newPace(), time.Time{}
	p.random = func(below time.Duration) time.Duration { return time.Duration(s.dice.Int64N(int64(below))) }
	var turn func()
	turn = func() {
		for pods > 0 && p.admits(s.now) {
			pods--
			begun := s.now
			p.begin(begun)
			s.most = max(s.most, len(p.begun))
			s.ask(s.evict, func(ok bool) {
				answer := drain.Answer{Outcome: drain.Accepted}
				if !ok {
					pods++
					answer = drain.Answer{Outcome: drain.Overloaded, RetryAfter: time.Second}
				}
				p.end(s.now, begun, answer)
				turn()
			})
		}
		if at := p.resumesAfter(s.now); pods > 0 && at.After(s.now) && !at.Equal(wake) {
			wake = at
			s.at(at, turn)
		}
	}
	var list func()
	list = func() {
		began := s.now
		s.ask(s.evict, func(ok bool) {
			if !ok {
				s.at(s.now.Add(longestRest), list)
				return
			}
			p.hear(s.now, s.now.Sub(began))
			turn()
		})
	}
	list()
}

// However many seats the server has, and however many nodes drain at one moment, they take
// little longer than those seats need, and ask for little in vain.
func TestPaceFindsTheSeats(t *testing.T) {
	const evict = 50 * time.Millisecond
	for _, c := range []struct {
		reason       string
		nodes, pods  int
		seats, queue int
		most         time.Duration // beside what the seats need
		refused      int
	}{
		{"a lone node", 1, 50, 100, 100, 0, 0},
		{"a lone node with as many pods as a kubelet takes", 1, 110, 100, 100, evict, 0},
		{"a lone node at a server of few seats", 1, 50, 4, 100, 0, 0},
		{"a lone node at a server of few seats and a short queue", 1, 50, 4, 16, 4 * time.Second, 50},
		{"a hundred nodes", 100, 20, 16, 1000, 500 * time.Millisecond, 0},
		{"a hundred nodes at a server of many seats", 100, 20, 400, 1000, 2 * time.Second, 600},
		{"a thousand nodes", 1000, 20, 32, 3000, 3 * time.Second, 0},
		{"a thousand nodes at a server with a queue for a part of them", 1000, 20, 32, 300, 8 * time.Second, 13_500}, // one of each node at a time is more than there are places for
	} {
		t.Run(c.reason, func(t *testing.T) {
			s := &apiServer{seats: c.seats, queue: c.queue, evict: evict, now: time.Now(), dice: rand.New(rand.NewPCG(1, 1))}
			began := s.now
			for range c.nodes {
				s.at(s.now, func() { s.drain(c.pods) })
			}
			last := s.now
			for len(s.events) > 0 {
				next := heap.Pop(&s.events).(moment)
				s.now = next.at
				next.do()
				if s.working > 0 {
					last = s.now
				}
			}
			took := last.Sub(began)
			rounds := func(requests int) time.Duration { return time.Duration((requests + c.seats - 1) / c.seats) }
			needed := (rounds(c.nodes) + rounds(c.nodes*c.pods)) * evict
			if took > needed+c.most {
				t.Errorf("%s, want %s and at most %s more", took, needed, c.most)
			}
			if s.refused > c.refused {
				t.Errorf("%d refusals, want at most %d", s.refused, c.refused)
			}
			if s.most > mostAtOnce {
				t.Errorf("%d evictions of one node at one time, want at most %d", s.most, mostAtOnce)
			}
		})
	}
}

func TestPaceAlone(t *testing.T) {
	p, now := newPace(), time.Now()
	for round, want := range []int{firstAtOnce, mostAtOnce, mostAtOnce, mostAtOnce} {
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

// A refusal for want of time counts for a while, and no longer; those of one round count once.
func TestPaceAfterACrowd(t *testing.T) {
	p, now := newPace(), time.Now()
	n := p.ask(now)
	p.answer(now, n, prompt, drain.Overloaded)
	now = p.resumes
	if half := p.ask(now); half != n/2 {
		t.Errorf("%d at once after a refusal, want half of %d", half, n)
	}
	under := n / 2
	for range 2 {
		p.answer(now, under, prompt/2, drain.Accepted)
		before := under
		if under = p.ask(now); under < before || under > before+1 {
			t.Errorf("%d at once after a good round of %d in a crowd", under, before)
		}
	}
	p.answer(now, under, prompt/2, drain.Accepted)
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
	for hanging, most := range map[int]time.Duration{1: 0, 49: 0, 50: hanging, 63: hanging} {
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
	if at, want := p.resumesAfter(now.Add(hanging)), p.crowdedAt.Add(crowdedFor); !at.Equal(want) {
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
		if rest := p.resumes.Sub(now.Add(prompt)); rest < firstRest || rest > longestRest*3/2 {
			t.Errorf("a rest of %s", rest)
		}
		now = p.resumes
	}
	if n := p.ask(now); n != 1 {
		t.Errorf("%d at once after all this, want 1", n)
	}
	p.answer(now, 1, prompt/2, drain.Accepted)
	most := 0
	for range 10 { // ten rounds bring less than ten more
		n := p.ask(now)
		most = max(most, n)
		p.answer(now, n, prompt/2, drain.Accepted)
	}
	if most < 5 || most > 11 {
		t.Errorf("%d at once after ten good rounds", most)
	}
	p.answer(now, p.ask(now), prompt, drain.Overloaded)
	if rest := p.resumes.Sub(now.Add(prompt)); rest > longestRest*3/2 {
		t.Errorf("a rest of %s", rest)
	}
}

// A drain whose first write was slow is through soon where evictions are done promptly, or little
// later, and asks for little more where they stand in a long queue, or fail.
func TestPaceAfterASlowWrite(t *testing.T) {
	for _, c := range []struct {
		took    time.Duration
		outcome drain.Outcome
		rounds  int
	}{
		{prompt * 4 / 5, drain.Accepted, 5},
		{prompt * 4 / 5, drain.Gone, 5},
		{prompt * 4 / 5, drain.Failed, 7},
		{prompt * 4 / 5, drain.Refused, 7},
		{prompt * 6 / 5, drain.Accepted, 8},
		{prompt * 4, drain.Accepted, 16},
	} {
		p, now, rounds := newPace(), time.Now(), 0
		p.hear(now, 2*prompt)
		for left := 20; left > 0; rounds++ {
			n := min(p.ask(now), left)
			p.begun = p.begun[:n]
			p.answer(now, n, c.took, c.outcome)
			left -= n
			now = now.Add(c.took)
		}
		if rounds != c.rounds {
			t.Errorf("20 evictions, each %s after %s: %d rounds, want %d", c.outcome, c.took, rounds, c.rounds)
		}
	}
}

// Where all of a server's time is the work of others, so that reads, writes and evictions are slow
// for as long as the drain lasts, a node with as many pods as a kubelet takes is through in less than
// half of a spot instance's two minutes.
func TestPaceBesideOthers(t *testing.T) {
	const pods, slow, renewal = 110, 700 * time.Millisecond, 10 * time.Second
	p, now := newPace(), time.Now()
	began, wrote := now, now
	p.hear(now, slow)
	for left := pods; left > 0; now = now.Add(slow) {
		if now.Sub(wrote) >= renewal {
			p.hear(now, slow)
			wrote = now
		}
		n := min(p.ask(now), left)
		p.begun = p.begun[:n]
		p.answer(now, n, slow, drain.Accepted)
		left -= n
	}
	if took := now.Sub(began); took > time.Minute {
		t.Errorf("%d pods took %s", pods, took)
	}
}

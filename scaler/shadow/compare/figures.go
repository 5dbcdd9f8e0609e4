package compare

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"windlass.dev/windlass/scaler/shadow/record"
)

// Gap is a time that the log has not seen.
type Gap struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Why  string    `json:"why,omitempty"`
}

func (g Gap) length() time.Duration { return g.To.Sub(g.From) }

// Paid is what nodes cost.
type Paid struct {
	NodeHours float64 `json:"nodeHours"`
	Dollars   float64 `json:"dollars"`
	// Unpriced is true if nodes without a price are among them.
	Unpriced bool `json:"unpriced,omitempty"`
}

// Group is what a group's nodes cost on both sides.
type Group struct {
	Group string `json:"group"`
	Both[Paid]

	sampled string // as samples name it
}

// Pending is how long pods waited for a node, of those that got one in the span.
type Pending struct {
	Pods int      `json:"pods"`
	P50  Duration `json:"p50Seconds"`
	P90  Duration `json:"p90Seconds"`
	Max  Duration `json:"maxSeconds"`
	Sum  Duration `json:"sumSeconds"`
	// Unserved ended without ever having had a node; they are in none of the others.
	Unserved int `json:"unserved"`
}

// held is a sample, and how long it held.
type held struct {
	Gap
	sample *record.Sample
}

// hold is how long each sample of the log held. Of two that are too far apart, the first holds for
// as long as samples are apart; and none holds beyond the start of another shadow.
func hold(log []record.Record) (all []held) {
	var last *held
	end := func(at time.Time, anew bool) {
		if last == nil {
			return
		}
		if last.To = at; anew || at.Sub(last.From) > record.Missed {
			last.To = earlier(at, last.From.Add(record.SampleEvery))
		}
	}
	for _, r := range log {
		switch {
		case r.Began != nil:
			end(r.At, true)
			last = nil
		case r.Sample != nil:
			end(r.At, false)
			all = append(all, held{Gap{From: r.At, To: r.At}, r.Sample})
			last = &all[len(all)-1]
		}
	}
	if last != nil {
		end(last.From.Add(record.SampleEvery), false)
	}
	return all
}

// resized are the changes of desired capacity that samples show, for want of a record that says whose
// they are; and whether any of them was a fall.
func resized(all []held) (changes []record.Record, fell bool) {
	for i := range all[min(1, len(all)):] {
		last, next := all[i], all[i+1]
		if last.To.Before(next.From) {
			continue // it was not seen when
		}
		before := map[string]int{}
		for _, g := range last.sample.Groups {
			before[g.Group] = g.World.Desired
		}
		for _, g := range next.sample.Groups {
			from, known := before[g.Group]
			fell = fell || known && g.World.Desired < from
			if known && g.World.Desired > from && g.Group != "" {
				changes = append(changes, record.Record{At: next.From, Seen: &record.Seen{By: record.ByUnknown, Kind: record.DesiredChanged, Group: g.Group, From: from, To: g.World.Desired, Why: "its desired capacity has risen"}})
			}
		}
	}
	return changes, fell
}

// cover returns when the log has seen something, in order and without overlap, and notes the gaps
// of the span.
func (c *Comparison) cover(all []held) (covered []Gap) {
	for _, h := range all {
		if n := len(covered); n > 0 && !h.From.After(covered[n-1].To) {
			covered[n-1].To = later(covered[n-1].To, h.To)
			continue
		}
		covered = append(covered, Gap{From: h.From, To: h.To})
	}
	for _, h := range all {
		if h.From, h.To = later(h.From, c.From), earlier(h.To, c.To); h.From.Before(h.To) {
			c.held = append(c.held, h)
		}
	}
	if !c.Shadow {
		return covered
	}
	at, why := c.From, "the log begins later"
	for _, g := range covered {
		if g.To.Before(c.From) {
			at, why = c.From, "nothing was logged"
			continue
		}
		if to := earlier(g.From, c.To); at.Before(to) {
			c.Gaps = append(c.Gaps, Gap{at, to, why})
		}
		if from, to := later(g.From, c.From), earlier(g.To, c.To); from.Before(to) {
			c.Seen += Duration(to.Sub(from))
		}
		at, why = later(at, g.To), "nothing was logged"
	}
	if at.Before(c.To) {
		if len(covered) > 0 {
			why = "the log ends before"
		}
		c.Gaps = append(c.Gaps, Gap{at, c.To, why})
	}
	return covered
}

// decided reports whether the other side would have been seen doing the same: the moment was seen,
// and so was the window before and after it, but for gaps that are shorter than the window.
func decided(at time.Time, window time.Duration, covered []Gap) bool {
	i, exact := slices.BinarySearchFunc(covered, at, func(g Gap, at time.Time) int { return g.From.Compare(at) })
	if !exact {
		i--
	}
	if i < 0 || at.After(covered[i].To) {
		return false
	}
	for j := i; covered[j].From.After(at.Add(-window)); j-- {
		if j == 0 || covered[j].From.Sub(covered[j-1].To) >= window {
			return false
		}
	}
	for j := i; covered[j].To.Before(at.Add(window)); j++ {
		if j == len(covered)-1 || covered[j+1].From.Sub(covered[j].To) >= window {
			return false
		}
	}
	return true
}

// servedOnce leaves of the records of a pod's end of waiting on a side the first: a process that begins
// anew may record it again.
func servedOnce(log []record.Record) []record.Record {
	known := map[record.Bound]bool{}
	return slices.DeleteFunc(log, func(r record.Record) bool {
		if r.Bound == nil {
			return false
		}
		key := record.Bound{Pod: r.Bound.Pod, Side: r.Bound.Side, PendingSince: r.Bound.PendingSince}
		again := known[key]
		known[key] = true
		return again
	})
}

// figures adds up what the log has of the span.
func (c *Comparison) figures(log []record.Record) {
	type sums struct{ world, windlass Paid }
	byGroup := map[string]*sums{}
	for _, h := range c.held {
		hours := h.length().Hours()
		for _, g := range h.sample.Groups {
			s := byGroup[g.Group]
			if s == nil {
				s = &sums{}
				byGroup[g.Group] = s
			}
			s.world.add(g.World, hours)
			s.windlass.add(g.Windlass, hours)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byGroup)) {
		s := byGroup[name]
		c.Groups = append(c.Groups, Group{cmp.Or(name, "other groups"), Both[Paid]{s.world, s.windlass}, name})
		c.Total.World.plus(s.world)
		c.Total.Windlass.plus(s.windlass)
	}
	c.queue(log)
	var waits Both[[]time.Duration]
	for _, r := range log {
		b := r.Bound
		if b == nil || !c.in(r.At) {
			continue
		}
		list, of := &waits.World, &c.Pending.World
		if b.Side == record.Windlass {
			list, of = &waits.Windlass, &c.Pending.Windlass
		}
		if b.Node == "" {
			of.Unserved++
			continue
		}
		*list = append(*list, r.Pending())
	}
	c.Pending.World.of(waits.World)
	c.Pending.Windlass.of(waits.Windlass)
}

// queue notes when pods were pending, by the records of when they were not any more. One that Windlass
// has served alone is pending in the world to the end.
func (c *Comparison) queue(log []record.Record) {
	type pod struct {
		name  string
		since time.Time
	}
	open := map[pod]bool{}
	for _, r := range log {
		b := r.Bound
		switch {
		case b == nil:
		case b.Side == record.Windlass:
			c.queued.Windlass = append(c.queued.Windlass, Gap{From: b.PendingSince, To: r.At})
			if _, ended := open[pod{b.Pod, b.PendingSince}]; !ended {
				open[pod{b.Pod, b.PendingSince}] = true
			}
		default:
			c.queued.World = append(c.queued.World, Gap{From: b.PendingSince, To: r.At})
			open[pod{b.Pod, b.PendingSince}] = false
		}
	}
	for p, still := range open {
		if still {
			c.queued.World = append(c.queued.World, Gap{From: p.since, To: later(c.To, p.since)})
		}
	}
}

func (p *Paid) add(s record.Size, hours float64) {
	p.NodeHours += float64(s.Nodes) * hours
	p.Dollars += s.DollarsPerHour * hours
	p.Unpriced = p.Unpriced || s.Nodes > 0 && s.DollarsPerHour == 0
}

func (p *Paid) plus(other Paid) {
	p.NodeHours += other.NodeHours
	p.Dollars += other.Dollars
	p.Unpriced = p.Unpriced || other.Unpriced
}

func (p *Pending) of(waits []time.Duration) {
	if len(waits) == 0 {
		return
	}
	slices.Sort(waits)
	at := func(share float64) Duration {
		return Duration(waits[max(0, int(math.Ceil(share*float64(len(waits))))-1)])
	}
	p.Pods, p.P50, p.P90, p.Max = len(waits), at(0.5), at(0.9), at(1)
	for _, w := range waits {
		p.Sum += Duration(w)
	}
}

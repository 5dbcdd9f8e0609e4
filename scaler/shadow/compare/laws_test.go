package compare

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"windlass.dev/windlass/scaler/shadow/record"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// drawLog is a log of some hours of a small cluster: a sample each minute, and what both sides did.
// With mirror Windlass decides what the world does, when it does it.
func drawLog(t *rapid.T, mirror bool) (log []record.Record) {
	minutes := rapid.IntRange(1, 240).Draw(t, "minutes")
	desired := Both[[3]int]{[3]int{1, 1, 1}, [3]int{1, 1, 1}}
	for minute := range minutes {
		at := noon.Add(time.Duration(minute) * time.Minute)
		for range rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 1, 2}).Draw(t, "doings") {
			world := drawDoing(t, at, true, &desired.World)
			log = append(log, world)
			if mirror {
				desired.Windlass = desired.World
				log = append(log, mirrored(world))
			}
		}
		if !mirror && rapid.IntRange(0, 7).Draw(t, "decides") == 0 {
			log = append(log, drawDoing(t, at, false, &desired.Windlass))
		}
		s := &record.Sample{Pending: rapid.IntRange(0, 3).Draw(t, "pending")}
		for g := range 3 {
			size := func(n int) record.Size { return record.Size{Desired: n, Nodes: n, DollarsPerHour: float64(n) * 0.25} }
			s.Groups = append(s.Groups, record.GroupSample{Group: fmt.Sprint("g", g), World: size(desired.World[g]), Windlass: size(desired.Windlass[g])})
		}
		log = append(log, record.Record{At: at, Sample: s}.Normal())
		if rapid.IntRange(0, 9).Draw(t, "twice") == 0 {
			log = append(log, record.Record{At: at, Sample: &record.Sample{Pending: 7}})
		}
		if rapid.IntRange(0, 9).Draw(t, "bound") == 0 {
			b := record.Bound{Pod: fmt.Sprint("default/p", minute), Side: record.World, Node: rapid.SampledFrom([]string{"", "n1"}).Draw(t, "on"), PendingSince: at.Add(-time.Duration(rapid.IntRange(0, 900).Draw(t, "waited")) * time.Second)}
			own := b
			own.Side = record.Windlass
			log = append(log, record.Record{At: at, Bound: &b})
			if mirror || rapid.Bool().Draw(t, "too") {
				log = append(log, record.Record{At: at, Bound: &own})
			}
		}
	}
	return log
}

// drawDoing is something that a side does.
func drawDoing(t *rapid.T, at time.Time, world bool, desired *[3]int) record.Record {
	r := record.Record{At: at.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "late")) * 15 * time.Second)}
	g := rapid.IntRange(0, 2).Draw(t, "group")
	group, why := fmt.Sprint("g", g), rapid.SampledFrom([]string{"a", "b", "c"})
	switch kind := rapid.IntRange(0, 3).Draw(t, "does"); {
	case kind < 2:
		from := desired[g]
		desired[g] += rapid.IntRange(1, 3).Draw(t, "by")
		pods := rapid.SliceOfN(rapid.SampledFrom([]string{"a/1", "a/2", "a/3"}), 0, 2).Draw(t, "pods")
		if world {
			r.Seen = &record.Seen{By: record.ByAutoscaler, Kind: record.ScaleUp, Group: group, From: from, To: desired[g], Pods: pods, Why: why.Draw(t, "why")}
		} else {
			r.Decided = &record.Decided{Kind: record.Grow, Group: group, From: from, To: desired[g], Pods: pods, Why: why.Draw(t, "why")}
		}
	default:
		desired[g] = max(0, desired[g]-1)
		node := fmt.Sprint("n", rapid.IntRange(0, 4).Draw(t, "node"))
		if world {
			r.Seen = &record.Seen{By: rapid.SampledFrom([]string{record.ByAutoscaler, record.ByUnknown}).Draw(t, "by"), Kind: rapid.SampledFrom([]string{record.ScaleDown, record.Tainted}).Draw(t, "kind"), Group: group, Node: node, Why: why.Draw(t, "why")}
		} else {
			r.Decided = &record.Decided{Kind: record.RequestDrain, Group: group, Node: node, Why: why.Draw(t, "why")}
		}
	}
	return r.Normal()
}

// mirrored is what Windlass decides to have what was seen.
func mirrored(r record.Record) record.Record {
	s := r.Seen
	d := &record.Decided{Kind: record.Grow, Group: s.Group, Node: s.Node, From: s.From, To: s.To, Pods: s.Pods, Why: s.Why}
	if s.Node != "" {
		d.Kind = record.RequestDrain
	}
	return record.Record{At: r.At, Decided: d}.Normal()
}

// TestMirrorAgrees: where Windlass decides what the world does, both agree in all and have the same
// figures.
func TestMirrorAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Of(Input{Log: record.Book{Records: drawLog(t, true)}})
		for _, count := range []Count{c.Agreement.ScaleUps, c.Agreement.ScaleDowns} {
			if count.Share() != 1 || count.Diverged+count.Undecided+count.Others > 0 {
				t.Fatalf("%+v; %+v", count, c.First)
			}
		}
		if done := len(c.sides.grown.World) + len(c.sides.removed.World); c.Agreement.ScaleUps.Agreed+c.Agreement.ScaleDowns.Agreed != done {
			t.Fatalf("%+v of %d doings", c.Agreement, done)
		}
		if diff := cmp.Diff(c.Total.World, c.Total.Windlass); diff != "" || c.Pending.World != c.Pending.Windlass {
			t.Fatalf("figures differ: %s%+v", diff, c.Pending)
		}
	})
}

// TestOrderOfEqualTimes: how records of one date came changes nothing, nor that some of them were
// read twice.
func TestOrderOfEqualTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := drawLog(t, false)
		shuffled := rapid.Permutation(log).Draw(t, "shuffled")
		var direct []record.Record
		for _, r := range log {
			if r.Seen != nil && rapid.Bool().Draw(t, "read directly") {
				direct = append(direct, r)
			}
		}
		want, got := Of(Input{Log: record.Book{Records: log}}), Of(Input{Log: record.Book{Records: shuffled}, Direct: direct})
		if diff := cmp.Diff(text(t, want), text(t, got)); diff != "" {
			t.Fatalf("(-in order +shuffled):\n%s", diff)
		}
		if a, b := want.Page(), got.Page(); a != b {
			t.Fatalf("pages differ: %s", cmp.Diff(a, b))
		}
	})
}

func text(t interface{ Fatal(...any) }, c Comparison) string {
	out, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestCutting: two parts of a span add up to the whole.
func TestCutting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := drawLog(t, rapid.Bool().Draw(t, "mirror"))
		if rapid.Bool().Draw(t, "with a gap") {
			log = without(t, log)
		}
		at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
		cut := rapid.IntRange(-10, 260).Draw(t, "cut")
		of := func(from, to time.Time) Comparison {
			return Of(Input{Log: record.Book{Records: log}, From: from, To: to})
		}
		whole, a, b := of(at(-10), at(260)), of(at(-10), at(cut)), of(at(cut), at(260))
		sum := func(x, y float64) float64 { return math.Round((x+y)*1e6) / 1e6 }
		type figures struct {
			Hours, Dollars Both[float64]
			Ups, Downs     Count
			Quiet, Minutes int
			Pods, Unserved Both[int]
			Pending        Both[Duration]
			Seen           Duration
			Kinds          map[Kind]int
		}
		added := func(a, b Comparison) figures {
			f := figures{
				Hours:    Both[float64]{sum(a.Total.World.NodeHours, b.Total.World.NodeHours), sum(a.Total.Windlass.NodeHours, b.Total.Windlass.NodeHours)},
				Dollars:  Both[float64]{sum(a.Total.World.Dollars, b.Total.World.Dollars), sum(a.Total.Windlass.Dollars, b.Total.Windlass.Dollars)},
				Ups:      a.Agreement.ScaleUps.plus(b.Agreement.ScaleUps),
				Downs:    a.Agreement.ScaleDowns.plus(b.Agreement.ScaleDowns),
				Quiet:    a.Agreement.QuietMinutes + b.Agreement.QuietMinutes,
				Minutes:  a.Agreement.Minutes + b.Agreement.Minutes,
				Pods:     Both[int]{a.Pending.World.Pods + b.Pending.World.Pods, a.Pending.Windlass.Pods + b.Pending.Windlass.Pods},
				Unserved: Both[int]{a.Pending.World.Unserved + b.Pending.World.Unserved, a.Pending.Windlass.Unserved + b.Pending.Windlass.Unserved},
				Pending:  Both[Duration]{a.Pending.World.Sum + b.Pending.World.Sum, a.Pending.Windlass.Sum + b.Pending.Windlass.Sum},
				Seen:     a.Seen + b.Seen, Kinds: map[Kind]int{},
			}
			for _, c := range []Comparison{a, b} {
				for kind, n := range c.ByKind {
					f.Kinds[kind] += n
				}
			}
			return f
		}
		if diff := cmp.Diff(added(whole, Comparison{}), added(a, b)); diff != "" {
			t.Fatalf("cut at minute %d (-whole +parts):\n%s", cut, diff)
		}
	})
}

func (c Count) plus(o Count) Count {
	return Count{c.Agreed + o.Agreed, c.Diverged + o.Diverged, c.Undecided + o.Undecided, c.Others + o.Others}
}

// without is a log that has not seen some time, or some minutes here and there.
func without(t *rapid.T, log []record.Record) []record.Record {
	from := noon.Add(time.Duration(rapid.IntRange(0, 240).Draw(t, "away from")) * time.Minute)
	to := from.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "away for")) * time.Minute)
	return slices.DeleteFunc(slices.Clone(log), func(r record.Record) bool { return !r.At.Before(from) && r.At.Before(to) })
}

// TestNothingFalse: what one side did alone is claimed only where the log has seen the window around
// it, but for less than a window at once; and no figure is of a time that it has not seen.
func TestNothingFalse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := without(t, drawLog(t, false))
		seen := map[int64]bool{} // by second
		var last time.Time
		for _, r := range log {
			if r.Sample == nil {
				continue
			}
			from := r.At
			if !last.IsZero() && r.At.Sub(last) <= 150*time.Second {
				from = last
			}
			for at := from; at.Before(r.At.Add(time.Minute)); at = at.Add(time.Second) {
				seen[at.Unix()] = true
			}
			last = r.At
		}
		c := Of(Input{Log: record.Book{Records: log}, From: noon.Add(-time.Hour), To: noon.Add(6 * time.Hour)})
		for _, d := range c.Divergences {
			window := 5 * time.Minute
			switch d.Kind {
			case OnlyWorldRemoved, OnlyWindlassRemoved:
				window = 30 * time.Minute
			case OnlyWorldGrew, OnlyWindlassGrew:
			default:
				continue
			}
			if !seen[d.At.Unix()] {
				t.Fatalf("%+v is claimed, when nothing was seen", d)
			}
			unseen := 0
			for at := d.At.Add(-2 * window); at.Before(d.At.Add(2 * window)); at = at.Add(time.Second) {
				if seen[at.Unix()] {
					unseen = 0
					continue
				}
				unseen++
				begun := at.Add(-time.Duration(unseen-1) * time.Second)
				if time.Duration(unseen)*time.Second >= window && begun.Before(d.At.Add(window)) && at.After(d.At.Add(-window)) {
					t.Fatalf("%+v is claimed, although nothing was seen from %s until %s", d, begun, at)
				}
			}
		}
		if len(log) == 0 {
			return
		}
		if int(time.Duration(c.Seen).Seconds()) != len(seen) {
			t.Fatalf("%s were seen, want %d s", c.Seen, len(seen))
		}
		gaps := time.Duration(0)
		for _, g := range c.Gaps {
			gaps += g.length()
		}
		if gaps+time.Duration(c.Seen) != 7*time.Hour {
			t.Fatalf("gaps of %s and %s seen are not 7 hours", gaps, c.Seen)
		}
	})
}

// drawDoings are a few of one group, in order.
func drawDoings(t *rapid.T, named bool) (list []*doing) {
	for range rapid.IntRange(0, 5).Draw(t, "doings") {
		d := &doing{Doing: Doing{Group: "g", At: noon.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "minute")) * time.Minute)}}
		if named {
			d.Pods = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 2).Draw(t, "pods")
			d.PodCount = len(d.Pods) + rapid.IntRange(0, 1).Draw(t, "more")
		}
		list = append(list, d)
	}
	slices.SortStableFunc(list, func(a, b *doing) int { return a.At.Compare(b.At) })
	return list
}

// best tries every way to pair, without crossing unless that is allowed, and returns how many pairs
// there can be, and how little they are apart together.
func best(a, b []*doing, window time.Duration, crossing bool) (pairs int, apart time.Duration) {
	if len(a) == 0 {
		return 0, 0
	}
	pairs, apart = best(a[1:], b, window, crossing)
	for j := range b {
		p := pair{a[0], b[j]}
		if p.apart() > window || !samePods(a[0], b[j]) {
			continue
		}
		rest := b[j+1:]
		if crossing {
			rest = slices.Concat(b[:j], rest)
		}
		n, more := best(a[1:], rest, window, crossing)
		if n+1 > pairs || n+1 == pairs && more+p.apart() < apart {
			pairs, apart = n+1, more+p.apart()
		}
	}
	return pairs, apart
}

// TestMatchingIsBest: of all ways to pair a few doings in order, the one that is taken has the most
// pairs and of these the least time between them; where no pods are named, no crossing has more.
func TestMatchingIsBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		named := rapid.Bool().Draw(t, "named")
		world, windlass := drawDoings(t, named), drawDoings(t, named)
		const window = 5 * time.Minute
		n, apart := best(world, windlass, window, false)
		if most, least := best(world, windlass, window, true); !named && (most != n || least != apart) {
			t.Fatalf("crossing pairs %d, %s apart; in order %d, %s", most, least, n, apart)
		}
		m := matched(Both[[]*doing]{world, windlass}, window)
		sum := time.Duration(0)
		for _, p := range m.pairs {
			sum += p.apart()
		}
		if len(m.pairs) != n || sum != apart || len(m.world) != len(world)-n || len(m.windlass) != len(windlass)-n {
			t.Fatalf("%d pairs, %s apart, and %d and %d left; want %d pairs, %s apart", len(m.pairs), sum, len(m.world), len(m.windlass), n, apart)
		}
	})
}

// Growth for other pods of the same owner is the same growth: which of them each side names first is
// chance.
func TestSameOwner(t *testing.T) {
	for _, c := range []struct {
		world, windlass string
		same            int
	}{
		{"shop/api-7d8f6c9b4-x2x4z", "shop/api-7d8f6c9b4-b5d6f", 1},
		{"shop/db-0", "shop/db-11", 1},
		{"shop/api-7d8f6c9b4-x2x4z", "shop/web-7d8f6c9b4-x2x4z", 0},
		{"shop/api-7d8f6c9b4-x2x4z", "test/api-7d8f6c9b4-x2x4z", 0},
		{"shop/api-first", "shop/api-other", 0},
		{"shop/alone", "shop/alone", 1},
	} {
		grew := func(pod string) []*doing {
			return []*doing{{Doing: Doing{Group: "g", At: noon, Pods: []string{pod}, PodCount: 1}}}
		}
		m := matched(Both[[]*doing]{grew(c.world), grew(c.windlass)}, time.Minute)
		if len(m.pairs) != c.same {
			t.Errorf("%s and %s: %d pairs, want %d", c.world, c.windlass, len(m.pairs), c.same)
		}
		elsewhere := grew(c.world)
		elsewhere[0].Group = "other"
		m = matched(Both[[]*doing]{elsewhere, grew(c.windlass)}, time.Minute)
		if akin := m.akin(time.Minute); len(akin) != c.same {
			t.Errorf("%s and %s in different groups: %d pairs, want %d", c.world, c.windlass, len(akin), c.same)
		}
	}
}

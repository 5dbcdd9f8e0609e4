// Package compare holds what a Cluster Autoscaler did against what Windlass would have done, as the
// log of a shadow has both.
//
//	compare.go what a comparison says, and how it comes about
//	sides.go   what each side did, out of records: several of them tell of one scale-up
//	match.go   which doing of one side is which of the other
//	figures.go nodes, dollars and pending pods; what the log has not seen
//	table.go   for people
//	page.go    as a page of HTML
package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/shadow/record"
)

// Input is what is compared.
type Input struct {
	// Log is the shadow's; without records there is none.
	Log record.Book
	// Direct is what was read of Events, activities and the status now.
	Direct []record.Record
	// Missing names what was not read.
	Missing []string
	// From and To bound the time; zero stands for that of samples and of records that are believed.
	From, To time.Time
	// Now is the end of that time at the latest; zero where that is not known.
	Now     time.Time
	Windows Windows
}

// Windows are how far the same on both sides may be apart.
type Windows struct {
	ScaleUp   Duration `json:"scaleUpSeconds"`
	ScaleDown Duration `json:"scaleDownSeconds"`
}

// Duration is seconds in JSON.
type Duration time.Duration

// MarshalJSON writes seconds, with a fraction where there is one.
func (d Duration) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, time.Duration(d).Seconds(), 'f', -1, 64), nil
}

// Usual are the windows where people name none: Cluster Autoscaler grows for a pod within a minute
// or so, and removes unneeded nodes with pods one after the other.
var Usual = Windows{ScaleUp: Duration(5 * time.Minute), ScaleDown: Duration(30 * time.Minute)}

// Comparison is what comes out, of one span of time.
type Comparison struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Shadow is false where there is no log: of Windlass' side nothing is known then.
	Shadow  bool    `json:"shadow"`
	Windows Windows `json:"windows"`

	Agreement Agreement `json:"agreement"`
	// First is the first of Divergences.
	First *Divergence `json:"firstDivergence,omitempty"`
	// Divergences are in the order of their dates, at most mostListed; ByKind counts all.
	Divergences []Divergence `json:"divergences"`
	ByKind      map[Kind]int `json:"divergencesByKind"`
	// Notes are where the shadow had to follow the world.
	Notes []Note `json:"notes,omitempty"`

	Pending Both[Pending] `json:"pending"`
	Groups  []Group       `json:"groups"`
	Total   Both[Paid]    `json:"total"`
	// Seen is how much of the time the log has seen: nodes and dollars are of that alone.
	Seen Duration `json:"seenSeconds"`
	// Gaps are when it saw nothing, Missing what else keeps figures from being whole.
	Gaps    []Gap    `json:"gaps,omitempty"`
	Missing []string `json:"missing,omitempty"`

	// For the page: what held when, when pods were pending, and what was done.
	held   []held
	queued Both[[]Gap]
	sides  sides
	// nameless: the world has removed nodes, and no record says which.
	nameless bool
}

// Both has the same of both sides.
type Both[T any] struct {
	World    T `json:"world"`
	Windlass T `json:"windlass"`
}

// Agreement counts what both sides did, and what one did alone.
type Agreement struct {
	ScaleUps   Count `json:"scaleUps"`
	ScaleDowns Count `json:"scaleDowns"`
	// QuietMinutes are those in which neither side did anything, of all minutes that were seen.
	QuietMinutes int `json:"quietMinutes"`
	Minutes      int `json:"minutes"`
}

// Count is of one kind of doing.
type Count struct {
	Agreed int `json:"agreed"`
	// Diverged are divergences. Undecided are doings of one side so near a time that was not seen
	// that the other may have done the same there.
	Diverged  int `json:"diverged"`
	Undecided int `json:"undecided"`
	// Others are doings of the world that no autoscaler asked for: of Auto Scaling itself, and of
	// people.
	Others int `json:"others"`
}

// Share is how much of what is decided both sides agreed on; 1 where nothing was done.
func (c Count) Share() float64 {
	if c.Agreed+c.Diverged == 0 {
		return 1
	}
	return float64(c.Agreed) / float64(c.Agreed+c.Diverged)
}

// Kind is a kind of divergence.
type Kind string

// The kinds.
const (
	OnlyWorldGrew       Kind = "OnlyWorldGrew"
	OnlyWindlassGrew    Kind = "OnlyWindlassGrew"
	OtherGroup          Kind = "OtherGroup"
	OtherSize           Kind = "OtherSize"
	OnlyWorldRemoved    Kind = "OnlyWorldRemoved"
	OnlyWindlassRemoved Kind = "OnlyWindlassRemoved"
	OtherTime           Kind = "OtherTime"
)

// Kinds are all of them, each with what it says.
var Kinds = []struct {
	Kind Kind
	Says string
}{
	{OnlyWorldGrew, "the world grew a group, Windlass would not have"},
	{OnlyWindlassGrew, "Windlass would have grown a group, the world did not"},
	{OtherGroup, "both grew for the same pods, another group each"},
	{OtherSize, "both grew the same group, by another number of nodes"},
	{OnlyWorldRemoved, "the world removed a node, Windlass would not have"},
	{OnlyWindlassRemoved, "Windlass would have removed a node, the world did not"},
	{OtherTime, "both removed the same node, at other times"},
}

// Divergence is something that one side did and the other did not, or did otherwise.
type Divergence struct {
	Kind Kind      `json:"kind"`
	At   time.Time `json:"at"`
	// World and Windlass are what each did, or why it did nothing.
	World    Doing `json:"world"`
	Windlass Doing `json:"windlass"`
}

// Doing is what one side did. One that did nothing has no date.
type Doing struct {
	At    time.Time `json:"at,omitzero"`
	By    string    `json:"by,omitempty"`
	Group string    `json:"group,omitempty"`
	Node  string    `json:"node,omitempty"`
	From  int       `json:"from,omitempty"`
	To    int       `json:"to,omitempty"`
	Pods  []string  `json:"pods,omitempty"`
	// PodCount is of all pods, of which Pods are the first.
	PodCount int    `json:"podCount,omitempty"`
	Why      string `json:"why,omitempty"`
}

// Note is a record.Diverged.
type Note struct {
	At time.Time `json:"at"`
	record.Diverged
}

const (
	// mostListed bounds how many divergences and notes are named.
	mostListed = 2000
	// unsaid stands where no record has a reason.
	unsaid = "no reason is recorded"
)

// Of compares. It never fails: what cannot be told is missing, and said.
func Of(in Input) Comparison {
	in.Windows.ScaleUp, in.Windows.ScaleDown = cmp.Or(in.Windows.ScaleUp, Usual.ScaleUp), cmp.Or(in.Windows.ScaleDown, Usual.ScaleDown)
	all := slices.Concat(in.Log.Records, in.Direct)
	undated := len(all)
	all = slices.DeleteFunc(all, func(r record.Record) bool { return !r.Valid() })
	undated -= len(all)
	slices.SortStableFunc(all, order)
	all = slices.CompactFunc(all, same)
	log := servedOnce(slices.SortedStableFunc(slices.Values(in.Log.Records), order))

	c := Comparison{From: in.From, To: in.To, Shadow: len(in.Log.Records) > 0, Windows: in.Windows, Divergences: []Divergence{}, ByKind: map[Kind]int{}, Groups: []Group{}}
	from, to := spanOf(all, in.Now)
	if c.From.IsZero() {
		c.From = from
	}
	if c.To.IsZero() {
		c.To = to
	}
	if c.To.Before(c.From) {
		c.To = c.From
	}
	samples := hold(log)
	covered := c.cover(samples)
	changes, fell := resized(samples)
	all = append(all, changes...)
	slices.SortStableFunc(all, order)
	c.figures(log)
	c.decide(all, covered, fell)
	c.missing(in.Log, in.Missing, undated)
	return c
}

// spanOf is the time of records, which are in order, until now: the dates of claims are tenants' choice.
func spanOf(all []record.Record, now time.Time) (from, to time.Time) {
	for _, r := range all {
		if r.Seen != nil && r.Seen.By == record.ByClaim {
			continue
		}
		if from.IsZero() {
			from = r.At
		}
		to = r.At.Add(time.Millisecond) // with what happened then
	}
	if !now.IsZero() {
		from, to = earlier(from, now), earlier(to, now)
	}
	return from, to
}

// in reports whether a moment is of the span.
func (c *Comparison) in(t time.Time) bool {
	return !t.Before(c.From) && t.Before(c.To) || t.Equal(c.To) && c.From.Equal(c.To)
}

// decide holds what both sides did against each other. All of the log takes part, or what is near
// the ends of the span would differ with the span.
func (c *Comparison) decide(all []record.Record, covered []Gap, fell bool) {
	s := sidesOf(all)
	c.sides = s
	c.nameless = fell && len(s.removed.World) == 0
	up, down := time.Duration(c.Windows.ScaleUp), time.Duration(c.Windows.ScaleDown)
	list := c.judge(s, matched(s.grown, up), &c.Agreement.ScaleUps, up, covered)
	list = append(list, c.judge(s, matched(s.removed, down), &c.Agreement.ScaleDowns, down, covered)...)
	if !c.Shadow {
		list = nil
	}
	slices.SortStableFunc(list, func(a, b Divergence) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.World.Group+a.Windlass.Group, b.World.Group+b.Windlass.Group), cmp.Compare(a.World.Node+a.Windlass.Node, b.World.Node+b.Windlass.Node))
	})
	for _, d := range list {
		c.ByKind[d.Kind]++
	}
	c.Divergences = append(c.Divergences, list[:min(len(list), mostListed)]...)
	if len(list) > 0 {
		c.First = &c.Divergences[0]
	}
	for _, r := range all {
		if r.Diverged != nil && c.in(r.At) && len(c.Notes) < mostListed {
			c.Notes = append(c.Notes, Note{r.At, *r.Diverged})
		}
	}
	c.quiet(s, covered)
}

// judge counts pairs, and makes divergences of what has none.
func (c *Comparison) judge(s sides, m matching, count *Count, window time.Duration, covered []Gap) (list []Divergence) {
	add := func(kind Kind, world, windlass *doing) {
		d := Divergence{Kind: kind}
		for _, side := range []*doing{windlass, world} {
			if side != nil && (d.At.IsZero() || side.At.Before(d.At)) {
				d.At = side.At
			}
		}
		if !c.in(d.At) {
			return
		}
		d.World, d.Windlass = s.done(world, windlass, record.World, window), s.done(windlass, world, record.Windlass, window)
		count.Diverged++
		list = append(list, d)
	}
	for _, p := range slices.Concat(m.pairs, m.akin(window)) {
		switch {
		case p.world.others():
			if c.in(p.world.At) {
				count.Others++
			}
		case !p.world.removes && p.world.Group != p.windlass.Group:
			add(OtherGroup, p.world, p.windlass)
		case p.world.removes && p.apart() > window:
			add(OtherTime, p.world, p.windlass)
		case p.world.size() != p.windlass.size():
			add(OtherSize, p.world, p.windlass)
		case c.in(earlier(p.world.At, p.windlass.At)):
			count.Agreed++
		}
	}
	for _, side := range []struct {
		alone         []*doing
		grew, removed Kind
		world         bool
	}{{m.world, OnlyWorldGrew, OnlyWorldRemoved, true}, {m.windlass, OnlyWindlassGrew, OnlyWindlassRemoved, false}} {
		for _, d := range side.alone {
			switch {
			case d.taken || !c.in(d.At):
			case side.world && d.others():
				count.Others++
			case !decided(d.At, window, covered), d.removes && c.nameless:
				count.Undecided++
			case side.world && d.removes:
				add(side.removed, d, nil)
			case side.world:
				add(side.grew, d, nil)
			case d.removes:
				add(side.removed, nil, d)
			default:
				add(side.grew, nil, d)
			}
		}
	}
	return list
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// quiet counts minutes that were seen, and those in which neither side began anything.
func (c *Comparison) quiet(s sides, covered []Gap) {
	busy := map[int64]bool{}
	for _, list := range [][]*doing{s.grown.World, s.grown.Windlass, s.removed.World, s.removed.Windlass} {
		for _, d := range list {
			if c.in(d.At) {
				busy[d.At.Unix()/60] = true
			}
		}
	}
	last := int64(-1 << 62)
	for _, g := range covered {
		from, to := later(g.From, c.From), earlier(g.To, c.To)
		for minute := max(last+1, from.Unix()/60); !to.Before(from) && minute < to.Unix()/60; minute++ {
			last = minute
			c.Agreement.Minutes++
			if !busy[minute] {
				c.Agreement.QuietMinutes++
			}
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// missing says what keeps figures from being whole.
func (c *Comparison) missing(log record.Book, unread []string, undated int) {
	add := func(format string, args ...any) {
		c.Missing = append(c.Missing, contract.OneLine(fmt.Sprintf(format, args...)))
	}
	if !c.Shadow {
		add("a log of a shadow: what Windlass would have done is not known; windlass-scaler run --dry-run writes one")
	}
	for _, part := range unread {
		add("%s", part)
	}
	for _, fault := range log.Faults {
		add("a part of the log: %s", fault)
	}
	if n := log.Omitted.Records; n > 0 {
		add("%d record%s for which the log had no room", n, s(n))
	}
	for _, side := range []record.Side{record.World, record.Windlass} {
		if n := log.Omitted.Bound[side]; n > 0 {
			add("in the figures of %s %d pod%s, pending for %s together", side, n, s(n), Duration(log.Omitted.PendingSeconds[side])*Duration(time.Second))
		}
	}
	if c.nameless {
		add("the names of the nodes that the world has removed: scale-downs are not held against each other")
	}
	if undated > 0 {
		add("%d record%s without a date, left out", undated, s(undated))
	}
	for _, g := range c.Groups {
		if g.World.Unpriced || g.Windlass.Unpriced {
			add("a price for nodes of group %s: its dollars are too few", g.Group)
		}
	}
}

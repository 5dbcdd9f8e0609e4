// Package record is the log of a shadow: what it saw in the world, and what it decided and did not
// do.
//
//	record.go one record: its kinds, and their bounds
//	lives.go  pods that came and ended, and what groups are made of
//	chunk.go  records as bytes: a part of the log, as it stands in a ConfigMap
//	log.go    the log that is written: which records find room, and when a chunk is full
//	book.go   the log that is read: chunks in their order, and what is missing
//
// In its text form a record is an object of JSON on a line of its own.
package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// SampleEvery is how far samples are apart at the most, while a shadow runs. A longer time without
// one is a gap in the log.
const SampleEvery = time.Minute

// Missed is the longest time between two samples that was seen all the same: one that is late is no
// gap.
const Missed = SampleEvery * 5 / 2

// Record is one thing that was seen or decided. Exactly one of the pointers is set.
type Record struct {
	At       time.Time `json:"t"`
	Sample   *Sample   `json:"sample,omitempty"`
	Decided  *Decided  `json:"decided,omitempty"`
	Seen     *Seen     `json:"seen,omitempty"`
	Bound    *Bound    `json:"bound,omitempty"`
	Diverged *Diverged `json:"diverged,omitempty"`
	Began    *Began    `json:"began,omitempty"`
	Pods     *Pods     `json:"pods,omitempty"`
	Groups   *Groups   `json:"groups,omitempty"`
}

// Side is whose doing something is.
type Side string

const (
	// World is what really is, whoever brought it about.
	World Side = "world"
	// Windlass is what would be if it acted, as far as the shadow can assume that.
	Windlass Side = "windlass"
)

// Sample is how many nodes there are on both sides. One is taken each SampleEvery, and when a
// figure changes.
type Sample struct {
	Groups []GroupSample `json:"groups,omitempty"`
	// Pending are pods that are pending in the world.
	Pending int `json:"pending,omitempty"`
}

// GroupSample is one group's. The groups beyond MostGroups are in one with an empty name.
type GroupSample struct {
	Group    string `json:"g,omitempty"`
	World    Size   `json:"world"`
	Windlass Size   `json:"windlass"`
}

// Size is how large a group is.
type Size struct {
	Desired int `json:"d,omitempty"`
	// Nodes are those that are paid for, whether they are up or not.
	Nodes int `json:"n,omitempty"`
	// DollarsPerHour is what these cost together, in US dollars.
	DollarsPerHour float64 `json:"usd,omitempty"`
}

// Decided is an action that Windlass would have carried out.
type Decided struct {
	// Kind is the action's, as action.Traits has it.
	Kind  string `json:"kind"`
	Group string `json:"g,omitempty"`
	Node  string `json:"node,omitempty"`
	// From and To are the group's desired capacity before and after, on Windlass' side.
	From int `json:"from,omitempty"`
	To   int `json:"to,omitempty"`
	// Pods are the first MostPods of those that it is for, as namespace/name; PodCount is of all.
	Pods     []string `json:"pods,omitempty"`
	PodCount int      `json:"podCount,omitempty"`
	Why      string   `json:"why,omitempty"`
}

// String is the action for people.
func (d Decided) String() string {
	text := d.Kind
	if d.Group != "" {
		text += " " + d.Group
	}
	if d.To != d.From {
		text += fmt.Sprintf(" %d→%d", d.From, d.To)
	}
	if d.Node != "" {
		text += " " + d.Node
	}
	if len(d.Pods) > 0 {
		text += " for " + strings.Join(d.Pods, ", ")
		if more := d.PodCount - len(d.Pods); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
	}
	if d.Why != "" {
		text += ": " + d.Why
	}
	return text
}

// The kinds of Decided that are compared with the world's: those of action.Grow,
// action.RequestDrain, action.CancelDrain and action.Terminate.
const (
	Grow         = "grow"
	RequestDrain = "request-drain"
	CancelDrain  = "cancel-drain"
	Terminate    = "terminate"
)

// Seen is something that happened in the world.
type Seen struct {
	By    string `json:"by"`
	Kind  string `json:"kind"`
	Group string `json:"g,omitempty"`
	Node  string `json:"node,omitempty"`
	// Instance is an activity's.
	Instance string   `json:"instance,omitempty"`
	From     int      `json:"from,omitempty"`
	To       int      `json:"to,omitempty"`
	Pods     []string `json:"pods,omitempty"`
	PodCount int      `json:"podCount,omitempty"`
	// Why has the words of whoever did it: the message of an Event, the cause of an activity.
	Why string `json:"why,omitempty"`
}

// Who did what was seen.
const (
	ByAutoscaler  = "cluster-autoscaler"
	ByAutoScaling = "auto-scaling" // of its own accord: health checks, zones, schedules, policies
	ByUnknown     = "unknown"
	// ByClaim is an Event of Cluster Autoscaler's name in a namespace in which tenants may write
	// Events: it explains what is known from elsewhere, and proves nothing.
	ByClaim = "claim"
)

// What was seen.
const (
	ScaleUp        = "ScaleUp"
	ScaleDown      = "ScaleDown"
	NodeCame       = "NodeCame"
	NodeGone       = "NodeGone"
	DesiredChanged = "DesiredChanged"
	Tainted        = "Tainted" // ToBeDeletedByClusterAutoscaler
	Failed         = "Failed"
	Unhelped       = "Unhelped" // Cluster Autoscaler has no node for a pod
)

// Bound is a pod that was pending on a side and is not any more. Without a Node it has ended.
type Bound struct {
	Pod          string    `json:"pod"`
	Side         Side      `json:"side"`
	PendingSince time.Time `json:"since"`
	Node         string    `json:"node,omitempty"`
}

// InUse is what a node is that was assumed removed and counts again.
const InUse = "in use"

// Diverged is where the world went another way than the shadow had assumed; its memory has followed
// the world.
type Diverged struct {
	Group   string `json:"g,omitempty"`
	Node    string `json:"node,omitempty"`
	Assumed string `json:"assumed"`
	Is      string `json:"is"`
	Why     string `json:"why,omitempty"`
}

// Began is the start of a shadow: what happened between the record before and this one was not
// seen.
type Began struct {
	Version string `json:"version,omitempty"`
	Why     string `json:"why,omitempty"`
}

const (
	// MostPods is how many pods a record names, MostGroups how many groups a sample has.
	MostPods   = 5
	MostGroups = 1000
	// mostWhy is the most bytes of a text for people.
	mostWhy = 512
	// precision is that of dates.
	precision = time.Millisecond
)

// Normal is the record as it is written: dates in UTC, ids and texts within their bounds. It shares
// nothing with r that a caller might change.
func (r Record) Normal() Record {
	r.At = date(r.At)
	switch {
	case r.Sample != nil:
		r.Sample = r.Sample.normal()
	case r.Decided != nil:
		d := *r.Decided
		d.Kind, d.Group, d.Node, d.Why = id(d.Kind), id(d.Group), id(d.Node), text(d.Why)
		d.Pods, d.PodCount, d.From, d.To = pods(d.Pods), number(max(d.PodCount, len(d.Pods))), number(d.From), number(d.To)
		r.Decided = &d
	case r.Seen != nil:
		s := *r.Seen
		s.By, s.Kind, s.Group, s.Node, s.Instance, s.Why = id(s.By), id(s.Kind), id(s.Group), id(s.Node), id(s.Instance), text(s.Why)
		s.Pods, s.PodCount, s.From, s.To = pods(s.Pods), number(max(s.PodCount, len(s.Pods))), number(s.From), number(s.To)
		r.Seen = &s
	case r.Bound != nil:
		b := *r.Bound
		b.Pod, b.Side, b.Node, b.PendingSince = id(b.Pod), Side(id(string(b.Side))), id(b.Node), date(b.PendingSince)
		r.Bound = &b
	case r.Diverged != nil:
		d := *r.Diverged
		d.Group, d.Node, d.Assumed, d.Is, d.Why = id(d.Group), id(d.Node), text(d.Assumed), text(d.Is), text(d.Why)
		r.Diverged = &d
	case r.Began != nil:
		r.Began = &Began{text(r.Began.Version), text(r.Began.Why)}
	case r.Pods != nil:
		r.Pods = r.Pods.normal()
	case r.Groups != nil:
		r.Groups = r.Groups.normal()
	}
	return r
}

// normal has the groups beyond the most in one, so that sums stay.
func (s Sample) normal() *Sample {
	var groups []GroupSample
	var rest GroupSample
	for i, g := range s.Groups {
		g = GroupSample{id(g.Group), g.World.normal(), g.Windlass.normal()}
		if i < MostGroups {
			groups = append(groups, g)
			continue
		}
		rest.World, rest.Windlass = rest.World.plus(g.World).normal(), rest.Windlass.plus(g.Windlass).normal()
	}
	if len(s.Groups) > MostGroups {
		groups = append(groups, rest)
	}
	return &Sample{Groups: groups, Pending: number(s.Pending)}
}

func (s Size) plus(o Size) Size {
	return Size{s.Desired + o.Desired, s.Nodes + o.Nodes, s.DollarsPerHour + o.DollarsPerHour}
}

// mostDollars is more than any group costs an hour: what is above is no price.
const mostDollars = 1e9

// dollars is a price to the millionth, 0 where it is none.
func dollars(d float64) float64 {
	if !(d > 0 && d <= mostDollars) {
		return 0
	}
	return math.Round(d*1e6) / 1e6
}

func date(t time.Time) time.Time { return t.UTC().Truncate(precision) }

// id is a name that stays one's own however long it is. What contract.ShortID returns is not too
// long.
func id(name string) string {
	if name = clean(name); len(name) <= 272 {
		return name
	}
	return contract.ShortID(name)
}

// text is one for people.
func text(words string) string { return contract.Shorten(clean(words), mostWhy) }

func clean(words string) string { return contract.OneLine(strings.ToValidUTF8(words, "�")) }

func pods(names []string) (few []string) {
	for _, name := range names[:min(len(names), MostPods)] {
		few = append(few, id(name))
	}
	return few
}

// mostNumber is more than there are of anything.
const mostNumber = 1e7

func number(n int) int { return min(max(0, n), mostNumber) }

func (s Size) normal() Size {
	return Size{number(s.Desired), number(s.Nodes), dollars(s.DollarsPerHour)}
}

// Valid reports whether it says one thing, at a moment that can be.
func (r Record) Valid() bool {
	said := 0
	for _, is := range []bool{r.Sample != nil, r.Decided != nil, r.Seen != nil, r.Bound != nil, r.Diverged != nil, r.Began != nil, r.Pods != nil, r.Groups != nil} {
		if is {
			said++
		}
	}
	return said == 1 && contract.IsDate(r.At) && (r.Bound == nil || contract.IsDate(r.Bound.PendingSince))
}

// line is the record's text form.
func (r Record) line() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(r)
	return b.Bytes(), err
}

// Text is the record's text form; empty of what has none.
func (r Record) Text() string {
	line, err := r.line()
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(line), "\n")
}

package view

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
)

// Status is one screen.
type Status struct {
	AsOf    AsOf               `json:"asOf"`
	Written time.Time          `json:"written,omitzero"`
	Leader  string             `json:"leader,omitempty"`
	DryRun  bool               `json:"dryRun,omitempty"`
	Faults  []Fault            `json:"faults"`
	Groups  []Group            `json:"groups"`
	Pending []PendingPods      `json:"pendingPods"`
	Drains  []Drain            `json:"drains"`
	Nodes   []ReasonCount      `json:"nodes"`
	Done    []Happening        `json:"lastHour"`
	Omitted statuspage.Omitted `json:"omitted,omitzero"`
	// EventsOmitted count in nothing that happened in the last hour: there were too many.
	EventsOmitted int `json:"eventsOmitted,omitempty"`
}

// Fault is something that people should mend.
type Fault struct {
	Of   string `json:"of"`
	Text string `json:"text"`
	// Do is what mends it, where the text does not say so itself.
	Do string `json:"do,omitempty"`
}

// Group is one group.
type Group struct {
	Name         string               `json:"name"`
	Min          int                  `json:"min"`
	Desired      int                  `json:"desired"`
	Max          int                  `json:"max"`
	Ready        int                  `json:"ready"`
	Upcoming     int                  `json:"upcoming"`
	Terminating  int                  `json:"terminating"`
	Spot         bool                 `json:"spot"`
	Both         bool                 `json:"both,omitempty"` // spot and on demand
	PricePerHour float64              `json:"pricePerHour,omitempty"`
	Reason       statuspage.Reason    `json:"reason"`
	Message      string               `json:"message"`
	BackOffs     []statuspage.BackOff `json:"backOffs,omitempty"`
}

// PendingPods are those with the same reason.
type PendingPods struct {
	Reason statuspage.Reason `json:"reason"`
	Count  int               `json:"count"`
	// Example is one of the largest class, and Message what is said of that.
	Example string `json:"example"`
	Message string `json:"message"`
	Do      string `json:"do,omitempty"`
}

// ReasonCount counts nodes.
type ReasonCount struct {
	Reason statuspage.Reason `json:"reason"`
	Count  int               `json:"count"`
}

// Drain is one that was asked for or is under way.
type Drain struct {
	Node      string         `json:"node"`
	Group     string         `json:"group,omitempty"`
	Kind      contract.Kind  `json:"kind,omitempty"`
	Phase     contract.Phase `json:"phase"`
	By        string         `json:"by,omitempty"`
	Reason    string         `json:"reason,omitempty"`
	Left      int            `json:"left"`
	BlockedBy []string       `json:"blockedBy,omitempty"`
	// Uncounted: Left says nothing, as the pods were not counted yet.
	Uncounted bool `json:"uncounted,omitempty"`
	// Failed is why it cannot be done; empty unless its phase says that it failed.
	Failed   string    `json:"failed,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Deadline time.Time `json:"deadline,omitzero"`
}

// Unanswered is the phase of a drain whose agent has not reported yet.
const Unanswered contract.Phase = "Requested"

// Happening is what happened several times.
type Happening struct {
	Event  string    `json:"event"`
	Count  int       `json:"count"`
	Last   time.Time `json:"last"`
	Latest string    `json:"latest"`
}

// hour is how far back the screen looks.
const hour = time.Hour

// Recent chooses the Events that a screen shows.
func Recent(now time.Time) func(*corev1.Event) bool {
	return func(e *corev1.Event) bool { return Tells(e, now.Add(-hour), false) }
}

// NewStatus draws the screen.
func NewStatus(w World) Status {
	drains := drains(w)
	s := Status{AsOf: w.AsOf(), Written: w.Page.Written, Leader: w.Page.Leader, DryRun: w.Page.DryRun, Faults: Faults(w), Groups: Groups(w), Pending: pending(w), Drains: drains, Nodes: counts(w), Done: []Happening{}, Omitted: w.Verdicts.Omitted, EventsOmitted: w.EventsOmitted}
	for _, e := range newStory(w, drains, w.Now.Add(-hour), false).Entries {
		i := slices.IndexFunc(s.Done, func(h Happening) bool { return h.Event == e.Event })
		if i < 0 {
			i = len(s.Done)
			s.Done = append(s.Done, Happening{Event: e.Event})
		}
		s.Done[i] = Happening{e.Event, s.Done[i].Count + 1, e.At, e.Object + ": " + e.Text}
	}
	return s
}

// calm are the reasons of groups that need no mending.
var calm = []statuspage.Reason{"Steady", "ScalingUp", "NodesUpcoming", "Replacing", "Unclaimed"}

// Faults are what people should mend.
func Faults(w World) []Fault {
	all := []Fault{}
	if w.Page.Trouble != "" {
		all = append(all, Fault{Of: "scaler", Text: w.Page.Trouble})
	}
	for _, text := range w.Page.Faults {
		all = append(all, Fault{Of: "cluster", Text: text})
	}
	for _, text := range w.Page.Others {
		all = append(all, Fault{Of: "other program", Text: text})
	}
	for i := range w.Verdicts.Groups {
		g := &w.Verdicts.Groups[i]
		if slices.Contains(calm, g.Reason) {
			all = append(all, hidden(g)...)
		} else {
			all = append(all, Fault{Of: ref(KindGroup, g.Name), Text: string(g.Reason) + ": " + g.Message(), Do: AdviceOn(KindGroup, g.Reason).Do})
		}
	}
	for _, text := range w.Page.Failing {
		all = append(all, Fault{Of: "action", Text: text})
	}
	return all
}

// Groups are all groups of which there is a verdict.
func Groups(w World) []Group {
	list := []Group{}
	for i := range w.Verdicts.Groups {
		list = append(list, newGroup(&w.Verdicts.Groups[i]))
	}
	return list
}

func newGroup(g *statuspage.Group) Group {
	return Group{g.Name, g.Min, g.Desired, g.Max, g.Ready, g.Upcoming, g.Terminating, g.Spot, g.Both, g.PricePerHour, g.Reason, g.Message(), g.BackOffs}
}

func pending(w World) []PendingPods {
	list := []PendingPods{}
	largest := map[statuspage.Reason]int{}
	for _, class := range w.Verdicts.Pods {
		i := slices.IndexFunc(list, func(p PendingPods) bool { return p.Reason == class.Reason })
		if i < 0 {
			i = len(list)
			list = append(list, PendingPods{Reason: class.Reason, Do: AdviceOn(KindPod, class.Reason).Do})
		}
		list[i].Count += class.Count
		if class.Count > largest[class.Reason] && len(class.Names) > 0 {
			largest[class.Reason] = class.Count
			list[i].Example, list[i].Message = class.Names[0], class.Message()
		}
	}
	slices.SortStableFunc(list, func(a, b PendingPods) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Reason, b.Reason)) })
	return list
}

func drains(w World) []Drain {
	groups := make(map[string]string, len(w.Verdicts.Nodes))
	for i := range w.Verdicts.Nodes {
		groups[w.Verdicts.Nodes[i].Name] = w.Verdicts.Nodes[i].Group
	}
	list := []Drain{}
	for i := range w.Nodes {
		if d, draining := drainOf(&w.Nodes[i], groups[w.Nodes[i].Name]); draining {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b Drain) int { return cmp.Compare(a.Node, b.Node) })
	return list
}

// drainOf reads the drain of a node off what agents, the scaler and people have written there.
func drainOf(n *corev1.Node, group string) (d Drain, draining bool) {
	d = Drain{Node: n.Name, Group: group, Phase: Unanswered, Uncounted: true}
	if value, asked := n.Annotations[contract.AnnotationDrainRequest]; asked {
		draining = true
		d.Kind = contract.KindRequest
		request, err := contract.ParseRequest(value)
		if err != nil {
			d.Reason = err.Error()
		} else {
			d.Kind, d.By, d.Reason, d.Since, d.Deadline = request.Kind, request.By, request.Reason, request.At.Time, request.Deadline.Time
		}
	}
	if value, reported := n.Annotations[contract.AnnotationDrainReport]; reported {
		draining = true
		report, err := contract.ParseReport(value)
		if err != nil {
			d.Reason = err.Error()
			return d, true
		}
		d.Phase, d.Left, d.Uncounted, d.BlockedBy = report.Phase, report.Left, !report.Counted(), report.BlockedBy
		d.Kind, d.Reason = cmp.Or(report.Kind, d.Kind), cmp.Or(d.Reason, report.Reason)
		if report.Phase == contract.PhaseFailed {
			d.Failed = report.Message
		}
		if !report.Since.IsZero() {
			d.Since = report.Since.Time
		}
		if !report.Deadline.IsZero() {
			d.Deadline = report.Deadline.Time
		}
	}
	if kind, tainted := contract.Draining(n.Spec.Taints); tainted && !draining {
		d.Kind, draining = kind, true
	}
	return d, draining
}

// Names are the groups.
func (s Status) Names() []string {
	var names []string
	for _, g := range s.Groups {
		names = append(names, ref(KindGroup, g.Name))
	}
	return names
}

// Rests says until when a group, or some of its zones, is not grown.
func (g Group) Rests() string {
	text := ""
	for _, b := range g.BackOffs {
		if text != "" {
			text += ", "
		}
		where := ""
		if b.Zone != "" {
			where = b.Zone + " "
		}
		text += fmt.Sprintf("%suntil %s", where, Clock(b.Until))
	}
	return text
}

// Clock prints a moment as verdicts do.
func Clock(t time.Time) string { return t.UTC().Format(time.TimeOnly) }

// ClockFrom does so for those who read it at that time, with the day where that could be meant
// otherwise: EC2 announces some deadlines weeks ahead.
func ClockFrom(now, t time.Time) string {
	if !now.IsZero() && t.Sub(now).Abs() >= 12*time.Hour {
		return t.UTC().Format(time.DateTime)
	}
	return Clock(t)
}

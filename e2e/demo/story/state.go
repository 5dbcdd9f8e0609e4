package story

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// State is everything that one picture shows.
type State struct {
	Now     time.Time     `json:"now"`
	Elapsed time.Duration `json:"elapsed"`
	Act     Act           `json:"act,omitzero"`
	Groups  []GroupLine   `json:"groups,omitempty"`
	Nodes   []NodeLine    `json:"nodes,omitempty"`
	Waiting []WaitingLine `json:"waiting,omitempty"`
	// Verdicts has the latest change first.
	Verdicts []Verdict `json:"verdicts,omitempty"`
	// Feed has the oldest first. FeedFrom is the number of its first entry
	// among all that ever were.
	Feed     []Happening `json:"feed,omitempty"`
	FeedFrom int         `json:"feedFrom,omitempty"`
}

// Act is the part of the play that is on.
type Act struct {
	Number int    `json:"number,omitempty"`
	Of     int    `json:"of,omitempty"`
	Title  string `json:"title,omitempty"`
	// About is a sentence on what happens in it.
	About string `json:"about,omitempty"`
	// Awaited are the conditions that must still come true.
	Awaited []string `json:"awaited,omitempty"`
}

// GroupLine is a group in the picture.
type GroupLine struct {
	Name                     string `json:"name"`
	Min, Desired, Ready, Max int
	Verdict                  verdict.Reason `json:"verdict,omitempty"`
}

// NodeLine is a node in the picture, or an instance that has none yet.
type NodeLine struct {
	Name   string `json:"name"`
	Group  string `json:"group"`
	Zone   string `json:"zone"`
	Type   string `json:"type"`
	Pods   int    `json:"pods"`
	State  Stage  `json:"state"`
	Detail string `json:"detail,omitempty"`
}

// Stage is where a node stands in its life.
type Stage string

// Stages of a node.
const (
	Coming      Stage = "coming"
	Ready       Stage = "ready"
	Unneeded    Stage = "unneeded"
	Cordoned    Stage = "cordoned"
	Draining    Stage = "draining"
	Blocked     Stage = "blocked"
	Drained     Stage = "drained"
	Terminating Stage = "terminating"
	Lost        Stage = "not ready"
)

// WaitingLine are the pods of a workload that have no node.
type WaitingLine struct {
	Workload string `json:"workload"`
	Count    int    `json:"count"`
}

// State is the picture of now, in which act is on.
func (s *Story) State(now time.Time, act Act) State {
	state := State{Now: now, Elapsed: now.Sub(s.began), Act: act, Feed: slices.Clone(s.feed.last), FeedFrom: s.feed.dropped, Waiting: s.waiting()}
	reasons := map[string]verdict.Reason{}
	for _, v := range s.verdicts {
		if v.Of == verdict.OfNode && s.nodes[v.Name].Name == "" {
			continue // published before the node went
		}
		state.Verdicts = append(state.Verdicts, v.Verdict)
		if v.Of == verdict.OfGroup {
			reasons[v.Name] = v.Reason
		}
	}
	for _, name := range s.groupNames() {
		g := s.groups[name]
		state.Groups = append(state.Groups, GroupLine{Name: name, Min: g.Min, Desired: g.Desired, Ready: s.ReadyIn(name), Max: g.Max, Verdict: reasons[name]})
		for _, i := range g.Instances {
			state.Nodes = append(state.Nodes, s.nodeLine(g, i))
		}
	}
	slices.SortFunc(state.Nodes, func(a, b NodeLine) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Name, b.Name))
	})
	return state
}

func (s *Story) waiting() []WaitingLine {
	by := map[string]WaitingLine{}
	for _, p := range s.pods {
		if !p.waits() {
			continue
		}
		l := by[p.Workload]
		l.Workload = p.Workload
		l.Count++
		by[p.Workload] = l
	}
	var lines []WaitingLine
	for _, l := range by {
		lines = append(lines, l)
	}
	slices.SortFunc(lines, func(a, b WaitingLine) int { return cmp.Compare(a.Workload, b.Workload) })
	return lines
}

func (s *Story) nodeLine(g Group, i Instance) NodeLine {
	line := NodeLine{Name: cmp.Or(view.ShortName(i.Node), i.ID), Group: g.Name, Zone: i.Zone, Type: i.Type, Pods: s.PodsOn(i.Node)}
	n, registered := s.nodes[i.Node]
	// A name can be given to a new instance while the old one's Node stands.
	registered = registered && n.Instance == i.ID
	line.State, line.Detail = n.stage(i, registered, s.joined[i.Node])
	return line
}

// stage says where a node stands. What weighs more comes first. Why it stands there, its
// agent says of a drain, and the verdicts of all else.
func (n Node) stage(i Instance, registered, joined bool) (Stage, string) {
	switch {
	case !registered && i.leaving():
		return Terminating, lifecycle(i)
	case !registered && i.Up:
		return Coming, "(joins)"
	case !registered:
		return Coming, "(boots)"
	case n.Terminating || i.State == "Terminating:Proceed":
		return Terminating, lifecycle(i)
	case n.drainEnded():
		return Drained, n.drain(i)
	case n.Report != nil && n.Report.Phase == contract.PhaseBlocked:
		return Blocked, n.drain(i)
	case n.Report != nil || n.Draining != "":
		return Draining, n.drain(i)
	case i.leaving():
		return Terminating, lifecycle(i)
	case !n.Ready && !joined:
		return Coming, "(not ready yet)"
	case !n.Ready:
		return Lost, ""
	case n.Unschedulable:
		return Cordoned, ""
	case n.Unneeded:
		return Unneeded, ""
	}
	return Ready, ""
}

// lifecycle tells where a leaving instance stands with Auto Scaling.
func lifecycle(i Instance) string {
	if !i.leaving() {
		return ""
	}
	if len(i.Hooks) > 0 {
		return i.State + " for hook " + strings.Join(i.Hooks, ", ")
	}
	return i.State
}

// drainEnded reports whether the agent has nothing left to do.
func (n Node) drainEnded() bool { return n.Report != nil && n.Report.Phase == contract.PhaseDrained }

// drain tells of a drain its kind, the hook that holds the instance for it, its deadline,
// and what the agent says of it.
func (n Node) drain(i Instance) string {
	var report contract.Report
	if n.Report != nil {
		report = *n.Report
	}
	text := string(cmp.Or(report.Kind, n.Draining))
	if len(i.Hooks) > 0 {
		text += ", hook " + strings.Join(i.Hooks, ", ")
	}
	if !report.Deadline.IsZero() && !n.drainEnded() {
		text += ", until " + verdict.ClockTime(report.Deadline.Time)
	}
	if report.Message != "" {
		text += ": " + report.Message
	}
	return text
}

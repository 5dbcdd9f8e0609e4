package story

import (
	"maps"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
)

// Story is what is known of a world, and what has been seen of its past. It is
// not safe for concurrent use.
type Story struct {
	began time.Time

	groups    map[string]Group
	nodes     map[string]Node
	pods      map[string]Pod // by UID
	workloads map[string]Workload
	budgets   map[string]Budget // by workload
	verdicts  []seenVerdict     // the latest change first
	feed      feed

	lives   map[string]*life  // by pod UID, also of those that are gone
	up      map[string]string // the nodes of the instances that are up, by instance id
	joined  map[string]bool   // nodes that were seen Ready
	floors  map[string]*Floor
	calls   []Call
	drained map[string]time.Time // by node, when its drain was first seen to have ended

	known           map[string]bool // instances seen so far: whether they are still there
	launched, ended int
}

// life is what a pod went through; a zero time is what it did not.
type life struct {
	pod                          Pod
	seen, running, evicted, gone time.Time
	// until is the end of the grace period that it was given.
	until time.Time
	// triggered is when an Event said that a group grew for it; growth is what
	// that Event said.
	triggered time.Time
	growth    string
	killed    bool // its instance ended under it
}

// Floor is how few pods of a workload ever served right after an eviction, and
// how few its budget allowed there: of all evictions, the closest.
type Floor struct {
	Workload         string `json:"workload"`
	Evictions        int    `json:"evictions"`
	Serving, Allowed int
}

// Held reports whether the budget was never violated.
func (f Floor) Held() bool { return f.Serving >= f.Allowed }

type seenVerdict struct {
	Verdict
	changed time.Time
}

// New begins a story.
func New(began time.Time) *Story {
	return &Story{
		began: began, groups: map[string]Group{}, nodes: map[string]Node{}, pods: map[string]Pod{}, workloads: map[string]Workload{},
		budgets: map[string]Budget{}, lives: map[string]*life{}, up: map[string]string{}, joined: map[string]bool{},
		floors: map[string]*Floor{}, drained: map[string]time.Time{}, known: map[string]bool{},
	}
}

// GroupsSeen replaces all groups. Pods that are still on an instance which has
// gone down since the last time were dropped by it.
func (s *Story) GroupsSeen(groups []Group) {
	s.groups = map[string]Group{}
	up := map[string]string{}
	there := map[string]bool{}
	for _, g := range groups {
		s.groups[g.Name] = g
		for _, i := range g.Instances {
			there[i.ID] = true
			if i.Up {
				up[i.ID] = i.Node
			}
		}
	}
	for id, node := range s.up {
		if up[id] != "" {
			continue
		}
		for _, p := range s.podsOn(node) {
			s.lives[p.UID].killed = true
		}
	}
	s.up = up
	s.count(there)
}

// count counts instances that came and that went.
func (s *Story) count(there map[string]bool) {
	for id := range there {
		if _, seen := s.known[id]; !seen {
			s.launched++
		}
		s.known[id] = true
	}
	for id, was := range s.known {
		if was && !there[id] {
			s.ended++
			s.known[id] = false
		}
	}
}

// NodeSeen tells of a node that is new or changed.
func (s *Story) NodeSeen(n Node, at time.Time) {
	s.nodes[n.Name] = n
	if n.System {
		return
	}
	if n.Ready {
		s.joined[n.Name] = true
	}
	if s.drained[n.Name].IsZero() && n.drainEnded() {
		s.drained[n.Name] = at
	}
}

// NodeGone tells that a node is deleted.
func (s *Story) NodeGone(name string) { delete(s.nodes, name) }

// PodSeen tells of a pod that is new or changed.
func (s *Story) PodSeen(p Pod, at time.Time) {
	if p.DaemonSet {
		return
	}
	l := s.lives[p.UID]
	if l == nil {
		l = &life{seen: at}
		s.lives[p.UID] = l
	}
	l.pod, s.pods[p.UID] = p, p
	note := func(is bool, when *time.Time) bool {
		if !is || !when.IsZero() {
			return false
		}
		*when = at
		return true
	}
	note(p.Running, &l.running)
	if l.until.IsZero() {
		l.until = p.Until
	}
	if note(p.Disrupted == evictedByAPI && p.Leaving, &l.evicted) {
		s.evictionSeen(p.Workload)
	}
}

// evictionSeen measures how close to its budget a workload is after it.
func (s *Story) evictionSeen(workload string) {
	f := s.floors[workload]
	if f == nil {
		f = &Floor{Workload: workload}
		s.floors[workload] = f
	}
	serving, allowed := s.Serving(workload), s.budgets[workload].Desired
	if f.Evictions == 0 || serving-allowed < f.Serving-f.Allowed {
		f.Serving, f.Allowed = serving, allowed
	}
	f.Evictions++
}

// PodGone tells that a pod is deleted.
func (s *Story) PodGone(uid string, at time.Time) {
	delete(s.pods, uid)
	if l := s.lives[uid]; l != nil {
		l.gone = at
	}
}

// WorkloadSeen tells of a Deployment that is new or changed.
func (s *Story) WorkloadSeen(w Workload) { s.workloads[w.Name] = w }

// BudgetSeen tells of a budget that is new or changed.
func (s *Story) BudgetSeen(b Budget) { s.budgets[b.Workload] = b }

// VerdictsSeen replaces all verdicts.
func (s *Story) VerdictsSeen(verdicts []Verdict, at time.Time) {
	old := map[string]seenVerdict{}
	for _, v := range s.verdicts {
		old[string(v.Of)+" "+v.Name] = v
	}
	s.verdicts = nil
	for _, v := range verdicts {
		seen := seenVerdict{v, at}
		if was, ok := old[string(v.Of)+" "+v.Name]; ok && was.Reason == v.Reason && was.Message == v.Message {
			seen.changed = was.changed
		}
		s.verdicts = append(s.verdicts, seen)
	}
	slices.SortStableFunc(s.verdicts, func(a, b seenVerdict) int { return b.changed.Compare(a.changed) })
}

// EventSeen tells of an Event of Windlass's.
func (s *Story) EventSeen(e Event, at time.Time) {
	s.feed.add(Happening{At: at, By: e.Source, Subject: e.Kind + " " + view.ShortName(e.Subject), Text: e.Reason + ": " + e.Message})
	if e.Reason != contract.EventTriggeredScaleUp {
		return
	}
	for _, l := range s.lives {
		// A group can also grow for pods that still have a node, which leaves.
		if l.pod.Name == e.Subject && l.pod.waits() && l.triggered.IsZero() {
			l.triggered, l.growth = at, e.Message
		}
	}
}

// CallSeen tells of a request that reached AWS.
func (s *Story) CallSeen(c Call) {
	s.calls = append(s.calls, c)
	if c.Reads() {
		return
	}
	text := c.Operation
	for _, part := range []string{c.Group, c.Instance, c.Detail} {
		if part != "" {
			text += " " + part
		}
	}
	if c.Error != "" {
		text += ": " + c.Error
	}
	s.feed.add(Happening{At: c.At, By: "aws", Text: text})
}

// Told adds a sentence of the play's own.
func (s *Story) Told(text string, at time.Time) {
	s.feed.add(Happening{At: at, By: "demo", Text: text})
}

// podsOn are the pods of a node that count, the ended ones left out.
func (s *Story) podsOn(node string) []Pod {
	var on []Pod
	for _, p := range s.pods {
		if p.Node == node && !p.Ended {
			on = append(on, p)
		}
	}
	slices.SortFunc(on, func(a, b Pod) int { return strings.Compare(a.UID, b.UID) })
	return on
}

// PodsOn counts the pods of a node, those on their way out included.
func (s *Story) PodsOn(node string) int { return len(s.podsOn(node)) }

// Serving counts the pods of a workload that are Ready and stay.
func (s *Story) Serving(workload string) int {
	n := 0
	for _, p := range s.pods {
		if p.Workload == workload && p.serves() {
			n++
		}
	}
	return n
}

// Living counts the pods of a workload that are not gone, whatever they do.
func (s *Story) Living(workload string) int {
	n := 0
	for _, p := range s.pods {
		if p.Workload == workload {
			n++
		}
	}
	return n
}

// Group finds a group.
func (s *Story) Group(name string) (Group, bool) {
	g, ok := s.groups[name]
	return g, ok
}

// Instance finds a living instance by id.
func (s *Story) Instance(id string) (Instance, bool) {
	for _, g := range s.groups {
		for _, i := range g.Instances {
			if i.ID == id {
				return i, true
			}
		}
	}
	return Instance{}, false
}

// Node finds a node.
func (s *Story) Node(name string) (Node, bool) {
	n, ok := s.nodes[name]
	return n, ok
}

// DrainedAt is when a node's drain was first seen to have ended.
func (s *Story) DrainedAt(node string) (time.Time, bool) {
	at, ok := s.drained[node]
	return at, ok
}

// Calls are all requests that reached AWS, in order.
func (s *Story) Calls() []Call { return s.calls }

// NodesOf are the nodes of a group's living instances, by name.
func (s *Story) NodesOf(group string) []Node {
	var nodes []Node
	for _, i := range s.groups[group].Instances {
		if n, ok := s.nodes[i.Node]; ok {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes
}

// ReadyIn counts the Ready nodes of a group that are not on their way out.
func (s *Story) ReadyIn(group string) int {
	n := 0
	for _, node := range s.NodesOf(group) {
		if i, _ := s.Instance(node.Instance); node.Ready && !i.leaving() {
			n++
		}
	}
	return n
}

func (s *Story) groupNames() []string { return slices.Sorted(maps.Keys(s.groups)) }

// Package uninstall says what Windlass has put into a cluster and into AWS, and in which order that
// goes. It is pure: package remove carries the steps out.
//
//	uninstall.go  what is there, and the steps
//	node.go       what a Node was before Windlass
//	step.go       a step in words, and as a command for people
//	left.go       what stays
package uninstall

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/hooks"
)

// World is what of Windlass is there.
type World struct {
	Now time.Time
	// Namespace is Windlass's.
	Namespace string
	// Cluster is the UID of the namespace kube-system, by which groups are owned.
	Cluster  types.UID
	Programs []Program
	// Leader is who holds the Lease of the scaler and has renewed it a moment ago; empty for none.
	Leader string
	Nodes  []fleet.Node
	// Agents are the nodes whose agent is Ready.
	Agents map[string]bool
	Groups []fleet.Group
	// Suspending is that of the persisted state: whose AZRebalance Windlass has suspended.
	Suspending map[string]time.Time
	// Heartbeats are the last ones of hooks, by fleet.HeartbeatKey.
	Heartbeats map[string]time.Time
	// Objects are the ConfigMaps and Leases that the programs made.
	Objects []Object
}

// Program is a workload of one of the programs.
type Program struct {
	// App is its contract.LabelAppName; Kind is Deployment or DaemonSet.
	App, Kind, Name string
	UID             types.UID
	// Wanted is how many replicas it asks for, and for a DaemonSet one; Pods how many there are.
	Wanted, Pods int
}

func (p Program) runs() bool { return p.Wanted > 0 || p.Pods > 0 }

// Object is a ConfigMap or a Lease.
type Object struct {
	Kind, Name string
	UID        types.UID
}

// Options is what people want.
type Options struct {
	// Hooks has the lifecycle hooks of these names deleted, too.
	Hooks bool
	// TerminationHooks and LaunchHooks are those that the scaler completes.
	TerminationHooks, LaunchHooks []string
}

const (
	rebalance = "AZRebalance"
	// soon is how near the deadline of a notice is for its node to be waited for until it is gone.
	soon = 15 * time.Minute
)

// Steps are what is to be done, in its order. Without any, nothing is left.
//
// The scaler stops first, or it would begin drains anew. Requests go while agents run, which undo
// what they did; what AWS takes is drained to its end. Then agents stop, and what is left on Nodes
// goes, which an agent would write again. The persisted state goes last: it knows what is ours at
// AWS.
func Steps(w World, o Options) []Step {
	s := steps{World: w, Options: o, nodes: map[string]*fleet.Node{}, leaving: map[string]bool{}, unread: w.Unread()}
	s.join()
	s.stop(contract.AppScaler)
	if w.Leader != "" {
		s.add(Step{Do: Await, Kind: kindLease, Name: contract.LeaseScaler, Why: fmt.Sprintf("%s holds it", w.Leader), ByHand: "find that scaler and stop it"})
	}
	s.withdraw()
	s.awaitDrains()
	s.awaitInstances()
	s.stop(contract.AppAgent)
	s.stop(contract.AppNotifier)
	s.cleanNodes()
	s.restoreGroups()
	s.deleteObjects()
	return s.list
}

type steps struct {
	World
	Options
	list []Step
	// nodes are those of instances, by id; leaving the names of those whose instance AWS takes.
	nodes   map[string]*fleet.Node
	leaving map[string]bool
	served  map[string]string // the group of each instance that does not leave
	unread  []string          // as of World
}

// Unread are the groups that the persisted state names and that were not read.
func (w World) Unread() []string {
	read := map[string]bool{}
	for _, g := range w.Groups {
		read[g.Name] = true
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(w.Suspending)), func(name string) bool { return read[name] })
}

func (s *steps) add(step Step) { s.list = append(s.list, step) }

// join finds which nodes go, whatever is asked: their instances are on their way out, or were asked
// for and are in no group any more.
func (s *steps) join() {
	s.Nodes = slices.SortedFunc(slices.Values(s.Nodes), func(a, b fleet.Node) int { return cmp.Compare(a.Name, b.Name) })
	s.Groups = slices.SortedFunc(slices.Values(s.Groups), func(a, b fleet.Group) int { return cmp.Compare(a.Name, b.Name) })
	s.Groups = slices.DeleteFunc(s.Groups, func(g fleet.Group) bool { return g.Owner != "" && g.Owner != s.Cluster })
	for i := range s.Nodes {
		n := &s.Nodes[i]
		s.nodes[n.InstanceID()] = n
	}
	for i := range s.Nodes { // a weak name counts where there is no other
		for id := range s.Nodes[i].WeakIDs() {
			if s.nodes[id] == nil {
				s.nodes[id] = &s.Nodes[i]
			}
		}
	}
	s.served = map[string]string{}
	for _, g := range s.Groups {
		for _, i := range g.Instances {
			if n := s.nodes[i.ID]; i.Terminating() && n != nil {
				s.leaving[n.Name] = true
			} else if !i.Terminating() {
				s.served[i.ID] = g.Name
			}
		}
	}
	for _, n := range s.Nodes {
		_, marked := n.Annotations[contract.AnnotationTerminating]
		if marked && s.served[n.InstanceID()] == "" || s.endsSoon(n) {
			s.leaving[n.Name] = true
		}
	}
}

// endsSoon reports whether a notice of the node's own takes it in a moment.
func (s *steps) endsSoon(n fleet.Node) bool {
	r, err := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport])
	if err != nil || r.Deadline.IsZero() || asked(r.Kind) {
		return false
	}
	return r.Deadline.After(s.Now.Add(-soon)) && r.Deadline.Before(s.Now.Add(soon))
}

// asked reports whether a drain of that kind stands for a request, and ends with it.
func asked(k contract.Kind) bool {
	return k == contract.KindScaleDown || k == contract.KindRequest || k == ""
}

func (s *steps) stop(app string) {
	for _, p := range s.Programs {
		if p.App != app || !p.runs() {
			continue
		}
		s.add(Step{Do: Stop, Kind: p.Kind, Name: p.Name, UID: p.UID, Namespace: s.Namespace})
	}
}

// withdraw cancels the drains that are asked for, of whomever, where an agent undoes them.
func (s *steps) withdraw() {
	for _, n := range s.Nodes {
		value, requested := n.Annotations[contract.AnnotationDrainRequest]
		if !requested || s.leaving[n.Name] || !s.Agents[n.Name] {
			continue
		}
		by := "an unreadable request"
		if r, err := contract.ParseRequest(value); err == nil {
			by = fmt.Sprintf("asked for by %s: %s", cmp.Or(r.By, "a person"), cmp.Or(r.Reason, r.ID))
		}
		s.add(Step{Do: Withdraw, Kind: kindNode, Name: n.Name, UID: n.UID, Group: s.markedIn(n), Instance: n.InstanceID(), Why: by, Keys: present(n, requestKeys)})
	}
}

// requestKeys are what a withdrawal takes off.
var requestKeys = []string{contract.AnnotationDrainRequest, contract.AnnotationDrainPermit, contract.AnnotationDrainNotYet, contract.AnnotationTerminating}

// markedIn is the group of an instance that is marked as terminated and serves all the same: read
// again before the mark goes. Empty where there is no mark.
func (s *steps) markedIn(n fleet.Node) string {
	if _, marked := n.Annotations[contract.AnnotationTerminating]; !marked {
		return ""
	}
	return s.served[n.InstanceID()]
}

func present(n fleet.Node, keys []string) (there []string) {
	for _, key := range keys {
		if _, has := n.Annotations[key]; has {
			there = append(there, key)
		}
	}
	return there
}

// awaitDrains waits for agents: to undo what is not asked for any more, and to end what a notice of
// their own began.
func (s *steps) awaitDrains() {
	for _, n := range s.Nodes {
		if s.leaving[n.Name] || !s.Agents[n.Name] {
			continue
		}
		if why, byHand := s.drains(n); why != "" {
			s.add(Step{Do: Await, Kind: kindNode, Name: n.Name, UID: n.UID, Why: why, ByHand: byHand})
		}
	}
}

func (s *steps) drains(n fleet.Node) (why, byHand string) {
	kind, tainted := contract.Draining(n.Taints)
	value, reported := n.Annotations[contract.AnnotationDrainReport]
	r, err := contract.ParseReport(value)
	if err == nil && r.Kind.Strength() > kind.Strength() {
		kind = r.Kind
	}
	switch {
	case !tainted && !reported:
		return "", ""
	case asked(kind):
		return "its agent undoes the drain", fmt.Sprintf("kubectl -n %s delete pod -l %s=%s --field-selector=spec.nodeName=%s", s.Namespace, contract.LabelAppName, contract.AppAgent, n.Name)
	case err == nil && r.Wants == "" && r.Phase.Open():
		return fmt.Sprintf("its agent drains it for %s: %s", kind, cmp.Or(r.Message, r.Reason)), drainCommand(n.Name)
	}
	return "", ""
}

// awaitInstances waits for those that AWS takes. What waits for a hook of ours goes on once its node
// is drained.
func (s *steps) awaitInstances() {
	awaited := map[string]bool{}
	for _, g := range s.Groups {
		for _, i := range g.Instances {
			holding := s.holding(g, i)
			n := s.nodes[i.ID]
			if n != nil {
				awaited[n.Name] = i.Terminating()
			}
			if !i.Terminating() && len(holding) == 0 {
				continue
			}
			name := ""
			if n != nil && i.Terminating() {
				name = n.Name
				if why := s.undrained(*n); len(holding) > 0 && why != "" {
					s.keepWaiting(g, i, *n, holding)
					s.add(Step{Do: Await, Kind: kindNode, Name: n.Name, UID: n.UID, Group: g.Name, Instance: i.ID, Why: why, ByHand: drainCommand(n.Name)})
				}
			}
			if n == nil && i.Terminating() && len(holding) > 0 {
				// Its pods may run: it may be a node of another cluster, or its Node was deleted.
				s.add(Step{Do: Await, Kind: kindInstance, Name: i.ID, Group: g.Name, Hook: holding[0], Why: fmt.Sprintf("it is %s, and no node here is known to be it: its hook ends by its own time", i.State), ByHand: Step{Do: Complete, Name: g.Name, Hook: holding[0], Instance: i.ID}.Command()})
				continue
			}
			for _, h := range holding {
				s.add(Step{Do: Complete, Kind: kindGroup, Name: g.Name, Hook: h, Instance: i.ID, State: i.State, Node: name})
			}
			if i.Terminating() {
				s.add(Step{Do: Await, Kind: kindInstance, Name: i.ID, Group: g.Name, Node: name, Why: "it is " + i.State, ByHand: describeCommand(i.ID)})
			}
		}
	}
	for _, n := range s.Nodes {
		if s.leaving[n.Name] && !awaited[n.Name] {
			why := "its instance is about to be taken"
			if id, marked := n.Annotations[contract.AnnotationTerminating]; marked {
				why = "its instance was terminated for " + id
			}
			s.add(Step{Do: Await, Kind: kindNode, Name: n.Name, UID: n.UID, Instance: n.InstanceID(), Why: why, ByHand: fmt.Sprintf("kubectl delete node %s # once its instance is gone", n.Name)})
		}
	}
}

// keepWaiting sends heartbeats, as the scaler does that is stopped: a drain may outlast the hook's
// timeout. Without an agent there is none that could be cut off.
func (s *steps) keepWaiting(g fleet.Group, i fleet.Instance, n fleet.Node, names []string) {
	for _, h := range g.Hooks {
		if s.Agents[n.Name] && slices.Contains(names, h.Name) {
			last := s.Heartbeats[fleet.HeartbeatKey(i.ID, h.Name)] // without one that is known it is due at once
			s.add(Step{Do: Heartbeat, Kind: kindGroup, Name: g.Name, Hook: h.Name, Instance: i.ID, State: i.State, Due: hooks.HeartbeatDue(last, h)})
		}
	}
}

// holding are the hooks of ours that an instance waits for.
func (s *steps) holding(g fleet.Group, i fleet.Instance) (names []string) {
	for _, h := range g.Hooks {
		terminates := h.Transition == fleet.OnTerminate && i.State == fleet.TerminatingWait && slices.Contains(s.TerminationHooks, h.Name)
		launches := h.Transition == fleet.OnLaunch && i.State == fleet.PendingWait && slices.Contains(s.LaunchHooks, h.Name)
		if terminates || launches {
			names = append(names, h.Name)
		}
	}
	return names
}

func (s *steps) undrained(n fleet.Node) (why string) {
	r, err := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport])
	switch {
	case err != nil && !s.Agents[n.Name]:
		return "its instance is held for a drain, and no agent is Ready there"
	case err != nil:
		return "its instance is held for a drain"
	case r.Phase != contract.PhaseDrained:
		return fmt.Sprintf("its drain is %s: %s", r.Phase, cmp.Or(r.Message, r.Reason))
	}
	return ""
}

func (s *steps) cleanNodes() {
	for _, n := range s.Nodes {
		if s.leaving[n.Name] {
			continue
		}
		if _, keys := Cleaned(n); len(keys) > 0 {
			s.add(Step{Do: Clean, Kind: kindNode, Name: n.Name, UID: n.UID, Group: s.markedIn(n), Instance: n.InstanceID(), Keys: keys})
		}
	}
}

func (s *steps) restoreGroups() {
	for _, g := range s.Groups {
		if _, ours := s.Suspending[g.Name]; ours && slices.Contains(g.Suspended, rebalance) {
			s.add(Step{Do: Resume, Kind: kindGroup, Name: g.Name})
		}
		if g.Owner != "" {
			s.add(Step{Do: Untag, Kind: kindGroup, Name: g.Name, UID: g.Owner})
		}
		for _, h := range s.ours(g) {
			if s.Hooks {
				s.add(Step{Do: DeleteHook, Kind: kindGroup, Name: g.Name, Hook: h})
			}
		}
	}
}

// ours are the hooks of a group that the scaler completes.
func (s *steps) ours(g fleet.Group) (names []string) {
	for _, h := range g.Hooks {
		if h.Transition == fleet.OnTerminate && slices.Contains(s.TerminationHooks, h.Name) || h.Transition == fleet.OnLaunch && slices.Contains(s.LaunchHooks, h.Name) {
			names = append(names, h.Name)
		}
	}
	return names
}

func (s *steps) deleteObjects() {
	last := func(o Object) int {
		if o.Kind == kindConfigMap && o.Name == contract.ConfigMapState {
			return 1
		}
		return 0
	}
	objects := slices.SortedFunc(slices.Values(s.Objects), func(a, b Object) int {
		return cmp.Or(cmp.Compare(last(a), last(b)), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	for _, o := range objects {
		if last(o) == 1 && len(s.unread) > 0 {
			continue // it is all that names them
		}
		s.add(Step{Do: Delete, Kind: o.Kind, Name: o.Name, UID: o.UID, Namespace: s.Namespace})
	}
}

// Made reports whether one of the programs made an object of its own namespace.
func Made(o Object, annotations map[string]string) bool {
	const shadow = "windlass-shadow" // what a scaler has that only watches
	switch o.Kind {
	case kindConfigMap:
		return slices.Contains([]string{contract.ConfigMapState, contract.ConfigMapStatus, contract.ConfigMapNotifier}, o.Name) ||
			strings.HasPrefix(o.Name, shadow) || contract.IsOwnStatus(annotations)
	case kindLease:
		return slices.Contains([]string{contract.LeaseScaler, contract.LeaseNotifier}, o.Name) || strings.HasPrefix(o.Name, shadow)
	}
	return false
}

package shadow

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

// place finds where pods would be. Those of a node that would be gone are on another one. Where there
// is none the node counts again: the world uses it. Pending pods that an assumed node takes are there.
// daemons are the pods of DaemonSets on assumed nodes.
func (s *Shadow) place() (pods, daemons []*fleet.Pod) {
	for {
		gone, assumed := s.goneNodes(), s.assumedNodes()
		if len(gone) == 0 && len(assumed) == 0 {
			clear(s.memory.Placed)
			clear(s.moved)
			return s.world.Pods, nil
		}
		seats := s.newSeats(gone, assumed, s.memory.Placed)
		if len(seats.homeless) > 0 { // where they are may leave less room than they need
			if anew := s.newSeats(gone, assumed, nil); len(anew.homeless) == 0 {
				seats = anew
			}
		}
		if len(seats.homeless) == 0 {
			s.memory.Placed, s.moved = seats.placed, seats.moved
			return seats.pods, seats.daemons
		}
		for id, why := range seats.homeless {
			s.returned(id, why)
		}
	}
}

// seats are the places of one try.
type seats struct {
	s       *Shadow
	cluster *fit.Cluster
	places  map[string]*fit.Place
	// open are the places that pods may come to, and fresh those of assumed nodes.
	open, fresh []*fit.Place

	pods, daemons []*fleet.Pod
	// before are the places of the evaluation before.
	before, placed map[types.UID]string
	moved          map[*fleet.Pod]*fleet.Pod
	// homeless are the instances with a pod that has no place elsewhere, and why.
	homeless map[string]string
}

func (s *Shadow) newSeats(gone map[string]string, assumed []fleet.Node, before map[types.UID]string) *seats {
	t := &seats{s: s, places: map[string]*fit.Place{}, before: before, placed: map[types.UID]string{}, moved: map[*fleet.Pod]*fleet.Pod{}, homeless: map[string]string{}}
	t.cluster = s.rules.Cluster(fit.World{
		Kubernetes: s.world.Kubernetes, Pods: s.world.Pods, Namespaces: s.world.Namespaces,
		Storage: s.world.Storage, Devices: s.world.Devices, DaemonSets: s.world.DaemonSets,
	})
	for i := range s.world.Nodes {
		if n := &s.world.Nodes[i]; gone[n.Name] == "" {
			t.add(n, n.Ready && !n.Unschedulable, false)
		}
	}
	for i := range assumed {
		t.add(&assumed[i], true, true)
		t.runDaemons(&assumed[i])
	}
	t.pods = make([]*fleet.Pod, 0, len(s.world.Pods))
	var away, waiting []fit.Tenant
	for i, p := range s.world.Pods {
		switch {
		case p.Node == "" && len(assumed) > 0 && p.Scheduling == fleet.Unschedulable && p.Deleted.IsZero():
			waiting = append(waiting, t.cluster.TenantAt(i))
		case p.Node != "" && gone[p.Node] != "":
			if drainable.MustBePlacedAgain(p) {
				away = append(away, t.cluster.TenantAt(i))
			}
		default:
			t.pods = append(t.pods, p)
			if at := t.places[p.Node]; at != nil && !p.Ended() {
				t.cluster.Put(t.cluster.TenantAt(i), at)
			}
		}
	}
	for _, p := range t.seatAll(away, t.open, func(p *fleet.Pod) time.Time { return s.memory.Gone[gone[p.Node]].At }) {
		t.homeless[gone[p.Node]] = fmt.Sprintf("pod %s has no place elsewhere", p.Key())
	}
	t.pods = append(t.pods, t.seatAll(waiting, t.fresh, func(*fleet.Pod) time.Time { return time.Time{} })...)
	return t
}

// passing are taints by which a node is closed to new pods for a while.
func passing(t corev1.Taint) bool { return contract.IsKubeProxyTaint(t) }

func (t *seats) add(n *fleet.Node, open, fresh bool) {
	at := t.cluster.Add(t.cluster.TemplateFrom(n, passing))
	t.places[n.Name] = at
	if open {
		t.open = append(t.open, at)
	}
	if fresh {
		t.fresh = append(t.fresh, at)
	}
}

// runDaemons has the pods of DaemonSets be on an assumed node.
func (t *seats) runDaemons(n *fleet.Node) {
	at := t.places[n.Name]
	for i := range t.s.world.DaemonSets {
		set := &t.s.world.DaemonSets[i]
		key := fmt.Sprintf("%s/%s/%s", set.Namespace, set.Name, n.Name)
		p := set.PodOn(n.Name, key, n.Created)
		tenant := t.cluster.Tenant(p)
		if t.cluster.Slots(tenant.Class, at).N > 0 {
			t.cluster.Put(tenant, at)
			t.daemons = append(t.daemons, p)
		}
	}
}

// seatAll gives pods places, and returns those for which there is none. Those that have one keep it; of
// the others the largest come first, each on the fullest node that takes it, as they were packed when
// the removal or the growth was decided.
func (t *seats) seatAll(pods []fit.Tenant, among []*fit.Place, since func(*fleet.Pod) time.Time) (left []*fleet.Pod) {
	var templates []*fit.NodeTemplate
	for _, at := range among {
		templates = append(templates, at.Template())
	}
	var others []fit.Tenant
	for _, p := range t.cluster.Sorted(pods, templates) {
		if at := t.places[t.before[p.Pod.UID]]; at == nil || !slices.Contains(among, at) || !t.seat(p, at, since(p.Pod)) {
			others = append(others, p)
		}
	}
	for _, p := range others {
		if at := t.fullest(p, among); at == nil || !t.seat(p, at, since(p.Pod)) {
			left = append(left, p.Pod)
		}
	}
	return left
}

// fullest is the node with the least free that takes a pod; nil where none does.
func (t *seats) fullest(p fit.Tenant, among []*fit.Place) (best *fit.Place) {
	least := 0.0
	for _, at := range among {
		if t.cluster.Slots(p.Class, at).N == 0 {
			continue
		}
		if free := free(at); best == nil || free < least {
			best, least = at, free
		}
	}
	return best
}

// free is which share of cpu and of memory is free, together.
func free(at *fit.Place) (share float64) {
	cpu, memory := at.Free()
	mostCPU, mostMemory := at.Room()
	if mostCPU > 0 {
		share += float64(cpu) / float64(mostCPU)
	}
	if mostMemory > 0 {
		share += float64(memory) / float64(mostMemory)
	}
	return share
}

// seat has a pod be at a place, if it fits there. Of one that had to leave its node since is when.
func (t *seats) seat(tenant fit.Tenant, at *fit.Place, since time.Time) bool {
	p := tenant.Pod
	if len(t.placed) >= mostPlaced || !t.cluster.TrySeat(tenant, at) {
		return false
	}
	t.placed[p.UID] = at.Name
	before := t.s.moved[p]
	if before == nil || before.Node != at.Name {
		next := *p
		next.Node, next.Phase, next.Ready, next.Scheduling, next.Judged = at.Name, fleet.PodRunning, true, fleet.Unjudged, 0
		next.Nominate("")
		if next.Created.Time().Before(since) {
			next.Created = fleet.SecondOf(since) // its successor, by now
		}
		before = &next
	}
	t.moved[p] = before
	t.pods = append(t.pods, before)
	return true
}

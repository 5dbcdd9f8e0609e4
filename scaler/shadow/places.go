package shadow

import (
	"cmp"
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
		seats := s.newSeats(gone, assumed)
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
	placed        map[types.UID]string
	moved         map[*fleet.Pod]*fleet.Pod
	// homeless are the instances with a pod that has no place elsewhere, and why.
	homeless map[string]string
}

func (s *Shadow) newSeats(gone map[string]string, assumed []fleet.Node) *seats {
	t := &seats{s: s, places: map[string]*fit.Place{}, placed: map[types.UID]string{}, moved: map[*fleet.Pod]*fleet.Pod{}, homeless: map[string]string{}}
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
	var away, waiting []*fleet.Pod
	for i, p := range s.world.Pods {
		switch {
		case p.Node == "" && len(assumed) > 0 && p.Scheduling == fleet.Unschedulable && p.Deleted.IsZero():
			waiting = append(waiting, p)
		case p.Node != "" && gone[p.Node] != "":
			if drainable.MustBePlacedAgain(p) {
				away = append(away, p)
			}
		default:
			t.pods = append(t.pods, p)
			if at := t.places[p.Node]; at != nil && !p.Ended() {
				t.cluster.Put(t.cluster.TenantAt(i), at)
			}
		}
	}
	for _, list := range [][]*fleet.Pod{away, waiting} {
		slices.SortStableFunc(list, func(a, b *fleet.Pod) int {
			return cmp.Or(-cmp.Compare(a.Priority(), b.Priority()), a.Created.Compare(b.Created), cmp.Compare(a.Key(), b.Key()), cmp.Compare(a.UID, b.UID))
		})
	}
	for _, p := range away {
		if !t.seat(p, t.open, s.memory.Gone[gone[p.Node]].At) {
			t.homeless[gone[p.Node]] = fmt.Sprintf("pod %s has no place elsewhere", p.Key())
		}
	}
	for _, p := range waiting {
		if !t.seat(p, t.fresh, time.Time{}) {
			t.pods = append(t.pods, p)
		}
	}
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

// seat finds a place for a pod: that of before, or the one with the fewest pods.
func (t *seats) seat(p *fleet.Pod, among []*fit.Place, since time.Time) bool {
	tenant := t.cluster.Tenant(p)
	best := t.places[t.s.memory.Placed[p.UID]]
	if best == nil || !slices.Contains(among, best) || t.cluster.Slots(tenant.Class, best).N == 0 {
		best = nil
		for _, at := range among {
			if t.cluster.Slots(tenant.Class, at).N > 0 && (best == nil || len(at.Seated()) < len(best.Seated())) {
				best = at
			}
		}
	}
	if best == nil || len(t.placed) >= mostPlaced {
		return false
	}
	t.cluster.Put(tenant, best)
	t.placed[p.UID] = best.Name
	before := t.s.moved[p]
	if before == nil || before.Node != best.Name {
		next := *p
		next.Node, next.Nominated, next.Phase, next.Ready, next.Scheduling, next.Judged = best.Name, "", corev1.PodRunning, true, fleet.Unjudged, time.Time{}
		if next.Created.Before(since) {
			next.Created = since // its successor, by now
		}
		before = &next
	}
	t.moved[p] = before
	t.pods = append(t.pods, before)
	return true
}

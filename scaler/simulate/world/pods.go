package world

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/simulate/trace"
)

// workload is what makes pods.
type workload struct {
	*trace.Workload
	owner *metav1.OwnerReference
	// alive counts its replicas.
	alive int32
	// ordered is true if a replica is made again only when the one before it has left, as of
	// StatefulSets.
	ordered bool
}

// replica is a pod of the trace, whatever has become of those that ran for it.
type replica struct {
	workload *workload
	current  *pod
	over     bool
}

// pod is one in the cluster.
type pod struct {
	seen *fleet.Pod
	// index is its place in the snapshot.
	index   int
	replica *replica
	on      *machine
	made    int64
	leaving bool
	// guards are the budgets that it counts for.
	guards []int
	// tenant is how the scheduler knows it, and cpu and memory what that scores by.
	tenant      fit.Tenant
	cpu, memory int64
}

func (w *World) newWorkload(of *trace.Workload) workload {
	return workload{Workload: of, owner: of.Owner(), ordered: of.Kind == "StatefulSet"}
}

// begin has a replica of the trace come.
func (w *World) begin(of *trace.Pod, given *fleet.Pod) {
	r := &replica{workload: &w.workloads[of.Workload]}
	r.workload.alive++
	w.budgets.expect(w, r.workload)
	if given == nil {
		w.create(r)
	} else {
		r.current = &pod{seen: given, replica: r, made: w.now}
		w.enter(r.current)
		if r.current.on == nil {
			w.scheduler.queue = append(w.scheduler.queue, r.current)
		}
	}
	if of.Ends < trace.Never {
		w.at(of.Ends, func() { w.end(r) })
	}
}

// create makes the pod of a replica, which waits for a node.
func (w *World) create(r *replica) {
	w.born++
	of := r.workload
	name := fmt.Sprintf("%s-s%d", of.Name, w.born) // a snapshot has names of its own
	seen := &fleet.Pod{
		Namespace: of.Namespace, Name: name, UID: types.UID(name), Created: fleet.SecondOf(w.time()), Labels: of.Labels, Annotations: of.Annotations,
		Owner: of.owner, Spec: of.Spec, Phase: fleet.PodPending,
	}
	r.current = &pod{seen: seen, replica: r, made: w.now}
	w.enter(r.current)
	w.scheduler.queue = append(w.scheduler.queue, r.current)
}

// enter has a pod be in the cluster, on a node where it names one.
func (w *World) enter(p *pod) {
	p.index = len(w.snapshot.Pods)
	w.snapshot.Pods, w.podAt = append(w.snapshot.Pods, p.seen), append(w.podAt, p)
	w.pods[p.seen.UID] = p
	w.budgets.guard(p)
	if m := w.machines[p.seen.Node]; m != nil {
		w.place(p, m)
	}
	w.budgets.count(p, 1)
	w.changed = true
}

// show has the scaler see another version of a pod.
func (w *World) show(p *pod, change func(*fleet.Pod)) {
	next := *p.seen
	change(&next)
	p.seen = &next
	w.snapshot.Pods[p.index] = p.seen
	w.changed = true
}

// bind puts a pod on a node. It runs at once.
func (w *World) bind(p *pod, m *machine) {
	w.budgets.count(p, -1)
	w.show(p, func(n *fleet.Pod) {
		n.Node, n.Phase, n.Ready, n.Scheduling, n.Judged = m.name, fleet.PodRunning, true, fleet.Unjudged, 0
	})
	w.place(p, m)
	w.budgets.count(p, 1)
	w.ledger.waited(w.now - p.made)
	if !m.hosted {
		m.hosted = true
	}
}

// place counts a pod on its node.
func (w *World) place(p *pod, m *machine) {
	p.on = m
	m.pods = append(m.pods, p)
	if p.replica != nil {
		w.ledger.running++
		m.hosted = true
	}
	w.scheduler.seat(p)
}

// end ends a replica: its pod has run, or is deleted.
func (w *World) end(r *replica) {
	if r.over {
		return
	}
	r.over = true
	r.workload.alive--
	w.budgets.expect(w, r.workload)
	p := r.current
	if p == nil {
		return
	}
	if p.on == nil {
		w.ledger.Unserved++
		w.ledger.waited(w.now - p.made)
		w.scheduler.forget(p)
	}
	w.remove(p)
}

// remove removes a pod.
func (w *World) remove(p *pod) {
	if w.pods[p.seen.UID] != p {
		return
	}
	delete(w.pods, p.seen.UID)
	w.budgets.count(p, -1)
	last := len(w.podAt) - 1
	w.podAt[p.index], w.snapshot.Pods[p.index] = w.podAt[last], w.snapshot.Pods[last]
	w.podAt[p.index].index = p.index
	w.podAt[last], w.snapshot.Pods[last] = nil, nil
	w.podAt, w.snapshot.Pods = w.podAt[:last], w.snapshot.Pods[:last]
	if p.replica != nil && p.replica.current == p {
		p.replica.current = nil
	}
	m := p.on
	if m != nil {
		w.unplace(p)
	}
	w.changed = true
	if m != nil && m.drain != nil {
		w.goOn(m)
	}
}

func (w *World) unplace(p *pod) {
	m := p.on
	w.scheduler.lift(p)
	for i, other := range m.pods {
		if other == p {
			m.pods = append(m.pods[:i], m.pods[i+1:]...)
			break
		}
	}
	if p.replica != nil && !p.leaving {
		w.ledger.running--
	}
	p.on = nil
	w.scheduler.retry = true
}

// awaited reports whether the pod is counted until its successor is made, which is when it has left.
func (p *pod) awaited() bool { return p.replica != nil && p.replica.workload.ordered }

// evict has a pod leave when its grace has passed. Its controller makes another at once, or,
// of a StatefulSet, when it has left; a naked one is not made again.
func (w *World) evict(p *pod) {
	if p.leaving {
		return
	}
	grace := drainable.GraceOf(p.seen)
	w.ledger.Evictions++
	w.budgets.count(p, -1)
	if p.awaited() {
		w.budgets.await(p, 1)
	}
	p.leaving = true
	w.show(p, func(n *fleet.Pod) { n.Deleted, n.Ready = fleet.SecondOf(w.time().Add(grace)), false })
	r := p.replica
	if r != nil {
		w.ledger.running--
		r.current = nil
		if r.workload.owner != nil && !r.workload.ordered {
			w.create(r)
		}
	}
	w.in(int64(grace/time.Second), func() {
		if p.awaited() {
			w.budgets.await(p, -1) // from now on its successor is
		}
		w.remove(p)
		w.makeAgain(r)
	})
}

// makeAgain has the controller of a replica without a pod make one. A replica without a
// controller is over.
func (w *World) makeAgain(r *replica) {
	if r == nil || r.over || r.current != nil {
		return
	}
	if r.workload.owner == nil {
		w.ledger.Lost++
		w.end(r)
		return
	}
	w.create(r)
}

// lose removes all pods of a node with it.
func (w *World) lose(m *machine) {
	for len(m.pods) > 0 {
		p := m.pods[len(m.pods)-1]
		r, lost := p.replica, !p.leaving
		w.remove(p)
		if r != nil && lost && !r.over {
			w.ledger.Killed++
			w.makeAgain(r)
		}
	}
}

// countOwners has the scaler see how many replicas owners want, where it asks for that.
func (w *World) countOwners() {
	if !w.policy.AsksForOwners() {
		return
	}
	w.snapshot.Owners = map[types.UID]fleet.Owner{}
	for i := range w.workloads {
		if o := w.workloads[i].owner; o != nil && (o.Kind == "ReplicaSet" || o.Kind == "ReplicationController") {
			w.snapshot.Owners[o.UID] = fleet.Owner{Replicas: w.snapshot.Owners[o.UID].Replicas + w.workloads[i].alive} // it is several workloads where its pods were resized
		}
	}
}

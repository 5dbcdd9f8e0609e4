package trace

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// alike finds the pod of a snapshot that one of a history is like. Its zero value has none.
type alike struct {
	pods  map[string]*fleet.Pod
	specs map[resizing]*corev1.PodSpec
}

// resizing is a spec with other requests than its own.
type resizing struct {
	of               *corev1.PodSpec
	milliCPU, memory int64
}

func alikeIn(s fleet.Snapshot) alike {
	a := alike{pods: map[string]*fleet.Pod{}, specs: map[resizing]*corev1.PodSpec{}}
	for _, p := range s.Pods {
		if drainable.BelongsToNode(p) || p.Spec == nil {
			continue
		}
		r := recordOf(p)
		for _, key := range r.alike() {
			if old := a.pods[key]; old == nil || old.Ended() && !p.Ended() {
				a.pods[key] = p
			}
		}
	}
	return a
}

func recordOf(p *fleet.Pod) Record {
	r := Record{Namespace: p.Namespace, Name: p.Name}
	if p.Owner != nil {
		r.Kind, r.Owner = p.Owner.Kind, p.Owner.Name
	}
	return r
}

// alike are the keys of pods that are like this one, the nearest first. Pods of a StatefulSet
// have volumes of their own.
func (r Record) alike() []string {
	key := func(kind, name string) string { return r.Namespace + "/" + r.Kind + "/" + kind + "/" + name }
	return []string{key("pod", r.Name), key("owner", r.owner()), key("service", r.service())}
}

// workload is the key of a record's workload, and how it is made.
func (a alike) workload(r Record) (string, func() Workload) {
	for i, key := range r.alike() {
		p := a.pods[key]
		if p == nil || i == 0 && r.Kind != "StatefulSet" && r.Kind != "" {
			continue
		}
		spec := a.resized(p.Spec, r)
		return fmt.Sprintf("%s/%s/%s/%p", r.Namespace, r.Kind, r.owner(), spec), func() Workload {
			w := Workload{Namespace: r.Namespace, Name: r.owner(), Kind: r.Kind, Labels: p.Labels, Annotations: p.Annotations, Spec: spec}
			if p.Owner != nil && p.Owner.Name == r.Owner {
				w.Controller = p.Owner
			}
			return w
		}
	}
	return fmt.Sprintf("%s/%s/%s/%d/%d", r.Namespace, r.Kind, r.owner(), r.MilliCPU, r.Memory), func() Workload {
		return Workload{Namespace: r.Namespace, Name: r.owner(), Kind: r.Kind, Labels: map[string]string{"app": r.service()}, Spec: spec(r.MilliCPU, r.Memory)}
	}
}

// resized is the spec with the cpu and memory of a record: its own where it requests as much.
func (a alike) resized(of *corev1.PodSpec, r Record) *corev1.PodSpec {
	milli, memory := int64(0), int64(0)
	for i := range of.Containers {
		requests := of.Containers[i].Resources.Requests
		milli, memory = milli+requests.Cpu().MilliValue(), memory+requests.Memory().Value()
	}
	if milli == r.MilliCPU && memory == r.Memory || len(of.Containers) == 0 {
		return of
	}
	key := resizing{of, r.MilliCPU, r.Memory}
	if known := a.specs[key]; known != nil {
		return known
	}
	out := of.DeepCopy()
	for i := range out.Containers {
		requests := maps.Clone(out.Containers[i].Resources.Requests)
		delete(requests, corev1.ResourceCPU)
		delete(requests, corev1.ResourceMemory)
		if i == 0 {
			if requests == nil {
				requests = corev1.ResourceList{}
			}
			requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(r.MilliCPU, resource.DecimalSI)
			requests[corev1.ResourceMemory] = *resource.NewQuantity(r.Memory, resource.BinarySI)
		}
		out.Containers[i].Resources.Requests = requests
	}
	a.specs[key] = out
	return out
}

// asOf is the cluster of a snapshot at another moment: its groups, DaemonSets and rules, the
// nodes that take pods, and the pods that belong to those. What is under way in the snapshot is
// not, and what the scaler remembers is of another time.
func asOf(s fleet.Snapshot, start time.Time) *fleet.Snapshot {
	shift := start.Sub(s.Now)
	open := map[string]bool{}
	instances := map[string]bool{}
	moving := map[string]bool{} // what comes or goes would be a node of no group, which costs nothing
	for _, g := range s.Groups {
		for _, i := range g.Instances {
			moving[i.ID] = i.State != fleet.InService
		}
	}
	nodes := s.Nodes
	s.Nodes = nil
	for _, n := range nodes {
		if !n.Ready || n.Unschedulable || moving[n.InstanceID()] {
			continue
		}
		open[n.Name], instances[n.InstanceID()] = true, true
		n.Created, n.ReadySince = n.Created.Add(shift), n.ReadySince.Add(shift)
		n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t corev1.Taint) bool { return strings.HasPrefix(t.Key, contract.Prefix) })
		n.Annotations = maps.Clone(n.Annotations)
		maps.DeleteFunc(n.Annotations, func(key, _ string) bool { return strings.HasPrefix(key, contract.Prefix) })
		s.Nodes = append(s.Nodes, n)
	}
	s.Groups = slices.Clone(s.Groups)
	for i := range s.Groups {
		g := &s.Groups[i]
		g.Instances = slices.DeleteFunc(slices.Clone(g.Instances), func(i fleet.Instance) bool { return i.State != fleet.InService || !instances[i.ID] })
		g.Desired = max(g.Min, len(g.Instances))
		g.Failures, g.Refresh, g.Replacement = nil, nil, nil
	}
	pods := s.Pods
	s.Pods = nil
	for _, p := range pods {
		if drainable.BelongsToNode(p) && open[p.Node] && p.Deleted.IsZero() {
			own := *p
			own.Created = fleet.SecondOf(own.Created.Time().Add(shift))
			s.Pods = append(s.Pods, &own)
		}
	}
	s.Now, s.State = start, fleet.State{}
	s.Owners, s.Outages, s.Autoscalers, s.Machines = nil, nil, nil, nil
	return &s
}

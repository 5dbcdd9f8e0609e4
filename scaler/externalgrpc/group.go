package externalgrpc

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/externalgrpc/protocol"
)

// What is known by a name elsewhere: names of groups have no colon.
var escape = strings.NewReplacer("%", "%25", ":", "%3A")

// nameOf is by which name the rest of Windlass knows the group with an id; idOf is the inverse.
func nameOf(id string) string { return escape.Replace(id) }

func idOf(name string) string {
	id, err := url.PathUnescape(name)
	if err != nil {
		return name // which is no group's name then
	}
	return id
}

const (
	// mostMachines is how many instances one group may have, and mostOwed by how many a target size
	// may be above them: each is a node in the simulation.
	mostMachines, mostOwed = 20_000, 5000
	// mostCause is how long a provider's word for a failure may be.
	mostCause = 64
)

// instanceOf says in our words what the provider answers of an instance.
func (k *known) instanceOf(i *protocol.Instance, told time.Time) fleet.Instance {
	s := k.sights[i.GetId()]
	out := fleet.Instance{
		ID: fleet.InstanceIDOf(i.GetId()), State: fleet.InService, Template: s.template,
		Protected: true, // the provider ends none that was not named
	}
	if k.template != nil {
		out.Type = k.template.InstanceType
	}
	switch i.GetStatus().GetInstanceState() {
	case protocol.InstanceStatus_instanceCreating:
		out.State = fleet.Pending
	case protocol.InstanceStatus_instanceDeleting:
		out.State, out.TerminatingSince = fleet.Terminating, s.leaving
	}
	if !told.IsZero() {
		out.State, out.TerminatingSince = fleet.Terminating, told
	}
	if out.State == fleet.Pending && failing(i) {
		out.Failed, out.FailedSince = cause(i.GetStatus().GetErrorInfo()), s.failing
	}
	return out
}

// cause is the provider's word for a failure, as one.
func cause(e *protocol.InstanceErrorInfo) string {
	word := strings.Map(func(r rune) rune {
		if r == ' ' || r == ':' {
			return '-'
		}
		return r
	}, clean(e.GetErrorCode()))
	return contract.Shorten(word, mostCause)
}

// group puts together what is known of a group. stale is why it is not read any more, shared names
// for each instance of several groups those.
func (k *known) group(ended *ledger, gpuLabel, stale string, shared map[string][]string, now time.Time) fleet.Group {
	g := fleet.Group{Name: nameOf(k.id), External: true, Min: k.min, Max: k.max, Zones: []string{""}, GPULabel: gpuLabel, ScaleDown: k.options}
	live := k.addInstances(&g, ended, now)
	g.Desired = k.target
	k.judge(&g, live, shared)
	if t := k.template; t != nil && g.Held == "" {
		g.Zones, g.NodeTemplates, g.Template = []string{t.Zone}, []fleet.NodeTemplate{*t}, k.version
	}
	for _, fault := range []string{k.sizeFault, k.templateFault, k.optionsFault, k.unlabelled(gpuLabel), stale} {
		if fault != "" {
			g.Faults = append(g.Faults, fault)
		}
	}
	return g
}

// addInstances adds the instances, and returns how many count towards the target size.
func (k *known) addInstances(g *fleet.Group, ended *ledger, now time.Time) (live int) {
	seen := map[string]bool{}
	failures := map[string]string{}
	for n, i := range k.instances {
		id := i.GetId()
		switch {
		case n >= mostMachines:
			g.Held = fmt.Sprintf("its provider names more than %d instances", mostMachines)
			return live
		case !strings.Contains(id, "://"), len(id) > mostID, fleet.InstanceIDOf(id) == "":
			g.Held = fmt.Sprintf("its provider names an instance %q: want the providerID of its Node, such as cloud://machine, of at most %d bytes", clean(contract.Shorten(id, 80)), mostID)
			continue
		case seen[id]:
			g.Held = fmt.Sprintf("its provider names instance %s twice", clean(id))
			continue
		}
		seen[id] = true
		instance := k.instanceOf(i, ended.since(fleet.InstanceIDOf(id), now))
		if instance.Live() {
			live++
		}
		if instance.Failed != "" {
			failures[instance.Failed] = fmt.Sprintf("its provider cannot create %s: %s: %s", instance.ID, instance.Failed, clean(i.GetStatus().GetErrorInfo().GetErrorMessage()))
		}
		g.Instances = append(g.Instances, instance)
	}
	slices.SortFunc(g.Instances, func(a, b fleet.Instance) int { return cmp.Compare(a.ID, b.ID) })
	for _, word := range slices.Sorted(maps.Keys(failures)) { // one of each kind is enough
		g.Faults = append(g.Faults, failures[word])
	}
	return live
}

// judge finds what the provider cannot mean: nothing is changed then. Figures that would make the
// simulation endless are cut.
func (k *known) judge(g *fleet.Group, live int, shared map[string][]string) {
	for _, i := range g.Instances {
		if groups := shared[i.ID]; len(groups) > 1 {
			g.Held = fmt.Sprintf("its provider names instance %s in groups %s", clean(i.ID), strings.Join(groups[:min(len(groups), 3)], ", "))
		}
	}
	switch {
	case k.twice:
		g.Held = "its provider names it twice"
	case !k.sized:
		g.Held = "its size and its instances have not been read yet"
	case k.min < 0 || k.max < k.min:
		g.Held = fmt.Sprintf("its provider bounds it by %d to %d", k.min, k.max)
	case k.target < 0:
		g.Held = fmt.Sprintf("its provider reports target size %d", k.target)
	case g.Held == "" && k.target < live:
		g.Held = fmt.Sprintf("its provider reports target size %d, and %d instances that are not ending", k.target, live)
	case k.target-live > mostOwed:
		g.Held = fmt.Sprintf("its provider reports target size %d, and %d instances", k.target, live)
	case g.Held == "" && k.atOnce:
		g.Held = "it grows to its maximum or not at all (zeroOrMaxNodeScaling), which Windlass does not do"
	}
	if g.Held != "" {
		g.Min, g.Max = max(0, min(g.Min, live)), max(live, g.Max)
		g.Desired = min(max(0, g.Desired), live+mostOwed)
	}
	if !k.sized {
		g.Desired = 0
	}
}

// unlabelled says where the provider's label of GPUs and its template do not agree.
func (k *known) unlabelled(gpuLabel string) string {
	if gpuLabel == "" || k.template == nil {
		return ""
	}
	if _, labelled := k.template.Labels[gpuLabel]; !labelled {
		return ""
	}
	for name := range k.template.Allocatable {
		if strings.Contains(string(name), "/") {
			return ""
		}
	}
	return fmt.Sprintf("its node template has the label %s of nodes with GPUs, and no GPU among its resources: pods that ask for one do not fit before a node is there", clean(gpuLabel))
}

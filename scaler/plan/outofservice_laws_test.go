package plan_test

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
)

// lawOutOfService: no machine is called down that may run, and none that is back stays so.
func lawOutOfService(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	if got.Stopped {
		return nil
	}
	var broken []string
	back := map[string]bool{}
	for _, a := range got.Actions {
		switch a := a.(type) {
		case action.OutOfService:
			if why := mayRun(s, p, a); why != "" {
				broken = append(broken, fmt.Sprintf("out of service: %s, and %s", a, why))
			}
		case action.InServiceAgain:
			back[a.Node.Name] = true
			if !mustBeBack(s, nodeNamed(s, a.Node.Name)) {
				broken = append(broken, fmt.Sprintf("out of service: %s, for no reason, or it is somebody's", a))
			}
		}
	}
	for _, n := range s.Nodes {
		if mustBeBack(s, n) && !back[n.Name] {
			broken = append(broken, fmt.Sprintf("out of service: %s may run, and stays marked", n.Name))
		}
	}
	return broken
}

// mayRun is what speaks for it that a node's machine is not down, or not ours to judge.
func mayRun(s fleet.Snapshot, p policy.Policy, a action.OutOfService) string {
	n, m := nodeNamed(s, a.Node.Name), s.Machines[a.Instance]
	i := instanceNamed(s, a.Instance)
	claims := func(o fleet.Node) bool {
		return o.InstanceID() == a.Instance || slices.Contains(slices.Collect(o.WeakIDs()), a.Instance)
	}
	switch {
	case !p.OutOfService:
		return "nobody asked for it"
	case n.Ready:
		return "it is Ready"
	case n.InstanceID() != a.Instance || a.Instance == "":
		return "it is another machine"
	case m.State != "stopped" && m.State != "terminated":
		return fmt.Sprintf("EC2 says %q", m.State)
	case m.State == "stopped" && m.Hibernates:
		return "it hibernates"
	case strings.HasPrefix(i.State, "Warmed:"):
		return "it stands in a warm pool"
	case i.ID == "" && !slices.ContainsFunc(s.Groups, func(g fleet.Group) bool { return g.Name == m.Group }):
		return "it is of no group of ours"
	case n.Attached == 0:
		return "it has no volumes"
	}
	bearers := 0
	for _, o := range s.Nodes {
		if claims(o) {
			bearers++
		}
	}
	if bearers != 1 {
		return fmt.Sprintf("%d Nodes name its instance", bearers)
	}
	return ""
}

// mustBeBack reports whether a node that we have marked is Ready, or may run, or is another
// machine.
func mustBeBack(s fleet.Snapshot, n fleet.Node) bool {
	of, marked := n.Annotations[contract.AnnotationOutOfService]
	m, told := s.Machines[n.InstanceID()]
	down := m.State == "terminated" || m.State == "stopped" && !m.Hibernates
	return marked && (n.Ready || of != n.InstanceID() || told && !down)
}

// machine says what EC2 says of a node's instance, and what was made of that.
func (x *text) machine(name string) {
	if x.number("asked EC2", 0, 3) > 0 {
		return
	}
	x.line("node", name, x.one("hears", "notready", "notready", ""), x.one("volumes", "attached=2", "attached=2", ""),
		x.one("gone", "", "", "", "provider=aws:///a/i-away-"+name))
	if state := x.one("machine", "", "stopped", "stopped", "terminated", "running", "stopping", "shutting-down", "pending"); state != "" {
		id := x.one("of", "i-"+name, "i-"+name, "i-away-"+name)
		x.line("machine", id, "state="+state, x.one("launched by", "", "group=g0", "group=other"), x.rarely("hibernates"))
	}
	switch x.number("what speaks against it", 0, 7) {
	case 0:
		x.line("instance", "i-"+name, "group=g0", "state=Warmed:Stopped")
	case 1:
		x.line("node", name+"-too", x.one("by", "annotate="+contract.AnnotationCSINodeID+"=i-"+name, "provider=aws:///a/i-"+name))
	}
	switch x.number("marked", 0, 3) {
	case 0:
		x.line("node", name, "annotate="+contract.AnnotationOutOfService+"="+x.one("for", "i-"+name, "i-old"))
	case 1:
		t := contract.OutOfServiceTaint()
		x.line("node", name, "taints="+t.Key+"="+t.Value+":"+string(corev1.TaintEffectNoExecute), x.one("ours", "", "annotate="+contract.AnnotationOutOfService+"=i-"+name))
	}
}

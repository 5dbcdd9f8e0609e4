package plan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// Pods with volumes on a machine that is switched off do not come back by themselves: their
// kubelet can end nobody, so a StatefulSet makes no successor, and no volume is detached that
// may be in use. The taint node.kubernetes.io/out-of-service says that the machine is down:
// Kubernetes deletes the pods by force then and detaches their volumes at once. A machine
// that runs after all would lose what it writes. So only EC2's word counts, a fresh one, and
// only "stopped" and "terminated". Every other state may run, and so may what EC2 does not
// know: it forgets terminated instances after an hour, and forgets none that runs.
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-storage/2268-non-graceful-shutdown

// OutOfService puts the taint of that name on a node, if it still is not Ready, has volumes,
// is the only Node of the instance, and EC2 says at that moment that the instance is down.
type OutOfService struct {
	Group    string
	Node     NodeRef
	Instance string
	// Why is a sentence for people.
	Why string
}

// Lane is the group.
func (a OutOfService) Lane() string { return a.Group }

func (a OutOfService) String() string {
	return fmt.Sprintf("mark %s out of service: %s", a.Node, a.Why)
}

// InServiceAgain takes that taint off, if it is ours, and our annotation with it.
type InServiceAgain struct {
	Group string
	Node  NodeRef
	Why   string
}

// Lane is the group.
func (a InServiceAgain) Lane() string { return a.Group }

func (a InServiceAgain) String() string {
	return fmt.Sprintf("mark %s in service again: %s", a.Node, a.Why)
}

// tellOutOfService marks nodes whose machines are down, and takes that back where they may
// run again. Only what bears our annotation is taken back, also where the flag is off by now.
func (d *decision) tellOutOfService() {
	bearers := map[string]int{}
	for _, n := range d.nodes {
		bearers[n.InstanceID()]++
	}
	for _, n := range d.nodes {
		machine, told := d.machines[n.InstanceID()]
		group, ours := d.launchedBy(n, machine)
		switch of, marked := n.Annotations[contract.AnnotationOutOfService]; {
		case marked && n.Ready:
			d.takeBackOutOfService(n, group, "it is Ready again")
		case marked && of != n.InstanceID():
			d.takeBackOutOfService(n, group, fmt.Sprintf("%s was down, and it is another machine", contract.Shorten(of, mostCause)))
		case marked && told && !machine.Down():
			d.takeBackOutOfService(n, group, fmt.Sprintf("EC2 says that %s is %s", n.InstanceID(), machine.State))
		case marked && !told:
			n.say(NodeOutOfService, "its machine was down when it was marked so, and EC2 says nothing of it now; the mark stays until it is Ready again")
		case marked:
			n.say(NodeOutOfService, "its machine is down, and it is marked so until it is Ready again")
		case !d.policy.OutOfService || n.Ready || n.Attached == 0 || !told || !machine.Down() || !ours || n.inPool() || hasOutOfService(n):
		case bearers[n.InstanceID()] > 1 || d.contested(&fleet.Instance{ID: n.InstanceID()}, n) != "":
			n.say(NodeHeld, fmt.Sprintf("EC2 says that %s is %s, and it is not marked out of service: another Node may be that machine", n.InstanceID(), machine.State))
		default:
			why := fmt.Sprintf("%s, EC2 says that %s is %s, and %d %s attached", n.whyUnready(), n.InstanceID(), machine.State, n.Attached, plural(n.Attached, "volume is", "volumes are"))
			n.say(NodeOutOfService, why)
			d.do(OutOfService{Group: group, Node: n.ref(), Instance: n.InstanceID(), Why: why})
		}
	}
}

func (d *decision) takeBackOutOfService(n *node, group, why string) {
	d.do(InServiceAgain{Group: group, Node: n.ref(), Why: why})
	if !n.Ready {
		n.say(NodeUnready, n.whyUnready()+"; "+why)
	}
}

// launchedBy is the group of ours that a node belongs to. One whose instance has ended is in
// none any more, and EC2 knows which had launched it.
func (d *decision) launchedBy(n *node, m fleet.Machine) (group string, ours bool) {
	if n.group != nil {
		return n.group.Name, true
	}
	return m.Group, d.groupOf(m.Group) != nil
}

func hasOutOfService(n *node) bool {
	for _, t := range n.Taints {
		if t.Key == corev1.TaintNodeOutOfService {
			return true
		}
	}
	return false
}

// inServiceAgain says that a taint is there because the machine was down, and goes at once,
// as the node is Ready: a pod that waits just then must not bring a node.
func inServiceAgain(n *node, t corev1.Taint) bool {
	_, ours := n.Annotations[contract.AnnotationOutOfService]
	return ours && n.Ready && t.Key == corev1.TaintNodeOutOfService
}

package plan

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
)

// stage is where a node stands between its coming and its going.
type stage string

const (
	// coming: registered, and not up yet, or not with all that it came for.
	coming stage = "coming"
	// serving: Ready and open to pods. The only stage that pods of retired
	// nodes are moved to.
	serving stage = "serving"
	// cordoned: Ready, and closed by somebody else.
	cordoned stage = "cordoned"
	// unready: it was up, or should long be.
	unready stage = "unready"
	// pooled: it is not up, as its instance stands in a warm pool.
	pooled stage = "pooled"
	// retiring: we asked its agent to drain it, and may still take that back.
	retiring stage = "retiring"
	// returning: a drain of it was taken back, and its agent has yet to undo it.
	returning stage = "returning"
	// leaving: somebody else takes it, Auto Scaling, EC2 or people.
	leaving stage = "leaving"
	// terminating: past the point of no return.
	terminating stage = "terminating"
)

// stageOf asks in the order of finality.
func (d *decision) stageOf(n *node) stage {
	if d.outlived(n) {
		return d.stageOfReturn(n)
	}
	if n.mark != "" {
		return terminating
	}
	if n.instance != nil && n.instance.Leaving() {
		return leaving
	}
	if kind := n.draining(); kind != "" {
		_, back := d.backInService(n)
		switch {
		case kind == contract.KindASG && n.resting() && !n.up():
			return pooled // what is left of its drain stays until it leaves the pool
		case back:
			return d.stageOfReturn(n)
		case n.ours() && kind == contract.KindScaleDown:
			return retiring
		case !n.requested && undone(kind):
			return returning
		}
		return leaving
	}
	if n.inPool() && !n.up() {
		return pooled
	}
	if slices.ContainsFunc(n.Taints, contract.IsKubeProxyTaint) && !n.Unschedulable {
		return returning // an agent that does not know this taint has undone the drain
	}
	if d.comingUp(n) {
		return coming
	}
	if !n.Ready {
		return unready
	}
	if n.Unschedulable {
		return cordoned
	}
	return serving
}

// stageOfReturn is that of a node whose drain has come to nothing, as its instance is
// in service again or on its way there.
func (d *decision) stageOfReturn(n *node) stage {
	if !n.Ready && d.comingUp(n) {
		return coming
	}
	return returning
}

// ours says that the request on the node is a retirement by this scaler.
func (n *node) ours() bool {
	return n.requested && n.request.By == contract.AppScaler && n.request.Kind == contract.KindScaleDown
}

// undone: a drain of such a kind goes on for as long as its request stands. If
// there is none any more, what is left of the drain is being undone.
func undone(kind contract.Kind) bool {
	return kind == contract.KindScaleDown || kind == contract.KindRequest
}

// comingUp says that a node has not served yet: it is young, and either not
// Ready, or still tainted until something has started on it, or without the devices
// that it came for.
func (d *decision) comingUp(n *node) bool {
	patience := d.dueUp(n)
	if !d.now.Before(patience) || n.up() && len(n.awaitedDevices()) == 0 && len(n.awaitedDrivers()) == 0 {
		return false
	}
	d.clock.at(patience)
	return true
}

// uncordoned says that a taint stands for a cordon that was taken off. The node
// controller takes the taint off a moment later than people or agents take off
// the cordon; a pod that waits just then must not bring a node.
// https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#taint-nodes-by-condition
func uncordoned(n *node, t corev1.Taint) bool {
	return t.Key == corev1.TaintNodeUnschedulable && !n.Unschedulable
}

// passing says which taints of a node go by themselves in its stage, and ok whether
// the node is a place for pods at all.
func (d *decision) passing(n *node) (ignored func(corev1.Taint) bool, ok bool) {
	switch n.stage {
	case serving:
		return func(t corev1.Taint) bool { return uncordoned(n, t) || inServiceAgain(n, t) }, true
	case cordoned:
		_, recommended := n.recommendation() // it is open once it is released
		return func(t corev1.Taint) bool { return recommended && n.oursToUndo(t) }, !recommended
	case coming:
		return func(t corev1.Taint) bool {
			return t.Key != corev1.TaintNodeUnschedulable && d.policy.transient(t) || n.oursToUndo(t) || uncordoned(n, t)
		}, true
	case retiring, returning:
		open := n.stage == returning || n.Ready // to keep one that is not Ready helps nobody
		if _, recommended := n.closedForRecommendation(); recommended {
			open = false
		}
		return func(t corev1.Taint) bool { return n.oursToUndo(t) || uncordoned(n, t) || inServiceAgain(n, t) }, open
	}
	return func(corev1.Taint) bool { return false }, false
}

// oursToUndo says that a taint is there for a drain and goes with it.
func (n *node) oursToUndo(t corev1.Taint) bool {
	_, ourCordon := n.Annotations[contract.AnnotationCordonedBy]
	return t.Key == contract.TaintDraining || contract.IsKubeProxyTaint(t) || ourCordon && t.Key == corev1.TaintNodeUnschedulable
}

// sayStage gives a verdict to every node that no step has spoken of.
func (d *decision) sayStage(n *node) {
	switch {
	case n.group == nil:
		n.say(NodeNotOurs, "its instance is in none of our groups")
	case n.instance.Leaving():
		n.say(NodeLeaving, "Auto Scaling terminates its instance")
	case !n.instance.Live():
		n.say(NodeNotOurs, n.whyNotOurs())
	}
	switch n.stage {
	case coming:
		n.say(NodeComing, n.whyComing())
	case unready:
		n.say(NodeUnready, "it is not Ready")
	case returning:
		n.say(NodeKept, "its drain was taken back, and its agent is undoing it")
	case leaving:
		n.say(NodeLeaving, n.whyLeaving()+cmp.Or(d.carriedOn(n), n.unheard(), n.reportedProgress()))
	}
}

// reportedProgress is how far the agent says that its drain is; empty where it says nothing.
func (n *node) reportedProgress() string {
	switch {
	case !n.reported || len(n.report.Answers) == 0:
		return ""
	case n.report.Phase == contract.PhaseDrained:
		return "; no pod is left"
	case n.report.Phase == contract.PhaseFailed:
		return "; its drain failed: " + n.report.Message
	}
	return "; its drain goes on" + standing(n.report)
}

// unheard says that somebody asked for the drain, and that its agent has not answered.
func (n *node) unheard() string {
	if _, answered := n.answered(n.request.ID); !n.requested || answered {
		return ""
	}
	return "; its agent has not answered yet"
}

func (n *node) whyLeaving() string {
	switch kind := n.draining(); kind {
	case contract.KindSpot:
		return "EC2 takes its spot instance back"
	case contract.KindRequest:
		if n.request.By != "" {
			return fmt.Sprintf("%s asked for its drain", n.request.By)
		}
		return "people asked for its drain"
	default:
		return fmt.Sprintf("it is drained for %s", kind)
	}
}

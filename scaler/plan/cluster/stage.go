package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Stage is where a node stands between its registration and its termination.
type Stage string

const (
	// Upcoming: registered, and not up yet, or not with all that it came for.
	Upcoming Stage = "upcoming"
	// Serving: Ready and open to pods. Pods of scaled-down nodes are moved to nodes of this stage
	// alone.
	Serving Stage = "serving"
	// Cordoned: Ready, and closed by others.
	Cordoned Stage = "cordoned"
	// Unready: it was up, or should long be.
	Unready Stage = "unready"
	// inWarmPool: it is not up, as its instance stands in a warm pool.
	inWarmPool Stage = "in-warm-pool"
	// ScalingDown: we asked its agent to drain it, and may still cancel that.
	ScalingDown Stage = "scaling-down"
	// Returning: a drain of it was cancelled, and its agent has yet to undo it.
	Returning Stage = "returning"
	// Draining: others take it: Auto Scaling, EC2 or people.
	Draining Stage = "draining"
	// Terminating: past the point of no return.
	Terminating Stage = "terminating"
)

// stageOf asks in the order of finality.
func (d *Cluster) stageOf(n *Node) Stage {
	if d.Outlived(n) {
		return d.stageOfReturn(n)
	}
	if n.Mark != "" {
		return Terminating
	}
	if n.Instance != nil && n.Instance.Terminating() {
		return Draining
	}
	if kind := n.Draining(); kind != "" {
		_, back := d.BackInService(n)
		switch {
		case kind == contract.KindASG && n.resting() && !n.Up():
			return inWarmPool // what is left of its drain stays until it leaves the warm pool
		case back:
			return d.stageOfReturn(n)
		case n.ours() && kind == contract.KindScaleDown:
			return ScalingDown
		case !n.Requested && undone(kind):
			return Returning
		}
		return Draining
	}
	if n.InWarmPool() && !n.Up() {
		return inWarmPool
	}
	if slices.ContainsFunc(n.Taints, contract.IsKubeProxyTaint) && !n.Unschedulable {
		return Returning // an agent that does not know this taint has undone the drain
	}
	if d.upcoming(n) {
		return Upcoming
	}
	if !n.Ready {
		return Unready
	}
	if n.Unschedulable && !d.Leftover(n).Cordon {
		return Cordoned
	}
	return Serving
}

// stageOfReturn is that of a node whose drain has come to nothing, as its instance is in service
// again or soon will be.
func (d *Cluster) stageOfReturn(n *Node) Stage {
	if !n.Ready && d.upcoming(n) {
		return Upcoming
	}
	return Returning
}

// ours reports whether the request on the node is a scale-down by this scaler.
func (n *Node) ours() bool {
	return n.Requested && n.Request.By == contract.AppScaler && n.Request.Kind == contract.KindScaleDown
}

// undone: a drain of such a kind goes on for as long as its request stands. If
// there is none any more, what is left of the drain is being undone.
func undone(kind contract.Kind) bool {
	return kind == contract.KindScaleDown || kind == contract.KindRequest
}

// upcoming reports whether a node has not served yet: it is young, and either not
// Ready, or still tainted until something has started on it, or without the devices
// that it came for.
func (d *Cluster) upcoming(n *Node) bool {
	patience := d.DueUp(n)
	if !d.Now.Before(patience) || n.Up() && len(n.awaitedDevices()) == 0 && len(n.awaitedDrivers()) == 0 {
		return false
	}
	d.Clock.At(patience)
	return true
}

// uncordoned reports whether a taint stands for a cordon that was taken off. The node controller
// takes the taint off a moment later than people or agents take off the cordon; a pod that is
// pending just then must not trigger scale-up.
// https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#taint-nodes-by-condition
func uncordoned(n *Node, t corev1.Taint) bool {
	return t.Key == corev1.TaintNodeUnschedulable && !n.Unschedulable
}

// Passing says which taints of a node go by themselves in its stage, and ok whether
// the node is a place for pods at all.
func (d *Cluster) Passing(n *Node) (ignored func(corev1.Taint) bool, ok bool) {
	switch n.Stage {
	case Serving:
		if len(n.Taints) == 0 { // most nodes have none, and there are many
			return noTaint, true
		}
		return func(t corev1.Taint) bool { return uncordoned(n, t) || inServiceAgain(n, t) || d.leftover(n, t) }, true
	case Cordoned:
		_, recommended := n.Recommendation() // it is open once it is released
		return func(t corev1.Taint) bool { return recommended && n.oursToUndo(t) }, !recommended
	case Upcoming:
		return func(t corev1.Taint) bool {
			return t.Key != corev1.TaintNodeUnschedulable && d.Policy.Transient(t) || n.oursToUndo(t) || uncordoned(n, t)
		}, true
	case ScalingDown, Returning:
		open := n.Stage == Returning || n.Ready // to keep one that is not Ready helps no pod
		if _, recommended := n.closedForRecommendation(); recommended {
			open = false
		}
		return func(t corev1.Taint) bool { return n.oursToUndo(t) || uncordoned(n, t) || inServiceAgain(n, t) }, open
	}
	return noTaint, false
}

func noTaint(corev1.Taint) bool { return false }

// oursToUndo reports whether a taint is there for a drain and is removed with it.
func (n *Node) oursToUndo(t corev1.Taint) bool {
	_, ourCordon := n.Annotations[contract.AnnotationCordonedBy]
	return t.Key == contract.TaintDraining || contract.IsKubeProxyTaint(t) || ourCordon && t.Key == corev1.TaintNodeUnschedulable
}

// ReportedProgress is how far the agent says that its drain is; nil where it says nothing.
func (n *Node) ReportedProgress() verdict.Details {
	switch {
	case !n.Reported || len(n.Report.Answers) == 0:
		return nil
	case n.Report.Phase == contract.PhaseDrained:
		return verdict.Say("no pod is left")
	case n.Report.Phase == contract.PhaseFailed:
		return verdict.Say("its drain failed: {cause}", verdict.Cause(n.Report.Message))
	}
	return verdict.Standing(verdict.Say("its drain goes on"), n.Report)
}

// Unheard says that the drain was requested, and that its agent has not answered.
func (n *Node) Unheard() verdict.Details {
	if _, answered := n.Answered(n.Request.ID); !n.Requested || answered {
		return nil
	}
	return verdict.Say("its agent has not answered yet")
}

func (n *Node) WhyDraining() verdict.Details {
	switch kind := n.Draining(); kind {
	case contract.KindSpot:
		return verdict.Say("EC2 interrupts its spot instance")
	case contract.KindASG:
		return verdict.Say("Auto Scaling asked for its drain")
	case contract.KindRequest:
		if n.Request.By != "" {
			return verdict.Say("{by} asked for its drain", verdict.By(n.Request.By))
		}
		return verdict.Say("people asked for its drain")
	default:
		return verdict.Say("it is drained for {notice}", verdict.Notice(string(kind)))
	}
}

package contract

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// TaintDraining keeps new pods off a node that leaves; its value is the
	// kind. The scaler sets it in the same patch as its request, the agent for
	// its own notices; the agent alone removes it, the scaler only where the
	// agent is gone.
	TaintDraining = Prefix + "draining"

	// TaintUnneeded remembers, in the world, since when a node is unneeded: its
	// value is the Unix time in seconds. PreferNoSchedule, so that new pods go
	// elsewhere where they can. Written and read by the scaler.
	TaintUnneeded = Prefix + "unneeded"

	// TaintFillLater has kube-scheduler fill other nodes first, which are fuller. PreferNoSchedule,
	// so that no pod waits for it. Written and read by the scaler, with --consolidate=balance.
	TaintFillLater = Prefix + "fill-later"

	// TaintSurplus has kube-scheduler fill a node last that bears it beside TaintFillLater: what
	// runs in the cluster would fit without this one. Written and read alike.
	TaintSurplus = Prefix + "surplus"
)

// FillTurn is when kube-scheduler fills a node, among those that a pod could go to.
type FillTurn int

// A node bears as many taints as its turn comes later: kube-scheduler's score TaintToleration
// counts them.
// https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
const (
	fillOdd FillTurn = iota - 1
	FillFirst
	FillLater
	FillLast
)

var fillTaints = []string{TaintFillLater, TaintSurplus}

// kubeProxyMark is the value by which a taint TaintToBeDeleted is ours. Cluster Autoscaler
// writes a time there, and kube-proxy does not look at it.
const kubeProxyMark = "windlass"

// KubeProxyTaint makes kube-proxy tell load balancers that the node goes: its /healthz
// fails while a taint TaintToBeDeleted stands, and they send nothing new through the node
// to Services with externalTrafficPolicy Cluster. Connections that there are go on.
// Written with the drain and removed on undo, only where --kube-proxy-drain-taint says so.
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-network/3836-kube-proxy-improved-ingress-connectivity-reliability
func KubeProxyTaint() corev1.Taint {
	return corev1.Taint{Key: TaintToBeDeleted, Value: kubeProxyMark, Effect: corev1.TaintEffectNoSchedule}
}

// IsKubeProxyTaint reports whether a taint is KubeProxyTaint and not Cluster Autoscaler's own.
func IsKubeProxyTaint(t corev1.Taint) bool {
	return t.Key == TaintToBeDeleted && t.Value == kubeProxyMark
}

// WithKubeProxyTaint returns the taints with KubeProxyTaint, unless somebody's of the
// same key stands there and does the same.
func WithKubeProxyTaint(taints []corev1.Taint) []corev1.Taint {
	if slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Key == TaintToBeDeleted }) {
		return taints
	}
	return append(slices.Clone(taints), KubeProxyTaint())
}

// WithoutKubeProxyTaint returns the taints but KubeProxyTaint; the same slice where it
// does not stand there.
func WithoutKubeProxyTaint(taints []corev1.Taint) []corev1.Taint {
	if !slices.ContainsFunc(taints, IsKubeProxyTaint) {
		return taints
	}
	return slices.DeleteFunc(slices.Clone(taints), IsKubeProxyTaint)
}

// DrainingTaint is the taint of a node that leaves.
func DrainingTaint(k Kind) corev1.Taint {
	return corev1.Taint{Key: TaintDraining, Value: string(k), Effect: corev1.TaintEffectNoSchedule}
}

// OutOfServiceTaint says that the node's machine is down for certain: Kubernetes deletes the
// pods there by force and detaches their volumes at once.
// https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/#non-graceful-node-shutdown
func OutOfServiceTaint() corev1.Taint {
	return corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
}

// UnneededTaint is the taint of a node that nobody needs since then.
func UnneededTaint(since time.Time) corev1.Taint {
	return corev1.Taint{Key: TaintUnneeded, Value: strconv.FormatInt(since.Unix(), 10), Effect: corev1.TaintEffectPreferNoSchedule}
}

// WithFillTurn returns the taints with those of that turn.
func WithFillTurn(taints []corev1.Taint, turn FillTurn) []corev1.Taint {
	for i, key := range fillTaints {
		if i < int(turn) {
			taints = WithTaint(taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectPreferNoSchedule})
		} else {
			taints = WithoutTaint(taints, key)
		}
	}
	return taints
}

// FillTurnOf is the turn of a node with these taints; fillOdd where they are those of none, as the
// last alone.
func FillTurnOf(taints []corev1.Taint) (turn FillTurn) {
	count := 0
	for i, key := range fillTaints {
		for _, t := range taints {
			if t.Key == key {
				turn = FillTurn(i + 1)
				count++
			}
		}
	}
	if count != int(turn) {
		return fillOdd
	}
	return turn
}

// Draining finds the draining taint among a node's taints.
func Draining(taints []corev1.Taint) (Kind, bool) {
	for _, t := range taints {
		if t.Key == TaintDraining {
			return Kind(t.Value), true
		}
	}
	return "", false
}

// Unneeded reads the unneeded taint. ok is false where there is none; a value
// that is no Unix time is an error that quotes it.
func Unneeded(taints []corev1.Taint) (since time.Time, ok bool, err error) {
	for _, t := range taints {
		if t.Key != TaintUnneeded {
			continue
		}
		seconds, err := strconv.ParseInt(t.Value, 10, 64)
		if err != nil {
			return time.Time{}, false, fmt.Errorf("taint %s has the value %s: want Unix seconds", TaintUnneeded, quoted(t.Value))
		}
		return time.Unix(seconds, 0).UTC(), true, nil
	}
	return time.Time{}, false, nil
}

// WithoutTaint returns the taints but those of a key, in a slice of its own.
func WithoutTaint(taints []corev1.Taint, key string) []corev1.Taint {
	out := make([]corev1.Taint, 0, len(taints))
	for _, t := range taints {
		if t.Key != key {
			out = append(out, t)
		}
	}
	return out
}

// WithTaint returns the taints with t in place of every taint of its key.
func WithTaint(taints []corev1.Taint, t corev1.Taint) []corev1.Taint {
	return append(WithoutTaint(taints, t.Key), t)
}

package contract

import (
	"fmt"
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
)

// DrainingTaint is the taint of a node that leaves.
func DrainingTaint(k Kind) corev1.Taint {
	return corev1.Taint{Key: TaintDraining, Value: string(k), Effect: corev1.TaintEffectNoSchedule}
}

// UnneededTaint is the taint of a node that nobody needs since then.
func UnneededTaint(since time.Time) corev1.Taint {
	return corev1.Taint{Key: TaintUnneeded, Value: strconv.FormatInt(since.Unix(), 10), Effect: corev1.TaintEffectPreferNoSchedule}
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

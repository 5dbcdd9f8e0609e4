package contract

import "fmt"

// Kind says why a node leaves. It is the value of the draining taint, so it
// is a valid label value.
type Kind string

const (
	// KindSpot is a spot interruption: the instance goes two minutes after
	// the notice, whatever we do.
	KindSpot Kind = "spot"
	// KindASG is a termination begun by Auto Scaling itself.
	KindASG Kind = "asg"
	// KindMaintenance is a scheduled EC2 maintenance event.
	KindMaintenance Kind = "maintenance"
	// KindRebalance is an EC2 rebalance recommendation.
	KindRebalance Kind = "rebalance"
	// KindScaleDown is a retirement decided by the scaler.
	KindScaleDown Kind = "scale-down"
	// KindRequest is a drain asked for by a person or another program.
	KindRequest Kind = "request"
)

// Kinds lists every kind, the strongest first: where several notices stand,
// the first in this order decides how the drain is done.
var Kinds = []Kind{KindSpot, KindASG, KindMaintenance, KindRebalance, KindScaleDown, KindRequest}

// ParseKind accepts one of Kinds.
func ParseKind(s string) (Kind, error) {
	for _, k := range Kinds {
		if string(k) == s {
			return k, nil
		}
	}
	return "", fmt.Errorf("unknown kind of drain %s: want one of %v", quoted(s), Kinds)
}

// Strength orders kinds: a greater strength overrules a lesser one. An
// unknown kind has strength 0.
func (k Kind) Strength() int {
	for i, known := range Kinds {
		if known == k {
			return len(Kinds) - i
		}
	}
	return 0
}

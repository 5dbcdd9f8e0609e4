package fit

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Rule names what a pod fails by, in the words of kube-scheduler's plugins.
type Rule string

// The rules, in the order in which they are asked.
const (
	RuleUnschedulable Rule = "NodeUnschedulable"
	RuleName          Rule = "NodeName"
	RuleTaint         Rule = "TaintToleration"
	RuleSelector      Rule = "NodeSelector"
	RuleAffinity      Rule = "NodeAffinity"
	RulePort          Rule = "NodePorts"
	RuleResources     Rule = "NodeResourcesFit"
)

// Reason is one thing that keeps a pod off a place.
type Reason struct {
	Rule Rule
	// What is the taint, the selector, the node name, the port or the resource.
	What string
	// Found is what the place has instead, for a selector; empty where it has
	// nothing of the kind.
	Found string
	// Need is what the pod asks for and Have what the place has left, in
	// thousandths for cpu, in whole units otherwise; RuleResources only.
	Need, Have int64
}

func (r Reason) String() string {
	switch r.Rule {
	case RuleUnschedulable:
		return "cordoned"
	case RuleName:
		return fmt.Sprintf("wants the node %s by name", r.What)
	case RuleTaint:
		return fmt.Sprintf("taint %s not tolerated", r.What)
	case RuleSelector:
		if r.Found == "" {
			return fmt.Sprintf("node selector %s: no such label", r.What)
		}
		return fmt.Sprintf("node selector %s: it is %s", r.What, r.Found)
	case RuleAffinity:
		return fmt.Sprintf("node affinity %s not met", r.What)
	case RulePort:
		return fmt.Sprintf("host port %s is taken", r.What)
	case RuleResources:
		name := corev1.ResourceName(r.What)
		if name == corev1.ResourcePods {
			return "has as many pods as it may"
		}
		return fmt.Sprintf("needs %s %s, has %s", figure(name, r.Need), r.What, figure(name, r.Have))
	}
	return string(r.Rule)
}

// shortfall is how much of what is needed is missing, 0 to 1; 1 for what no
// amount can mend.
func (r Reason) shortfall() float64 {
	if r.Rule != RuleResources || r.Need <= 0 {
		return 1
	}
	return min(1, float64(r.Need-max(0, r.Have))/float64(r.Need))
}

// Reasons is everything that keeps a pod off a place, in the order of the
// rules; none means that it fits.
type Reasons []Reason

func (r Reasons) String() string {
	texts := make([]string, len(r))
	for i, reason := range r {
		texts[i] = reason.String()
	}
	return strings.Join(texts, ", ")
}

// Nearer says that r is a nearer miss than o: fewer reasons, or as many and less
// missing.
func (r Reasons) Nearer(o Reasons) bool {
	if len(r) != len(o) {
		return len(r) < len(o)
	}
	return r.shortfall() < o.shortfall()
}

func (r Reasons) shortfall() float64 {
	sum := 0.0
	for _, reason := range r {
		sum += reason.shortfall()
	}
	return sum
}

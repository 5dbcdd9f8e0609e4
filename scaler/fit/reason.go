package fit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
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
	RuleFeatures      Rule = "NodeDeclaredFeatures"
	RulePort          Rule = "NodePorts"
	RuleResources     Rule = "NodeResourcesFit"

	RulePodTopologySpread  Rule = "PodTopologySpread"
	RuleInterPodAffinity   Rule = "InterPodAffinity"
	RuleVolumeRestrictions Rule = "VolumeRestrictions"
	RuleNodeVolumeLimits   Rule = "NodeVolumeLimits"
	RuleVolumeBinding      Rule = "VolumeBinding"
	RuleVolumeZone         Rule = "VolumeZone"
	RuleDynamicResources   Rule = "DynamicResources"
)

// plugin is the name of the plugin whose rule it is. NodeAffinity has two, which
// have words of their own.
func (r Rule) plugin() string {
	if r == RuleSelector {
		return string(RuleAffinity)
	}
	return string(r)
}

// Reason is one thing that keeps a pod off a place.
type Reason struct {
	Rule Rule
	// What is the taint, the selector, the node name, the port or the resource; for
	// rules about other pods, volumes and devices the whole sentence.
	What string
	// Found is what the place has instead, for a selector, and its zone, for a volume
	// that is in another; empty where it has nothing of the kind.
	Found string
	// Need is what the pod asks for and Have what the place has left, in
	// thousandths for cpu, in whole units otherwise; RuleResources only.
	Need, Have int64
}

func (r Reason) String() string { return r.of("") }

// of is the reason where what lacks a resource is called by name.
func (r Reason) of(name string) string {
	if name != "" {
		name += " "
	}
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
		return fmt.Sprintf("node selector %s: the label is %s", r.What, r.Found)
	case RuleAffinity:
		return fmt.Sprintf("node affinity %s not met", r.What)
	case RulePort:
		return fmt.Sprintf("host port %s is taken", r.What)
	case RuleResources:
		resource := corev1.ResourceName(r.What)
		if resource == corev1.ResourcePods {
			return name + "has as many pods as it may"
		}
		return fmt.Sprintf("needs %s %s, %shas %s", figure(resource, r.Need), r.What, name, figure(resource, r.Have))
	}
	if r.What != "" {
		return r.What
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

func (r Reasons) String() string { return r.Of("") }

// Of is the reasons where what lacks a resource is called by name. What means the
// same in more words is left out: plugins repeat each other, and a pod and another
// of its kind keep each other away for the same reason.
func (r Reasons) Of(name string) string {
	var texts []string
	apart := false
	for _, reason := range r {
		text := reason.of(name)
		said := slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(text, s) })
		if said || apart && reason.Rule == RuleInterPodAffinity {
			continue
		}
		apart = apart || reason.Rule == RuleInterPodAffinity
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// Compare puts the nearer miss first: fewer reasons, or as many and less missing.
func (r Reasons) Compare(o Reasons) int {
	return cmp.Or(cmp.Compare(len(r), len(o)), cmp.Compare(r.shortfall(), o.shortfall()))
}

func (r Reasons) shortfall() float64 {
	sum := 0.0
	for _, reason := range r {
		sum += reason.shortfall()
	}
	return sum
}

// newName stands for the host name of a node that is not there yet.
const newName = "a new node's own"

func selectorMisses(selector map[string]string, p *Place) Reasons {
	var why Reasons
	labels := p.node().Labels
	for k, v := range selector {
		found, ok := labels[k]
		if ok && found == v {
			continue
		}
		if p.opened > 0 && k == corev1.LabelHostname {
			found = newName
		}
		why = append(why, Reason{Rule: RuleSelector, What: k + "=" + v, Found: found})
	}
	slices.SortFunc(why, func(a, b Reason) int { return strings.Compare(a.What, b.What) })
	return why
}

// affinityMisses names the expressions that fail where there is one term, and
// the whole where there are several, of which any would do.
func affinityMisses(required *corev1.NodeSelector, node *corev1.Node) Reasons {
	if required == nil || anyMatches(required.NodeSelectorTerms, node) {
		return nil
	}
	if len(required.NodeSelectorTerms) != 1 {
		return Reasons{{Rule: RuleAffinity, What: fmt.Sprintf("of %d terms", len(required.NodeSelectorTerms))}}
	}
	var why Reasons
	term := required.NodeSelectorTerms[0]
	for _, e := range term.MatchExpressions {
		if !anyMatches([]corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{e}}}, node) {
			why = append(why, Reason{Rule: RuleAffinity, What: expression(e)})
		}
	}
	for _, e := range term.MatchFields {
		if !anyMatches([]corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{e}}}, node) {
			why = append(why, Reason{Rule: RuleAffinity, What: expression(e)})
		}
	}
	if len(why) == 0 {
		return Reasons{{Rule: RuleAffinity, What: "of an empty term"}}
	}
	return why
}

func anyMatches(terms []corev1.NodeSelectorTerm, node *corev1.Node) bool {
	ok, err := nodeaffinity.NewLazyErrorNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: terms}).Match(node)
	return ok && err == nil
}

func expression(e corev1.NodeSelectorRequirement) string {
	if len(e.Values) == 0 {
		return fmt.Sprintf("%s %s", e.Key, e.Operator)
	}
	return fmt.Sprintf("%s %s %s", e.Key, e.Operator, strings.Join(e.Values, ","))
}

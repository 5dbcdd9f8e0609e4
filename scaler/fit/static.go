package fit

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// verdictKey names a static question.
type verdictKey struct{ class, looks string }

// static is what no amount of room can mend. It is asked once for each class
// and looks.
func (c *Cluster) static(class *Class, l *Looks) Reasons {
	if class.singular {
		return static(class, l)
	}
	key := verdictKey{class.Key, l.key}
	if why, ok := c.verdicts[key]; ok {
		return why
	}
	why := static(class, l)
	c.verdicts[key] = why
	return why
}

func static(class *Class, l *Looks) Reasons {
	var why Reasons
	if l.unschedulable && !tolerates(class.tolerations, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}) {
		why = append(why, Reason{Rule: RuleUnschedulable})
	}
	if class.nodeName != "" && class.nodeName != l.node.Name {
		why = append(why, Reason{Rule: RuleName, What: class.nodeName})
	}
	for _, t := range l.taints {
		if !tolerates(class.tolerations, t) {
			why = append(why, Reason{Rule: RuleTaint, What: t.ToString()})
		}
	}
	if ok, err := class.required.Match(l.node); ok && err == nil {
		return why
	}
	why = append(why, selectorMisses(class.selector, l.node.Labels)...)
	return append(why, affinityMisses(class.affinity, l.node)...)
}

// Tolerates says that none of these taints keeps the class off.
func (c *Class) Tolerates(taints ...corev1.Taint) bool {
	for _, t := range taints {
		if !tolerates(c.tolerations, t) {
			return false
		}
	}
	return true
}

func tolerates(tolerations []corev1.Toleration, t corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(tol corev1.Toleration) bool {
		return tol.ToleratesTaint(klog.Logger{}, &t, false)
	})
}

func selectorMisses(selector, labels map[string]string) Reasons {
	var why Reasons
	for k, v := range selector {
		found, ok := labels[k]
		if ok && found == v {
			continue
		}
		why = append(why, Reason{Rule: RuleSelector, What: k + "=" + v, Found: found})
	}
	slices.SortFunc(why, func(a, b Reason) int { return strings.Compare(a.What, b.What) })
	return why
}

// affinityMisses names the expressions that fail where there is one term, and
// the whole where there are several, of which any would do.
func affinityMisses(required *corev1.NodeSelector, node *corev1.Node) Reasons {
	if required == nil || matches(required.NodeSelectorTerms, node) {
		return nil
	}
	if len(required.NodeSelectorTerms) != 1 {
		return Reasons{{Rule: RuleAffinity, What: fmt.Sprintf("of %d terms", len(required.NodeSelectorTerms))}}
	}
	var why Reasons
	term := required.NodeSelectorTerms[0]
	for _, e := range term.MatchExpressions {
		if !matches([]corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{e}}}, node) {
			why = append(why, Reason{Rule: RuleAffinity, What: expression(e)})
		}
	}
	for _, e := range term.MatchFields {
		if !matches([]corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{e}}}, node) {
			why = append(why, Reason{Rule: RuleAffinity, What: expression(e)})
		}
	}
	if len(why) == 0 {
		return Reasons{{Rule: RuleAffinity, What: "of an empty term"}}
	}
	return why
}

func matches(terms []corev1.NodeSelectorTerm, node *corev1.Node) bool {
	ok, err := nodeaffinity.NewLazyErrorNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: terms}).Match(node)
	return ok && err == nil
}

func expression(e corev1.NodeSelectorRequirement) string {
	if len(e.Values) == 0 {
		return fmt.Sprintf("%s %s", e.Key, e.Operator)
	}
	return fmt.Sprintf("%s %s %s", e.Key, e.Operator, strings.Join(e.Values, ","))
}

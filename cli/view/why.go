package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
)

// Why is the answer about one subject.
type Why struct {
	AsOf *AsOf `json:"asOf,omitempty"`
	Subject
	Reason statuspage.Reason `json:"reason,omitempty"`
	Advice
	// Message is the verdict in one sentence, Details the same in parts.
	Message string    `json:"message"`
	Details []WhyLine `json:"details"`
	Pod     *WhyPod   `json:"pod,omitempty"`
	Node    *WhyNode  `json:"node,omitempty"`
	Group   *WhyGroup `json:"group,omitempty"`
	Related []*Why    `json:"related,omitempty"`
}

// WhyLine is one part of a verdict, and what it speaks of.
type WhyLine struct {
	Text string   `json:"text"`
	Of   []string `json:"of,omitempty"`
}

// WhyPod is what there is to say of a pod alone.
type WhyPod struct {
	// Node is where it runs; empty while it is pending.
	Node string `json:"node,omitempty"`
	// Grows is the group that grows for it.
	Grows string `json:"grows,omitempty"`
	// Gates are its scheduling gates, which somebody else removes.
	Gates []string `json:"gates,omitempty"`
	// Alike counts the pods of which the same is said, itself among them.
	Alike int `json:"alike,omitempty"`
	// Groups has for each group the first reason against it, and what is true of the group.
	Groups []AgainstGroup `json:"groups,omitempty"`
}

// AgainstGroup is why a group has no node for a pod.
type AgainstGroup struct {
	Group string `json:"group"`
	Text  string `json:"text"`
	// Size is the group's own state, such as "9 desired of 0 to 9".
	Size string `json:"size,omitempty"`
}

// WhyNode is what there is to say of a node alone.
type WhyNode struct {
	Group        string    `json:"group,omitempty"`
	Type         string    `json:"type,omitempty"`
	Zone         string    `json:"zone,omitempty"`
	Spot         bool      `json:"spot"`
	Both         bool      `json:"both,omitempty"` // which of both is not known
	PricePerHour float64   `json:"pricePerHour,omitempty"`
	Hold         string    `json:"hold,omitempty"`
	HeldBecause  string    `json:"heldBecause,omitempty"` // what the annotation says beside "true"
	Unneeded     time.Time `json:"unneededSince,omitzero"`
	Notices      []string  `json:"notices,omitempty"`
	Drain        *Drain    `json:"drain,omitempty"`
}

// WhyGroup is what there is to say of a group alone.
type WhyGroup struct {
	Group
	Faults []string `json:"faults,omitempty"`
	// Pending are classes of pending pods that it does not grow for.
	Pending []PendingClass `json:"pending"`
	// Nodes are its nodes by reason: why it does not shrink.
	Nodes []NodesOf `json:"nodes"`
}

// PendingClass is some pending pods, and why a group has no node for them.
type PendingClass struct {
	Count   int    `json:"count"`
	Example string `json:"example"`
	Text    string `json:"text"`
}

// NodesOf are the nodes of a group with the same reason.
type NodesOf struct {
	Reason       statuspage.Reason `json:"reason"`
	Count        int               `json:"count"`
	PricePerHour float64           `json:"pricePerHour,omitempty"`
	Example      string            `json:"example"`
	Message      string            `json:"message"`
	Do           string            `json:"do,omitempty"`
}

// NewWhy answers about a subject that exists.
func NewWhy(w World, s Subject) Why {
	why, asOf := newWhyOf(w, s), w.AsOf()
	why.AsOf = &asOf
	return why
}

func newWhyOf(w World, s Subject) Why {
	switch s.Kind {
	case KindPod:
		return whyPod(w, s)
	case KindNode:
		return whyNode(w, s)
	}
	return whyGroup(w, s)
}

func newWhy(s Subject, v statuspage.Verdict) Why {
	why := Why{Subject: s, Reason: v.Reason, Message: v.Message(), Advice: AdviceOn(s.Kind, v.Reason), Details: []WhyLine{}}
	for _, d := range v.Details {
		why.Details = append(why.Details, WhyLine{d.Text, path(d)})
	}
	return why
}

// pod finds a Pod by namespace/name; nil where it was not read.
func (w *World) pod(key string) *corev1.Pod {
	for i := range w.Pods {
		if p := &w.Pods[i]; p.Namespace+"/"+p.Name == key {
			return p
		}
	}
	return nil
}

func whyPod(w World, s Subject) Why {
	class, pod := w.podVerdict(s.Name), w.pod(s.Name)
	if pod != nil && pod.Spec.NodeName != "" { // the verdict is of a moment ago
		return whyPlaced(w, s, pod)
	}
	if class == nil {
		why := newWhy(s, statuspage.Verdict{})
		why.Message, why.Do = unspoken(w, pod)
		why.Pod = &WhyPod{}
		return why
	}
	why := newWhy(s, class.Verdict)
	why.Pod = &WhyPod{Grows: class.Group, Alike: class.Count}
	if pod != nil {
		for _, gate := range pod.Spec.SchedulingGates {
			why.Pod.Gates = append(why.Pod.Gates, gate.Name)
		}
	}
	for _, d := range class.Details {
		name, is := d.Params["group"].(string)
		g := w.groupVerdict(name)
		if !is || g == nil {
			continue
		}
		why.Pod.Groups = append(why.Pod.Groups, AgainstGroup{name, strings.TrimPrefix(d.Text, name+": "), fmt.Sprintf("%d of %d to %d, %s", g.Desired, g.Min, g.Max, g.Reason)})
	}
	return why
}

// unspoken says why there is no verdict on a pending pod.
func unspoken(w World, pod *corev1.Pod) (message, do string) {
	unschedulable := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
	})
	unnamed := w.Verdicts.Omitted.PodNames + w.Verdicts.Omitted.PodClasses
	for _, class := range w.Verdicts.Pods {
		unnamed += class.Count - len(class.Names)
	}
	switch {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return "it has ended", ""
	case !unschedulable:
		return "kube-scheduler has not marked it Unschedulable, so there is no verdict on it", "look at the scheduler named " + cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName)
	case unnamed > 0:
		return "it is one of the pending pods that windlass-status counts and has no room to name", "its Event NotTriggerScaleUp or TriggeredScaleUp has the verdict: kubectl describe pod"
	}
	if w.Page.DryRun {
		return "there is no verdict on it: the dry run assumes it on a node that Windlass would have launched, or it is new", "nothing; windlass-scaler compare has what would have been done"
	}
	return "there is no verdict on it yet", "ask again in some seconds; if that lasts, see whether windlass-scaler runs and what its log says"
}

func whyPlaced(w World, s Subject, pod *corev1.Pod) Why {
	why := newWhy(s, statuspage.Verdict{})
	node := Subject{KindNode, pod.Spec.NodeName}
	why.Message, why.Pod = "it is not pending: it is on "+node.String(), &WhyPod{Node: node.Name}
	if w.nodeVerdict(node.Name) != nil {
		related := whyNode(w, node)
		why.Related = append(why.Related, &related)
	}
	return why
}

func whyNode(w World, s Subject) Why {
	v, n := w.nodeVerdict(s.Name), w.node(s.Name)
	if v == nil {
		why := newWhy(s, statuspage.Verdict{})
		why.Message, why.Do = w.noRoom()
		why.Node = nodeFacts(n, "")
		return why
	}
	why := newWhy(s, v.Verdict)
	why.Node = nodeFacts(n, v.Group)
	why.Node.Group, why.Node.Spot, why.Node.Both, why.Node.PricePerHour = v.Group, v.Spot, v.Both, v.PricePerHour
	if d := why.Node.Drain; d != nil {
		why.Do = cmp.Or(drainAdvice(w.Now, *d), why.Do)
	}
	return why
}

// drainAdvice is what people can do about a drain; empty where that is nothing.
func drainAdvice(now time.Time, d Drain) string {
	switch {
	case d.Phase == contract.PhaseBlocked:
		by := ""
		if !d.Deadline.IsZero() {
			by = ", by " + ClockFrom(now, d.Deadline)
		}
		return "what blocks its drain has to allow evictions" + by + ": more replicas, a budget that allows one, or a pod that you delete yourself"
	case d.Phase == contract.PhaseDrained && d.Kind == contract.KindRequest:
		return "nothing; when its work is done, kubectl windlass undrain " + d.Node + " opens it again"
	}
	return ""
}

func nodeFacts(n *corev1.Node, group string) *WhyNode {
	facts := &WhyNode{}
	if n == nil {
		return facts
	}
	facts.Type, facts.Zone = n.Labels[corev1.LabelInstanceTypeStable], n.Labels[corev1.LabelTopologyZone]
	if by, held := contract.Held(n.Annotations); held {
		facts.Hold = by
		if because := n.Annotations[by]; because != "true" {
			facts.HeldBecause = because
		}
	}
	if since, marked, err := contract.Unneeded(n.Spec.Taints); marked && err == nil {
		facts.Unneeded = since
	}
	if notices, err := contract.ParseNoticed(n.Annotations[contract.AnnotationNotices]); err == nil {
		for _, notice := range notices {
			facts.Notices = append(facts.Notices, string(notice.Kind)+": "+notice.Reason)
		}
	}
	if d, draining := drainOf(n, group); draining {
		facts.Drain = &d
	}
	return facts
}

func whyGroup(w World, s Subject) Why {
	g := w.groupVerdict(s.Name)
	why := newWhy(s, g.Verdict)
	if slices.Contains(calm, g.Reason) {
		var do []string
		for _, fault := range hidden(g) {
			do = append(do, fault.Do)
		}
		why.Do = cmp.Or(strings.Join(slices.Compact(do), "; "), why.Do)
	}
	why.Group = &WhyGroup{Group: newGroup(g), Faults: g.Faults, Pending: pendingFor(w, g.Name), Nodes: nodesOf(w, g.Name)}
	return why
}

func pendingFor(w World, group string) []PendingClass {
	list := []PendingClass{}
	for _, class := range w.Verdicts.Pods {
		for _, d := range class.Details {
			if d.Params["group"] != group || class.Group == group || len(class.Names) == 0 {
				continue
			}
			list = append(list, PendingClass{class.Count, class.Names[0], strings.TrimPrefix(d.Text, group+": ")})
		}
	}
	slices.SortStableFunc(list, func(a, b PendingClass) int { return b.Count - a.Count })
	return list
}

func nodesOf(w World, group string) []NodesOf {
	list := []NodesOf{}
	for _, n := range w.Verdicts.Nodes {
		if n.Group != group {
			continue
		}
		i := slices.IndexFunc(list, func(l NodesOf) bool { return l.Reason == n.Reason })
		if i < 0 {
			i = len(list)
			list = append(list, NodesOf{Reason: n.Reason, Example: n.Name, Message: n.Message(), Do: AdviceOn(KindNode, n.Reason).Do})
		}
		list[i].Count++
		list[i].PricePerHour += n.PricePerHour
	}
	slices.SortStableFunc(list, func(a, b NodesOf) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Reason, b.Reason)) })
	return list
}

// Names are the subject alone.
func (w Why) Names() []string { return []string{w.Subject.String()} }

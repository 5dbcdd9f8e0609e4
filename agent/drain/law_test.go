package drain_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// broken says which laws an answer breaks, for the world in which it was given.
func broken(w *world, policy drain.Policy, next drain.Next) []string {
	var out []string
	breaks := func(law string, details ...any) { out = append(out, law+" "+fmt.Sprint(details...)) }
	view := w.view()

	turned := view
	turned.Pods, turned.Notices = slices.Clone(view.Pods), slices.Clone(view.Notices)
	slices.Reverse(turned.Pods)
	slices.Reverse(turned.Notices)
	if other := drain.Decide(turned, policy); !reflect.DeepEqual(next, other) {
		breaks("another order gives another answer:", cmp.Diff(next, other))
	}
	if now := w.view(); !reflect.DeepEqual(view, now) {
		breaks("deciding changed the view:", cmp.Diff(view, now))
	}

	out = append(out, brokenSteps(view, next)...)
	out = append(out, brokenNode(view, next)...)

	// Carry it out, but without an answer to any step yet.
	after := view
	for _, s := range next.Steps {
		after.Tries = after.Tries.Send(s, view.Now)
	}
	if next.Node != nil {
		after.Node, after.Written = next.Node, view.Now
	}
	again := drain.Decide(after, policy)
	for _, s := range again.Steps {
		if slices.ContainsFunc(next.Steps, func(before drain.Evict) bool { return before.UID == s.UID }) {
			breaks("a step is repeated:", s)
		}
	}
	if next.Node != nil && again.Node != nil {
		breaks("a write is repeated:", drain.Changes(*next.Node, *again.Node))
	}
	return out
}

func brokenSteps(view drain.View, next drain.Next) (out []string) {
	for _, s := range next.Steps {
		at := slices.IndexFunc(view.Pods, func(p fleet.Pod) bool { return p.UID == s.UID })
		switch {
		case at < 0:
			out = append(out, "a step for a pod that is not there: "+s.String())
		case !drainable.MustBePlacedAgain(&view.Pods[at]):
			out = append(out, "a step for a pod that stays, or leaves already: "+s.String())
		case s.Grace != nil && *s.Grace < 1:
			out = append(out, "a pod has no time to end: "+s.String())
		}
	}
	return append(out, crowded(view, next)...)
}

// crowded names budgets, or owners where the budgets are not known, of whose
// pods more than one is asked for at once.
func crowded(view drain.View, next drain.Next) (out []string) {
	asking := map[string]int{}
	for i := range view.Pods {
		p := &view.Pods[i]
		due := slices.ContainsFunc(next.Steps, func(s drain.Evict) bool { return s.UID == p.UID })
		if !due && !view.Tries.Pods[p.UID].Sent {
			continue
		}
		for _, together := range guardedTogether(view, p) {
			if asking[together]++; asking[together] == 2 {
				out = append(out, "two pods at once are asked for of "+together)
			}
		}
	}
	return out
}

func guardedTogether(view drain.View, p *fleet.Pod) []string {
	if view.Budgets != nil {
		return view.Budgets.Guarding(p)
	}
	if p.Owner == nil {
		return nil
	}
	return []string{p.Namespace + "/" + p.Owner.Kind + "/" + p.Owner.Name}
}

func brokenNode(view drain.View, next drain.Next) (out []string) {
	if next.Node == nil {
		if len(next.Events) > 0 {
			out = append(out, "an event without a change")
		}
		return out
	}
	was, want := *view.Node, *next.Node
	_, ours := was.Annotations[contract.AnnotationCordonedBy]
	if was.Unschedulable && !ours {
		if !want.Unschedulable {
			out = append(out, "a human's cordon is undone")
		}
		if _, marked := want.Annotations[contract.AnnotationCordonedBy]; marked {
			out = append(out, "a human's cordon is marked as ours")
		}
	}
	if _, terminating := was.Annotations[contract.AnnotationTerminating]; terminating && was.Unschedulable && !want.Unschedulable {
		out = append(out, "uncordoned past the point of no return")
	}
	if !view.Written.IsZero() && view.Now.Sub(view.Written).Seconds() < 1 {
		out = append(out, "two writes within a second")
	}
	for _, t := range was.Taints {
		if t.Key != contract.TaintDraining && !slices.Contains(want.Taints, t) {
			out = append(out, "a foreign taint is gone: "+t.ToString())
		}
	}
	for key, value := range was.Labels {
		_, excluded := was.Annotations[contract.AnnotationExcluded]
		if want.Labels[key] != value && (key != contract.LabelExcludeFromLoadBalancers || !excluded) {
			out = append(out, "a foreign label is changed: "+key)
		}
	}
	for key, value := range was.Annotations {
		if want.Annotations[key] != value && !strings.HasPrefix(key, contract.Prefix) {
			out = append(out, "a foreign annotation is changed: "+key)
		}
	}
	for _, key := range []string{contract.AnnotationDrainRequest, contract.AnnotationTerminating, contract.AnnotationHold} {
		if want.Annotations[key] != was.Annotations[key] {
			out = append(out, "another's annotation is changed: "+key)
		}
	}
	return out
}

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
)

// lawHooks: only hooks that our flags name are prolonged and completed, where they may hold the
// instance and no longer than AWS allows; nothing lets an instance go under a pod but a drain that
// is out of time; and no mark is cleared but that of a survivor.
func lawHooks(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	var broken []string
	for _, a := range got.Actions {
		why := ""
		switch x := a.(type) {
		case action.Complete:
			why = notHeld(s, p, x.Group, x.Instance, x.Hook, x.State)
			if i := instanceNamed(s, x.Instance); x.Early && i.State == fleet.Terminating && s.Now.Sub(i.TerminatingSince) >= 2*time.Second {
				waiting := s
				waiting.Groups = withState(s.Groups, x.Instance, fleet.TerminatingWait) // by now it most likely does
				why = notHeld(waiting, p, x.Group, x.Instance, x.Hook, x.State)
			}
			if why == "" {
				why = leavesPods(s, p, x)
			}
		case action.Heartbeat:
			why = notHeld(s, p, x.Group, x.Instance, x.Hook, x.State)
			if i := instanceNamed(s, x.Instance); why == "" && !i.TerminatingSince.IsZero() && s.Now.Sub(i.TerminatingSince) >= hookNamed(s, x.Group, x.Hook).Global.Duration {
				why = "its global timeout is over"
			}
		case action.ClearTerminationMark:
			n := nodeNamed(s, x.Node.Name)
			if _, seen := s.State.Outlived[x.Instance]; !seen || instanceNamed(s, x.Instance).State != fleet.InService || n.Annotations[contract.AnnotationTerminating] != x.ID {
				why = "it was not seen out of service, or is not in service now"
			}
		}
		if why != "" {
			broken = append(broken, fmt.Sprintf("hooks: %s, though %s", a, why))
		}
	}
	return broken
}

// withState are the groups with an instance in another state.
func withState(groups []fleet.Group, instance, state string) []fleet.Group {
	out := slices.Clone(groups)
	for g := range out {
		out[g].Instances = slices.Clone(out[g].Instances)
		for i := range out[g].Instances {
			if out[g].Instances[i].ID == instance {
				out[g].Instances[i].State = state
			}
		}
	}
	return out
}

// notHeld says why a hook does not hold an instance, or is not ours.
func notHeld(s fleet.Snapshot, p policy.Policy, group, instance, hook, state string) string {
	i, h := instanceNamed(s, instance), hookNamed(s, group, hook)
	names := p.TerminationHooks
	if h.Transition == fleet.OnLaunch {
		names = p.LaunchHooks
	}
	launches := i.State == fleet.PendingWait || i.State == fleet.WarmedPendingWait
	ends := i.State == fleet.TerminatingWait || i.State == fleet.WarmedTerminatingWait || i.State == fleet.WarmedPendingWait
	switch {
	case !slices.Contains(names, hook):
		return "nobody named the hook"
	case i.State != state || !strings.HasSuffix(state, ":Wait"):
		return "the instance is " + i.State
	case h.Transition == fleet.OnLaunch && !launches, h.Transition == fleet.OnTerminate && !ends:
		return "the hook is for another transition"
	}
	return ""
}

// leavesPods says what a completion would lose.
func leavesPods(s fleet.Snapshot, p policy.Policy, x action.Complete) string {
	if x.State == fleet.PendingWait {
		if n := nodeNamed(s, x.Node.Name); !n.Ready {
			return "its node is not Ready"
		}
		return ""
	}
	for _, pod := range s.Pods {
		if x.Node.Name == "" || pod.Node != x.Node.Name || !drainable.Occupies(pod, s.Now) {
			continue
		}
		if !x.Occupied || p.FailedDrain != policy.GoFailed {
			return "pod " + pod.Key() + " is there"
		}
	}
	return ""
}

func instanceNamed(s fleet.Snapshot, id string) fleet.Instance {
	for _, g := range s.Groups {
		for _, i := range g.Instances {
			if i.ID == id {
				return i
			}
		}
	}
	return fleet.Instance{}
}

func hookNamed(s fleet.Snapshot, group, name string) fleet.Hook {
	for _, g := range s.Groups {
		for _, h := range g.Hooks {
			if g.Name == group && h.Name == name {
				return h
			}
		}
	}
	return fleet.Hook{}
}

package play

import (
	"fmt"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/e2e/demo/story"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// served: a workload has just so many pods, and all of them serve.
func served(workload string, pods int) Condition {
	return Condition{
		What: fmt.Sprintf("%d %s pods serve", pods, workload),
		Holds: func(s *story.Story) (bool, string) {
			serving, living := s.Serving(workload), s.Living(workload)
			return serving == pods && living == pods, fmt.Sprintf("%d serve, %d exist", serving, living)
		},
	}
}

// sized: a group wants just so many instances, has them, and their nodes are
// Ready.
func sized(group string, size int) Condition {
	return Condition{
		What: fmt.Sprintf("%s has %d Ready nodes", group, size),
		Holds: func(s *story.Story) (bool, string) {
			g, _ := s.Group(group)
			ready := s.ReadyIn(group)
			return g.Desired == size && len(g.Instances) == size && ready == size,
				fmt.Sprintf("desired %d, instances %d, Ready %d", g.Desired, len(g.Instances), ready)
		},
	}
}

// grew: a group was wanted at least so big at some moment.
func grew(group string, size int) Condition {
	return Condition{
		What: fmt.Sprintf("%s grows to %d", group, size), Once: true,
		Holds: func(s *story.Story) (bool, string) {
			g, _ := s.Group(group)
			return g.Desired >= size, fmt.Sprintf("desired %d", g.Desired)
		},
	}
}

// drains: the node is being drained for a reason of this kind, before or after
// which nothing new is placed on it.
func drains(node string, kind contract.Kind) Condition {
	return Condition{
		What: fmt.Sprintf("%s is cordoned and drains (%s)", view.ShortName(node), kind), Once: true,
		Holds: func(s *story.Story) (bool, string) {
			n, found := s.Node(node)
			if !found {
				return false, "no such node"
			}
			return n.Unschedulable && n.Draining == kind && n.Report != nil, fmt.Sprintf("unschedulable %t, taint %q, %s", n.Unschedulable, n.Draining, reported(n))
		},
	}
}

func reported(n story.Node) string {
	if n.Report == nil {
		return "no report"
	}
	return fmt.Sprintf("report %s: %s", n.Report.Phase, n.Report.Message)
}

// emptied: the node's drain ended, while its instance still ran.
func emptied(node, instance string) Condition {
	return Condition{
		What: fmt.Sprintf("%s is drained while it still runs", view.ShortName(node)), Once: true,
		Holds: func(s *story.Story) (bool, string) {
			n, _ := s.Node(node)
			i, there := s.Instance(instance)
			_, drained := s.DrainedAt(node)
			return drained && there && i.Up && s.PodsOn(node) == 0,
				fmt.Sprintf("%s, %d pods on it, instance up %t", reported(n), s.PodsOn(node), i.Up)
		},
	}
}

// ended: the instance is gone.
func ended(instance string) Condition {
	return Condition{
		What: instance + " is terminated",
		Holds: func(s *story.Story) (bool, string) {
			i, there := s.Instance(instance)
			return !there, i.State
		},
	}
}

// leaves: Auto Scaling is terminating the instance and waits for its hook.
func leaves(instance string) Condition {
	return Condition{
		What: instance + " waits for its termination hook", Once: true,
		Holds: func(s *story.Story) (bool, string) {
			i, _ := s.Instance(instance)
			return i.State == fleet.TerminatingWait && len(i.Hooks) > 0, fmt.Sprintf("state %q, hooks %v", i.State, i.Hooks)
		},
	}
}

// called: AWS was asked, with success, to do something to the instance.
func called(operation, instance, what string) Condition {
	return Condition{
		What: what, Once: true,
		Holds: func(s *story.Story) (bool, string) {
			saw := "no such call"
			for _, c := range s.Calls() {
				if c.Operation != operation || c.Instance != instance {
					continue
				}
				if c.Error == "" {
					return true, ""
				}
				saw = c.Error
			}
			return false, saw
		},
	}
}

// retired: at least so many instances of our choice were terminated with
// decrement.
func retired(atLeast int) Condition {
	return Condition{
		What: fmt.Sprintf("at least %d idle nodes are terminated with decrement", atLeast), Once: true,
		Holds: func(s *story.Story) (bool, string) {
			n := 0
			for _, c := range s.Calls() {
				if c.Operation == operationTerminate && c.Error == "" && c.Decrements {
					n++
				}
			}
			return n >= atLeast, fmt.Sprintf("%d", n)
		},
	}
}

// Operations of the AWS API that the play waits for.
const (
	operationTerminate = "TerminateInstanceInAutoScalingGroup"
	operationComplete  = "CompleteLifecycleAction"
)

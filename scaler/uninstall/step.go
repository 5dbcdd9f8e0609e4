package uninstall

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
)

// Verb is what a step does.
type Verb string

// The verbs.
const (
	// Stop scales a Deployment to 0, or deletes a DaemonSet, and waits until its pods are gone.
	Stop Verb = "stop"
	// Await waits until the step is not among Steps any more.
	Await Verb = "await"
	// Withdraw takes a request for a drain off a Node.
	Withdraw Verb = "withdraw"
	// Heartbeat keeps an instance waiting for a hook while its node drains.
	Heartbeat Verb = "heartbeat"
	// Complete lets Auto Scaling go on with an instance that waits for a hook.
	Complete Verb = "complete"
	// Clean takes everything of Windlass's off a Node.
	Clean Verb = "clean"
	// Resume resumes AZRebalance.
	Resume Verb = "resume"
	// Untag deletes the owner tag.
	Untag Verb = "untag"
	// DeleteHook deletes a lifecycle hook.
	DeleteHook Verb = "delete hook"
	// Delete deletes an object of the cluster.
	Delete Verb = "delete"
)

// The kinds that steps are about.
const (
	kindDeployment = "Deployment"
	kindDaemonSet  = "DaemonSet"
	kindNode       = "Node"
	kindConfigMap  = "ConfigMap"
	kindLease      = "Lease"
	kindGroup      = "group"
	kindInstance   = "instance"
)

// Step is one thing to do, with what it expects to find.
type Step struct {
	Do              Verb
	Kind, Name      string
	Namespace       string    // of an object that has one
	UID             types.UID // of the object; of Untag the owner
	Group, Instance string    // of a Node: its instance, and the group where that must serve
	Hook, State     string    // of Complete and Heartbeat: the hook, and the lifecycle state that it holds; of Await the hook alone, if one
	Due             time.Time // of Heartbeat: before it none is sent
	Node            string    // of an instance
	Keys            []string  // what is taken off a Node
	Why             string    // what is waited for, or who asked
	ByHand          string    // of Await: how a person ends it
}

// Waits reports whether the step is done only when the world shows it.
func (s Step) Waits() bool { return s.Do == Await || s.Do == Stop }

// Barrier reports whether nothing at all goes on before the step is done: a program acts.
func (s Step) Barrier() bool { return s.Do == Stop || s.Do == Await && s.Kind == kindLease }

// ID tells a step from others, whatever it finds.
func (s Step) ID() string {
	return strings.Join([]string{string(s.Do), s.Kind, s.Name, s.Hook, s.Instance}, " ")
}

func (s Step) String() string {
	of := s.Kind + " " + s.Name
	switch s.Do {
	case Stop:
		return "stop " + of
	case Await:
		return fmt.Sprintf("wait for %s: %s", of, s.Why)
	case Withdraw:
		return fmt.Sprintf("cancel the drain of %s, %s", of, s.Why)
	case Heartbeat:
		return fmt.Sprintf("keep %s waiting in hook %s of %s", s.Instance, s.Hook, of)
	case Complete:
		return fmt.Sprintf("complete hook %s of %s for %s", s.Hook, of, s.Instance)
	case Clean:
		return fmt.Sprintf("take off %s: %s", of, strings.Join(s.Keys, ", "))
	case Resume:
		return fmt.Sprintf("resume %s of %s", rebalance, of)
	case Untag:
		return fmt.Sprintf("delete tag %s of %s", contract.TagOwner, of)
	case DeleteHook:
		return fmt.Sprintf("delete hook %s of %s", s.Hook, of)
	}
	return fmt.Sprintf("%s %s", s.Do, of)
}

// Command is how a person does it; of a wait, how a person ends it.
func (s Step) Command() string {
	switch {
	case s.Do == Stop && s.Kind == kindDeployment:
		return fmt.Sprintf("kubectl -n %s scale deployment %s --replicas=0", s.Namespace, s.Name)
	case s.Do == Stop:
		return fmt.Sprintf("kubectl -n %s delete daemonset %s", s.Namespace, s.Name)
	case s.Do == Await:
		return s.ByHand
	case s.Do == Withdraw:
		return fmt.Sprintf("kubectl annotate node %s %s-", s.Name, strings.Join(s.Keys, "- "))
	case s.Do == Heartbeat:
		return fmt.Sprintf("aws autoscaling record-lifecycle-action-heartbeat --auto-scaling-group-name %s --lifecycle-hook-name %s --instance-id %s", s.Name, s.Hook, s.Instance)
	case s.Do == Complete:
		return fmt.Sprintf("aws autoscaling complete-lifecycle-action --auto-scaling-group-name %s --lifecycle-hook-name %s --instance-id %s --lifecycle-action-result CONTINUE", s.Name, s.Hook, s.Instance)
	case s.Do == Clean:
		return s.cleanCommand()
	case s.Do == Resume:
		return resumeCommand(s.Name)
	case s.Do == Untag:
		return fmt.Sprintf("aws autoscaling delete-tags --tags ResourceType=auto-scaling-group,ResourceId=%s,Key=%s", s.Name, contract.TagOwner)
	case s.Do == DeleteHook:
		return deleteHookCommand(s.Name, s.Hook)
	}
	return fmt.Sprintf("kubectl -n %s delete %s %s", s.Namespace, strings.ToLower(s.Kind), s.Name)
}

func drainCommand(node string) string {
	return fmt.Sprintf("kubectl drain %s --ignore-daemonsets --delete-emptydir-data", node)
}

func describeCommand(instance string) string {
	return "aws ec2 describe-instances --instance-ids " + instance
}

func resumeCommand(group string) string {
	return fmt.Sprintf("aws autoscaling resume-processes --auto-scaling-group-name %s --scaling-processes %s", group, rebalance)
}

func deleteHookCommand(group, hook string) string {
	return fmt.Sprintf("aws autoscaling delete-lifecycle-hook --auto-scaling-group-name %s --lifecycle-hook-name %s", group, hook)
}

// cleanCommand is one of kubectl for each sort of thing.
func (s Step) cleanCommand() string {
	var commands []string
	for _, sort := range []struct{ kind, verb string }{{"taint", "taint"}, {"label", "label"}, {"annotation", "annotate"}} {
		words := ""
		for _, what := range s.Keys {
			if key, is := strings.CutPrefix(what, sort.kind+" "); is {
				words += " " + key + "-"
			}
		}
		if words != "" {
			commands = append(commands, fmt.Sprintf("kubectl %s node %s%s", sort.verb, s.Name, words))
		}
	}
	for _, what := range s.Keys {
		if what == "cordon" {
			commands = append(commands, "kubectl uncordon "+s.Name)
		}
	}
	return strings.Join(commands, " && ")
}

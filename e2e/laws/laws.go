package laws

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/world"
)

// Exits finds the programs that ended by themselves.
func Exits(exits []world.Exit) []string {
	var breaches []string
	for _, exit := range exits {
		breaches = append(breaches, strings.TrimSpace(fmt.Sprintf("%s ended by itself at %s: %v %s", exit.Pod, stamp(exit.At), exit.Err, exit.Said)))
	}
	return breaches
}

// Memory finds the programs that have needed more than their limit at any time: the kernel
// would have killed them.
func Memory(running []world.Process) []string {
	var breaches []string
	for _, p := range running {
		peak, err := world.PeakOf(p.PID)
		if err == nil && p.MemoryLimit > 0 && peak > p.MemoryLimit { // an error: it has ended meanwhile
			breaches = append(breaches, fmt.Sprintf("%s that started at %s needed more memory than its limit of %d MiB", p.Pod, stamp(p.Started), p.MemoryLimit>>20))
		}
	}
	return breaches
}

// Calls looks at what AWS was asked for. raised reports whether somebody else raised the desired
// capacity of a group so shortly before a moment that the scaler may not have read so; nil where nobody does.
func Calls(calls []fakeaws.Call, raised func(group string, before time.Time) bool) []string {
	var breaches []string
	for _, c := range calls {
		switch {
		case c.Params["LifecycleActionResult"] == "ABANDON":
			breaches = append(breaches, fmt.Sprintf("ABANDON was sent: %v", c.Params))
		case c.Operation == "SetDesiredCapacity" && c.Error == "ValidationError":
			breaches = append(breaches, fmt.Sprintf("desired was to be set outside min..max: %v", c.Params))
		case c.Operation == "LaunchInstances" && strings.Contains(c.Message, "above max") && (raised == nil || !raised(c.Params["AutoScalingGroupName"], c.Time)):
			breaches = append(breaches, fmt.Sprintf("more was to be launched than max allows: %v", c.Params))
		}
	}
	return breaches
}

// Doubles finds the instances that were terminated by more than one call that AWS took: each lowers the desired capacity, so that a group would lose
// more than was decided. Tokens of launches see to it that none is doubled; a token that AWS took for another launch is a breach.
func Doubles(calls []fakeaws.Call) []string {
	var breaches []string
	ended := map[string]fakeaws.Call{}
	for _, c := range calls {
		if c.Operation == "LaunchInstances" && c.Error == "IdempotentParameterMismatch" {
			breaches = append(breaches, fmt.Sprintf("the token of one launch was used for another at %s: %v", stamp(c.Time), c.Params))
		}
		if c.Operation != "TerminateInstanceInAutoScalingGroup" || !fakeaws.Succeeded(c) || c.Params["ShouldDecrementDesiredCapacity"] != "true" {
			continue
		}
		id := c.Params["InstanceId"]
		if first, twice := ended[id]; twice {
			breaches = append(breaches, fmt.Sprintf("%s was terminated at %s and again at %s", id, stamp(first.Time), stamp(c.Time)))
		}
		ended[id] = c
	}
	return breaches
}

// Denials finds the calls that the programs' IAM policy does not allow, but for those at
// times in which that is meant.
func Denials(calls []fakeaws.Call, meant []Span) []string {
	var breaches []string
	for _, c := range calls {
		if c.Lacks != "" && !slices.ContainsFunc(meant, func(s Span) bool { return s.Holds(c.Time) }) {
			breaches = append(breaches, fmt.Sprintf("%s was called at %s, and the policy does not grant %s", c.Operation, stamp(c.Time), c.Lacks))
		}
	}
	return breaches
}

// Evictions looks at what the programs did to pods.
func Evictions(audit []Request) []string {
	var breaches []string
	evicted := map[string][]eviction{}
	for _, a := range audit {
		if !strings.HasPrefix(a.User.Username, ours) {
			continue
		}
		who, what := strings.TrimPrefix(a.User.Username, ours), a.ObjectRef.Namespace+"/"+a.ObjectRef.Name
		switch {
		case a.ObjectRef.Resource == "pods" && strings.HasPrefix(a.Verb, "delete"):
			breaches = append(breaches, fmt.Sprintf("%s deleted pod %s; eviction is the only way", who, what))
		case a.ObjectRef.Subresource == "eviction":
			uid := a.RequestObject.DeleteOptions.Preconditions.UID
			// Of a request without a right, and of one whose sender was killed while it was
			// read, the server has no body, and has carried nothing out.
			unread := a.ResponseStatus.Code == http.StatusForbidden || a.ResponseStatus.Code == http.StatusBadRequest || a.ResponseStatus.Code >= http.StatusInternalServerError
			if uid == "" && !unread {
				breaches = append(breaches, fmt.Sprintf("%s evicted pod %s without saying which UID", who, what))
			}
			if a.ResponseStatus.Code == 201 {
				evicted[what+" "+uid] = append(evicted[what+" "+uid], eviction{who, a.RequestReceivedTimestamp})
			}
		}
	}
	for pod, times := range evicted {
		if !met(times) {
			breaches = append(breaches, fmt.Sprintf("pod %s was evicted %d times", pod, len(times)))
		}
	}
	return breaches
}

// eviction is one that was accepted.
type eviction struct {
	by string
	at time.Time
}

// unseen is how long one program may not know yet what the other has asked for.
const unseen = 2 * time.Second

// met reports whether these evictions of one pod are one, for each program, and that none
// could know of the other: an agent may come back at the moment at which the scaler
// takes its place. They name the same UID, so the second one changes nothing.
func met(all []eviction) bool {
	by := map[string]bool{}
	for _, e := range all {
		if by[e.by] || e.at.Sub(all[0].at).Abs() > unseen {
			return false
		}
		by[e.by] = true
	}
	return true
}

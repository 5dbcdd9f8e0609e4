package laws

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"windlass.dev/windlass/e2e/fakeaws"
)

// started is when the instances of these tests were launched.
var started = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func ended(instance string, after time.Duration, decrement bool) fakeaws.Call {
	return fakeaws.Call{Operation: "TerminateInstanceInAutoScalingGroup", Time: started.Add(after), Params: map[string]string{
		"InstanceId": instance, "ShouldDecrementDesiredCapacity": fmt.Sprint(decrement),
	}}
}

// wrote is a change of a Node; an empty providerID deletes it.
func wrote(node, providerID string, after time.Duration) Request {
	a := Request{Verb: "create", RequestReceivedTimestamp: started.Add(after)}
	if providerID == "" {
		a.Verb = "delete"
	}
	a.ObjectRef.Resource, a.ObjectRef.Name, a.ResponseStatus.Code, a.RequestObject.Spec.ProviderID = "nodes", node, 201, providerID
	return a
}

// launched is a call that has launched so many instances.
func launched(group string, count int, after time.Duration) fakeaws.Call {
	return fakeaws.Call{Operation: "LaunchInstances", Time: started.Add(after), Took: 2 * time.Second, Params: map[string]string{
		"AutoScalingGroupName": group, "RequestedCapacity": fmt.Sprint(count),
	}}
}

func TestBrake(t *testing.T) {
	// g-1, g-2 ... are instances of the group g.
	b := Brake{
		Machine: func(id string) (Machine, bool) {
			group, _, ok := strings.Cut(id, "-")
			return Machine{Group: group, Max: map[string]int{"web": 8, "big": 40}[group], Launched: started}, ok
		},
		Provision: time.Minute, BackOff: 10 * time.Second,
		Away: []Span{{From: started.Add(30 * time.Second), To: started.Add(40 * time.Second)}},
	}
	const m = time.Minute
	for _, c := range []struct {
		reason string
		audit  []Request
		calls  []fakeaws.Call
		want   string // part of the one breach; "" for none
	}{
		{"one", nil, []fakeaws.Call{ended("web-1", 2*m, true)}, ""},
		{"two", nil, []fakeaws.Call{ended("web-1", 2*m, true), ended("web-2", 3*m, true)}, "2 instances of web"},
		{"two, of two groups", nil, []fakeaws.Call{ended("web-1", 2*m, true), ended("big-2", 3*m, true)}, ""},
		{"two, in ten minutes", nil, []fakeaws.Call{ended("web-1", 2*m, true), ended("web-2", 12*m, true)}, ""},
		{"a tenth", nil, []fakeaws.Call{ended("big-1", 2*m, true), ended("big-2", 2*m, true), ended("big-3", 2*m, true), ended("big-4", 2*m, true)}, ""},
		{"more than a tenth", nil, []fakeaws.Call{ended("big-1", 2*m, true), ended("big-2", 2*m, true), ended("big-3", 2*m, true), ended("big-4", 2*m, true), ended("big-5", 2*m, true)}, "5 instances of big"},
		{"one was refused", nil, []fakeaws.Call{{Operation: "TerminateInstanceInAutoScalingGroup", Error: "Throttling", Time: started.Add(2 * m), Params: map[string]string{"InstanceId": "web-1"}}, ended("web-2", 3*m, true)}, ""},
		{"one had a Node", []Request{wrote("n1", "aws:///a/web-1", m)}, []fakeaws.Call{ended("web-1", 2*m, true), ended("web-2", 3*m, true)}, ""},
		{"its Node was deleted before", []Request{wrote("n1", "aws:///a/web-1", 0), wrote("n1", "", m)}, []fakeaws.Call{ended("web-1", 2*m, true), ended("web-2", 3*m, true)}, "2 instances of web"},
		{"its Node has the name of another machine's", []Request{wrote("n1", "aws:///a/web-1", 0), wrote("n1", "aws:///a/web-3", m)}, []fakeaws.Call{ended("web-1", 2*m, true), ended("web-2", 3*m, true)}, "2 instances of web"},
		{"one of two was asked for", nil, []fakeaws.Call{launched("web", 1, -time.Second), ended("web-1", 2*m, true), ended("web-2", 3*m, true)}, ""},
		{"one of three was asked for", nil, []fakeaws.Call{launched("web", 1, -time.Second), ended("web-1", 2*m, true), ended("web-2", 3*m, true), ended("web-3", 3*m, true)}, "2 instances of web"},
		{"another group was asked for one", nil, []fakeaws.Call{launched("big", 1, -time.Second), ended("web-1", 2*m, true), ended("web-2", 3*m, true)}, "2 instances of web"},
		{"one was asked for, and came before", nil, []fakeaws.Call{launched("web", 1, time.Second), ended("web-1", 2*m, true), ended("web-2", 3*m, true)}, "2 instances of web"},
		{"no instance of a group", nil, []fakeaws.Call{ended("detached", 2*m, true)}, ""},

		{"two replaced, one after the other", nil, []fakeaws.Call{ended("web-1", 2*m, false), ended("web-2", 2*m+10*time.Second, false)}, ""},
		{"two replaced at once", nil, []fakeaws.Call{ended("web-1", 2*m, false), ended("web-2", 2*m+time.Second, false)}, "which nothing had replaced"},
		{"two replaced, the second when the first was", []Request{wrote("n3", "aws:///a/web-3", 2*m+time.Second)}, []fakeaws.Call{ended("web-1", 2*m, false), ended("web-2", 2*m+2*time.Second, false)}, ""},
		{"replaced at once, in two groups", nil, []fakeaws.Call{ended("web-1", 2*m, false), ended("big-2", 2*m, false)}, ""},

		{"too early", nil, []fakeaws.Call{ended("web-1", 40*time.Second, true)}, "and may take 1m0s"},
		{"too early by the outage", nil, []fakeaws.Call{ended("web-1", 54*time.Second, true)}, "44s after its launch without the outages"},
		{"early, of one that had a Node", []Request{wrote("n1", "aws:///a/web-1", 0), wrote("n1", "", 10*time.Second)}, []fakeaws.Call{ended("web-1", 40*time.Second, true)}, ""},
	} {
		got := b.Breaches(c.audit, c.calls)
		if c.want == "" && len(got) == 0 {
			continue
		}
		if len(got) != 1 || c.want == "" || !strings.Contains(got[0], c.want) {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}

func TestUnseen(t *testing.T) {
	listed := func(user, uri string, after time.Duration) Request {
		a := Request{Verb: "list", RequestURI: uri, RequestReceivedTimestamp: started.Add(after)}
		a.User.Username, a.ObjectRef.Resource, a.ResponseStatus.Code = user, "nodes", 200
		return a
	}
	const scaler = ours + "windlass-scaler"
	call := []fakeaws.Call{ended("i-1", 2*time.Minute, false)}
	for _, c := range []struct {
		reason string
		audit  []Request
		want   int
	}{
		{"right before", []Request{listed(scaler, "/api/v1/nodes?limit=500", 2*time.Minute-time.Second)}, 0},
		{"never", nil, 1},
		{"long before", []Request{listed(scaler, "/api/v1/nodes?limit=500", 0)}, 1},
		{"after", []Request{listed(scaler, "/api/v1/nodes?limit=500", 3*time.Minute)}, 1},
		{"in the cache", []Request{listed(scaler, "/api/v1/nodes?limit=500&resourceVersion=0", 2*time.Minute-time.Second)}, 1},
		{"somebody else", []Request{listed("system:serviceaccount:kube-system:generic-garbage-collector", "/api/v1/nodes", 2*time.Minute-time.Second)}, 1},
	} {
		if got := Unseen(c.audit, call); len(got) != c.want {
			t.Errorf("%s: %q, want %d", c.reason, got, c.want)
		}
	}
}

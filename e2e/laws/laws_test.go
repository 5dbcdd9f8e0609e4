package laws

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/pkg/contract"
)

// TestEvictions: each breach is seen, and what is allowed is none.
func TestEvictions(t *testing.T) {
	const (
		agent   = `"user":{"username":"system:serviceaccount:windlass-system:windlass-agent"}`
		scaler  = `"user":{"username":"system:serviceaccount:windlass-system:windlass-scaler"}`
		evicted = `"verb":"create","objectRef":{"resource":"pods","subresource":"eviction","namespace":"default","name":"web-1"}`
		uid     = `"requestObject":{"deleteOptions":{"preconditions":{"uid":"u1"}}}`
	)
	at := func(second string) string { return `"requestReceivedTimestamp":"2026-08-01T12:00:` + second + `Z"` }
	for _, c := range []struct {
		reason string
		audit  []string
		want   string // part of the one breach; "" for none
	}{
		{"one eviction", []string{agent + "," + evicted + "," + uid + `,"responseStatus":{"code":201}`}, ""},
		{"a refusal and then an eviction", []string{
			agent + "," + evicted + "," + uid + `,"responseStatus":{"code":429}`,
			agent + "," + evicted + "," + uid + `,"responseStatus":{"code":201}`,
		}, ""},
		{"the same pod twice", []string{
			agent + "," + evicted + "," + uid + `,"responseStatus":{"code":201}`,
			agent + "," + evicted + "," + uid + `,"responseStatus":{"code":201}`,
		}, "evicted 2 times"},
		{"both programs at the same moment", []string{
			agent + "," + evicted + "," + uid + "," + at("00") + `,"responseStatus":{"code":201}`,
			scaler + "," + evicted + "," + uid + "," + at("01") + `,"responseStatus":{"code":201}`,
		}, ""},
		{"the scaler long after the agent", []string{
			agent + "," + evicted + "," + uid + "," + at("00") + `,"responseStatus":{"code":201}`,
			scaler + "," + evicted + "," + uid + "," + at("23") + `,"responseStatus":{"code":201}`,
		}, "evicted 2 times"},
		{"no right, and so no body in the log", []string{agent + "," + evicted + `,"responseStatus":{"code":403}`}, ""},
		{"killed while its request was read", []string{agent + "," + evicted + `,"responseStatus":{"code":500}`}, ""},
		{"refused, without a precondition", []string{agent + "," + evicted + `,"responseStatus":{"code":429}`}, "without saying which UID"},
		{"no precondition", []string{agent + "," + evicted + `,"responseStatus":{"code":201}`}, "without saying which UID"},
		{"a deletion", []string{agent + `,"verb":"delete","objectRef":{"resource":"pods","name":"web-1"},"responseStatus":{"code":200}`}, "eviction is the only way"},
		{"somebody else's deletion", []string{`"user":{"username":"kwok"},"verb":"delete","objectRef":{"resource":"pods"}`}, ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			var audit []Request
			for _, line := range c.audit {
				var a Request
				if err := json.Unmarshal([]byte("{"+line+"}"), &a); err != nil {
					t.Fatal(err)
				}
				audit = append(audit, a)
			}
			got := Evictions(audit)
			if c.want == "" && len(got) == 0 {
				return
			}
			if len(got) != 1 || c.want == "" || !strings.Contains(got[0], c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestRequestJSONPatch: a patch that is a list is a line like others.
func TestRequestJSONPatch(t *testing.T) {
	var a Request
	if err := json.Unmarshal([]byte(`{"verb":"patch","requestObject":[{"op":"test"}],"responseStatus":{"code":200}}`), &a); err != nil {
		t.Fatal(err)
	}
	if a.Verb != "patch" || a.ResponseStatus.Code != 200 {
		t.Errorf("got %+v", a)
	}
}

// TestRights: whoever is forbidden something has no right to it, unless the
// API server was starting and is known to grant it.
func TestRights(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 8, 1, 12, 0, second, 0, time.UTC) }
	patch := func(user, resource string, second, code int) Request {
		a := Request{Verb: "patch", RequestReceivedTimestamp: at(second)}
		a.User.Username, a.ObjectRef.Resource, a.ResponseStatus.Code = user, resource, code
		return a
	}
	const agent, scaler = ours + "windlass-agent", ours + "windlass-scaler"
	going := patch(agent, "nodes", 5, 403)
	going.ResponseStatus.Details.Causes = []cause{{Reason: "NamespaceTerminating"}}
	away := []Span{{From: at(10), To: at(20)}}
	for _, c := range []struct {
		reason string
		audit  []Request
		want   int
	}{
		{"forbidden", []Request{patch(agent, "nodes", 5, 403)}, 1},
		{"forbidden once", []Request{patch(agent, "nodes", 5, 403), patch(agent, "nodes", 6, 200)}, 1},
		{"forbidden by a starting API server", []Request{patch(agent, "nodes", 15, 403), patch(agent, "nodes", 21, 200)}, 0},
		{"forbidden by a starting API server, as it was before", []Request{patch(agent, "nodes", 5, 200), patch(agent, "nodes", 15, 403)}, 0},
		{"never granted", []Request{patch(agent, "nodes", 15, 403)}, 1},
		{"granted to the other program", []Request{patch(agent, "nodes", 15, 403), patch(scaler, "nodes", 21, 200)}, 1},
		{"granted for something else", []Request{patch(agent, "nodes", 15, 403), patch(agent, "pods", 21, 200)}, 1},
		{"before and after as well", []Request{patch(agent, "nodes", 9, 403), patch(agent, "nodes", 15, 403), patch(agent, "nodes", 21, 403)}, 3},
		{"forbidden to everybody, as the namespace goes", []Request{going}, 0},
		{"somebody else", []Request{patch("kwok", "nodes", 5, 403)}, 0},
	} {
		if got := Rights(c.audit, away); len(got) != c.want {
			t.Errorf("%s: got %q, want %d", c.reason, got, c.want)
		}
	}
}

// TestRightsOfYoungPods: what an admission plugin has not heard yet is no missing
// right, if the pod could be evicted later, or somebody else deleted it.
func TestRightsOfYoungPods(t *testing.T) {
	request := func(verb, subresource, pod string, code int, message string) Request {
		a := Request{Verb: verb}
		a.User.Username, a.ObjectRef.Resource, a.ObjectRef.Subresource, a.ObjectRef.Name = ours+"windlass-agent", "pods", subresource, pod
		a.ResponseStatus.Code, a.ResponseStatus.Message = code, message
		return a
	}
	const (
		plugin = "node n can only evict pods with spec.nodeName set to itself"
		policy = "denied request: with the label " + contract.LabelAsAccount + ", only pods of the Node that the token is bound to may be evicted"
	)
	for _, message := range []string{plugin, policy} {
		refused := request("create", "eviction", "web-1", 403, message)
		for _, c := range []struct {
			reason   string
			then     Request
			breaches int
		}{
			{"evicted later", request("create", "eviction", "web-1", 201, ""), 0},
			{"deleted by somebody", request("delete", "", "web-1", 200, ""), 0},
			{"only another one was evicted", request("create", "eviction", "web-2", 201, ""), 1},
		} {
			if got := Rights([]Request{refused, c.then}, nil); len(got) != c.breaches {
				t.Errorf("%s: %q", c.reason, got)
			}
		}
	}
}

func TestCompletions(t *testing.T) {
	const log = `
{"verb":"create","objectRef":{"resource":"nodes","name":"n1"},"requestObject":{"spec":{"providerID":"aws:///eu-west-1a/i-1"}}}
{"verb":"create","user":{"extra":{"authentication.kubernetes.io/node-name":["n1"]}},"objectRef":{"resource":"pods","subresource":"eviction","namespace":"default","name":"web-1"},"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-08-01T12:00:03Z"}
{"verb":"delete","user":{"username":"kwok"},"objectRef":{"resource":"pods","namespace":"default","name":"web-1"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-08-01T12:00:05Z"}`
	var audit []Request
	for _, line := range strings.Split(strings.TrimSpace(log), "\n") {
		var a Request
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatal(err)
		}
		audit = append(audit, a)
	}
	completed := func(second int) fakeaws.Call {
		return fakeaws.Call{Operation: "CompleteLifecycleAction", Time: time.Date(2026, 8, 1, 12, 0, second, 0, time.UTC), Params: map[string]string{"InstanceId": "i-1"}}
	}
	refused, other := completed(4), completed(4)
	refused.Error, other.Params = "ValidationError", map[string]string{"InstanceId": "i-2"}
	for _, c := range []struct {
		reason string
		calls  []fakeaws.Call
		want   int
	}{
		{"after the pod", []fakeaws.Call{completed(6)}, 0},
		{"before the pod", []fakeaws.Call{completed(4)}, 1},
		{"before the eviction, and never after it", []fakeaws.Call{completed(2)}, 1},
		{"of the time before, and after the pod", []fakeaws.Call{completed(6), completed(2)}, 0},
		{"of the time before, and before the pod", []fakeaws.Call{completed(2), completed(4), completed(6)}, 1},
		{"before the pod, and refused", []fakeaws.Call{refused}, 0},
		{"another instance", []fakeaws.Call{other}, 0},
		{"never", nil, 0},
	} {
		if got := Completions(audit, c.calls); len(got) != c.want {
			t.Errorf("%s: %q", c.reason, got)
		}
	}
	deletion := Request{Verb: "delete", RequestReceivedTimestamp: completed(3).Time}
	deletion.ObjectRef.Resource, deletion.ObjectRef.Name, deletion.ResponseStatus.Code = "nodes", "n1", 200
	if got := Completions(append(audit, deletion), []fakeaws.Call{completed(4)}); len(got) > 0 {
		t.Errorf("before the pod of a Node that was no more: %q", got)
	}
}

// TestDenials: what the policy does not grant is a breach, unless it is meant; an error of another kind is none.
func TestDenials(t *testing.T) {
	noon := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	calls := []fakeaws.Call{
		{Operation: "SetDesiredCapacity", Time: noon, Lacks: "autoscaling:SetDesiredCapacity on web"},
		{Operation: "SetDesiredCapacity", Time: noon.Add(time.Minute), Error: "ValidationError"},
		{Operation: "LaunchInstances", Time: noon.Add(2 * time.Minute), Lacks: "ec2:CreateFleet on *"},
	}
	if got := Denials(calls, nil); len(got) != 2 || !strings.Contains(got[1], "ec2:CreateFleet on *") {
		t.Errorf("breaches %q, want two", got)
	}
	if got := Denials(calls, []Span{{From: noon.Add(-time.Second), To: noon.Add(time.Second)}}); len(got) != 1 || !strings.HasPrefix(got[0], "LaunchInstances") {
		t.Errorf("breaches %q, want that of LaunchInstances", got)
	}
}

// An instance that two calls terminate, and a token of two launches, are breaches; what AWS did not take is none.
func TestDoubles(t *testing.T) {
	end := func(id, decrement, failed string) fakeaws.Call {
		c := fakeaws.Call{Operation: "TerminateInstanceInAutoScalingGroup", Params: map[string]string{"InstanceId": id, "ShouldDecrementDesiredCapacity": decrement}, Status: 200, Error: failed}
		if failed != "" {
			c.Status = 400
		}
		return c
	}
	for _, c := range []struct {
		what  string
		calls []fakeaws.Call
		want  int
	}{
		{"two instances", []fakeaws.Call{end("i-1", "true", ""), end("i-2", "true", "")}, 0},
		{"one that was refused first", []fakeaws.Call{end("i-1", "true", "Throttling"), end("i-1", "true", "")}, 0},
		{"one that goes already", []fakeaws.Call{end("i-1", "true", ""), end("i-1", "true", "ScalingActivityInProgress")}, 0},
		{"one that was replaced", []fakeaws.Call{end("i-1", "false", ""), end("i-1", "true", "")}, 0},
		{"one twice", []fakeaws.Call{end("i-1", "true", ""), end("i-2", "true", ""), end("i-1", "true", "")}, 1},
		{"a token of two", []fakeaws.Call{{Operation: "LaunchInstances", Error: "IdempotentParameterMismatch", Status: 400}}, 1},
	} {
		if got := Doubles(c.calls); len(got) != c.want {
			t.Errorf("%s: %q, want %d breaches", c.what, got, c.want)
		}
	}
}

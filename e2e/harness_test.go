package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/e2e/fakeaws"
)

// TestLawsNotice: each breach is seen, and what is allowed is none.
func TestLawsNotice(t *testing.T) {
	const (
		agent   = `"user":{"username":"system:serviceaccount:windlass-system:windlass-agent"}`
		evicted = `"verb":"create","objectRef":{"resource":"pods","subresource":"eviction","namespace":"default","name":"web-1"}`
		uid     = `"requestObject":{"deleteOptions":{"preconditions":{"uid":"u1"}}}`
	)
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
		{"no precondition", []string{agent + "," + evicted + `,"responseStatus":{"code":201}`}, "without saying which UID"},
		{"a deletion", []string{agent + `,"verb":"delete","objectRef":{"resource":"pods","name":"web-1"},"responseStatus":{"code":200}`}, "eviction is the only way"},
		{"somebody else's deletion", []string{`"user":{"username":"kwok"},"verb":"delete","objectRef":{"resource":"pods"}`}, ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			var audit []audited
			for _, line := range c.audit {
				var a audited
				if err := json.Unmarshal([]byte("{"+line+"}"), &a); err != nil {
					t.Fatal(err)
				}
				audit = append(audit, a)
			}
			got := auditBreaches(audit)
			if c.want == "" && len(got) == 0 {
				return
			}
			if len(got) != 1 || c.want == "" || !strings.Contains(got[0], c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestAuditedJSONPatch: a patch that is a list is a line like others.
func TestAuditedJSONPatch(t *testing.T) {
	var a audited
	if err := json.Unmarshal([]byte(`{"verb":"patch","requestObject":[{"op":"test"}],"responseStatus":{"code":200}}`), &a); err != nil {
		t.Fatal(err)
	}
	if a.Verb != "patch" || a.ResponseStatus.Code != 200 {
		t.Errorf("got %+v", a)
	}
}

// TestMissingRights: whoever is forbidden something has no right to it, unless the
// API server was starting and is known to grant it.
func TestMissingRights(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 8, 1, 12, 0, second, 0, time.UTC) }
	patch := func(user, resource string, second, code int) audited {
		a := audited{Verb: "patch", RequestReceivedTimestamp: at(second)}
		a.User.Username, a.ObjectRef.Resource, a.ResponseStatus.Code = user, resource, code
		return a
	}
	const agent, scaler = ours + "windlass-agent", ours + "windlass-scaler"
	away := []span{{from: at(10), to: at(20)}}
	for _, c := range []struct {
		reason string
		audit  []audited
		want   int
	}{
		{"forbidden", []audited{patch(agent, "nodes", 5, 403)}, 1},
		{"forbidden once", []audited{patch(agent, "nodes", 5, 403), patch(agent, "nodes", 6, 200)}, 1},
		{"forbidden by a starting API server", []audited{patch(agent, "nodes", 15, 403), patch(agent, "nodes", 21, 200)}, 0},
		{"forbidden by a starting API server, as it was before", []audited{patch(agent, "nodes", 5, 200), patch(agent, "nodes", 15, 403)}, 0},
		{"never granted", []audited{patch(agent, "nodes", 15, 403)}, 1},
		{"granted to the other program", []audited{patch(agent, "nodes", 15, 403), patch(scaler, "nodes", 21, 200)}, 1},
		{"granted for something else", []audited{patch(agent, "nodes", 15, 403), patch(agent, "pods", 21, 200)}, 1},
		{"before and after as well", []audited{patch(agent, "nodes", 9, 403), patch(agent, "nodes", 15, 403), patch(agent, "nodes", 21, 403)}, 3},
		{"somebody else", []audited{patch("kwok", "nodes", 5, 403)}, 0},
	} {
		if got := missingRights(c.audit, away); len(got) != c.want {
			t.Errorf("%s: got %q, want %d", c.reason, got, c.want)
		}
	}
}

func TestCallQuery(t *testing.T) {
	log := []fakeaws.Call{
		{Operation: "DescribeAutoScalingGroups"},
		{Operation: "SetDesiredCapacity", Params: map[string]string{"AutoScalingGroupName": "web", "DesiredCapacity": "3"}},
		{Operation: "SetDesiredCapacity", Params: map[string]string{"AutoScalingGroupName": "web", "DesiredCapacity": "12"}, Error: "ValidationError"},
	}
	for query, want := range map[string]int{
		"SetDesiredCapacity":                              2,
		"Set":                                             0,
		"SetDesiredCapacity|Describe.*":                   3,
		"SetDesiredCapacity DesiredCapacity>=4":           1,
		"SetDesiredCapacity error==":                      1,
		"SetDesiredCapacity error==ValidationError":       1,
		"SetDesiredCapacity AutoScalingGroupName!=web":    0,
		"SetDesiredCapacity DesiredCapacity==3 count==99": 1,
	} {
		q, err := parseCalls(strings.Fields(query))
		if err != nil {
			t.Fatal(err)
		}
		if got := len(q.find(log)); got != want {
			t.Errorf("%s: got %d calls, want %d", query, got, want)
		}
	}
}

func TestCallSpan(t *testing.T) {
	at := func(ms int) fakeaws.Call {
		return fakeaws.Call{Operation: "LaunchInstances", Time: time.UnixMilli(int64(ms))}
	}
	q, err := parseCalls(strings.Fields("LaunchInstances span<=1000"))
	if err != nil {
		t.Fatal(err)
	}
	// The log is in the order of the answers.
	if close := []fakeaws.Call{at(1500), at(600), at(1600)}; !q.holds(close) {
		t.Error("calls within a second were not found to be")
	}
	if far := []fakeaws.Call{at(600), at(1601)}; q.holds(far) {
		t.Error("calls more than a second apart were found to be within one")
	}
	if q.holds(nil) {
		t.Error("no calls at all were found to be within a second")
	}
}

func TestParseMetric(t *testing.T) {
	got, err := parseMetric(`windlass_actions_total{group="web",kind="grow"}>=1`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"windlass_actions_total", `group="web"`, `kind="grow"`, ">=", "1"}, append(append([]string{got.name}, got.labels...), got.Op, got.Value)); diff != "" {
		t.Error(diff)
	}
	if _, err := parseMetric("up"); err == nil {
		t.Error("a metric without a comparison was no error")
	}
}

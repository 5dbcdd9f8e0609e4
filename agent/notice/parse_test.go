package notice_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
)

// row is one body as the metadata give it: want has a line for each notice, and
// wrong is what the error says, if there is one.
type row struct {
	body  string
	want  string
	wrong string
}

func check(t *testing.T, from notice.SourceName, rows []row) {
	t.Helper()
	i := slices.IndexFunc(notice.Sources, func(s notice.Source) bool { return s.Path == from })
	if i < 0 {
		t.Fatalf("no source %s", from)
	}
	for _, r := range rows {
		t.Run(r.body, func(t *testing.T) {
			got, err := notice.Sources[i].Parse(instance, r.body)
			wantError(t, err, r.wrong)
			if diff := cmp.Diff(r.want, describe(got)); diff != "" {
				t.Error(diff)
			}
			for _, n := range got {
				if cause, ok := notice.OfMetadata(n.ID); !ok || cause != n.Cause || n.Kind != cause.Kind() || n.Source != from {
					t.Errorf("%+v: id, cause, kind and source do not agree", n)
				}
			}
		})
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil {
		t.Fatal(err)
	}
	if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Fatalf("error %v, want one with %q", err, want)
	}
}

func describe(notices []notice.Notice) string {
	var lines []string
	for _, n := range notices {
		line := n.ID
		if !n.At.IsZero() {
			line += " at " + n.At.Format(time.RFC3339)
		}
		if !n.Deadline.IsZero() {
			line += " until " + n.Deadline.Format(time.RFC3339)
		}
		if !n.NotAfter.IsZero() {
			line += " to " + n.NotAfter.Format(time.RFC3339)
		}
		lines = append(lines, line+" ("+n.Reason+")")
	}
	return strings.Join(lines, "\n")
}

// All states that Auto Scaling has.
func TestParseTargetState(t *testing.T) {
	const (
		terminate = "asg-terminate:i-1 (Auto Scaling terminates the instance)"
		warm      = "asg-warm:i-1 (Auto Scaling leads the instance into the warm pool)"
	)
	check(t, notice.FromTargetState, []row{
		{"InService", "", ""},
		{"InService\n", "", ""},
		{"Terminated", terminate, ""},
		{" Terminated\r\n", terminate, ""},
		{"Warmed:Terminated", terminate, ""},
		{"Warmed:Stopped", warm, ""},
		{"Warmed:Hibernated", warm, ""},
		{"Warmed:Running", warm, ""},
		{"Standby", "asg-standby:i-1 (Auto Scaling puts the instance on standby)", ""},
		{"Detached", "asg-detach:i-1 (the instance is detached from its Auto Scaling group)", ""},
		{"terminated", "", "unknown state"},
		{"Warmed", "", "unknown state"},
		{"Warmed:Sleeping", "", `unknown state "Warmed:Sleeping"`},
		{"", "", "unknown state"},
		{"<html>busy</html>", "", "unknown state"},
	})
	if diff := cmp.Diff("asg-terminate:i-1 asg-warm:i-1", contract.TerminateID(instance)+" "+contract.WarmID(instance)); diff != "" {
		t.Errorf("the scaler's ids are not the agent's: %s", diff)
	}
}

func TestParseInstanceAction(t *testing.T) {
	spot := func(cause, does string) string {
		return fmt.Sprintf("%s:i-1:2025-01-01T12:02:00Z until 2025-01-01T12:02:00Z (spot interruption: EC2 %s the instance at 2025-01-01T12:02:00Z)", cause, does)
	}
	const timeless = "spot-terminate:i-1 (spot interruption: EC2 terminates the instance at a time that is not known)"
	check(t, notice.FromInstanceAction, []row{
		{`{"action":"terminate","time":"2025-01-01T12:02:00Z"}`, spot("spot-terminate", "terminates"), ""},
		{`{"action":"stop","time":"2025-01-01T12:02:00Z"}`, spot("spot-stop", "stops"), ""},
		{`{"action":"hibernate","time":"2025-01-01T12:02:00Z","more":1}`, spot("spot-hibernate", "hibernates"), ""},
		{`{"action":"evaporate","time":"2025-01-01T13:02:00+01:00"}`, spot("spot-terminate", `does "evaporate" to`), ""},
		{`{"action":"terminate","time":"soon"}`, timeless, ""},
		{`{"action":"terminate"}`, timeless, ""},
		{`{"action":"terminate","time":1735732920}`, timeless, ""},
		{`{"time":"2025-01-01T12:02:00Z"}`, "", "names no action"},
		{`{"action":7,"time":"2025-01-01T12:02:00Z"}`, "", "not valid JSON"},
		{`{"action":`, "", "not valid JSON"},
		{`[]`, "", "not valid JSON"},
		{``, "", "not valid JSON"},
		{`<html>`, "", `"<html>" is not valid JSON`},
	})
}

func TestParseRebalance(t *testing.T) {
	check(t, notice.FromRebalance, []row{
		{`{"noticeTime":"2025-01-01T12:00:00Z"}`,
			"rebalance:i-1:2025-01-01T12:00:00Z at 2025-01-01T12:00:00Z (rebalance recommendation: EC2 may soon interrupt the instance)", ""},
		{`{"noticeTime":"2025-01-01T14:00:00+02:00","more":[]}`,
			"rebalance:i-1:2025-01-01T12:00:00Z at 2025-01-01T12:00:00Z (rebalance recommendation: EC2 may soon interrupt the instance)", ""},
		{`{"noticeTime":"1 Jan 2025"}`, "", "no noticeTime such as"},
		{`{}`, "", "no noticeTime such as"},
		{`{`, "", "not valid JSON"},
		{``, "", "not valid JSON"},
	})
}

// event is a scheduled event as the metadata list it.
func event(code, id, state, notBefore string) string {
	return fmt.Sprintf(`{"NotBefore":%q,"Code":%q,"Description":"d","EventId":%q,"NotAfter":"1 Jan 2025 14:00:00 GMT","State":%q}`, notBefore, code, id, state)
}

func list(events ...string) string { return "[" + strings.Join(events, ",") + "]" }

const one = "1 Jan 2025 13:00:00 GMT"

// All codes and states, and lists in which something is wrong.
func TestParseMaintenance(t *testing.T) {
	scheduled := func(cause, id, what string) string {
		return fmt.Sprintf("%s:i-1:%s until 2025-01-01T13:00:00Z to 2025-01-01T14:00:00Z (scheduled event: %s, not before 2025-01-01T13:00:00Z)", cause, id, what)
	}
	reboot := func(id string) string { return scheduled("instance-reboot", id, "EC2 reboots the instance") }
	active := func(code string) string { return list(event(code, "e1", "active", one)) }
	check(t, notice.FromMaintenance, []row{
		{active("instance-reboot"), reboot("e1"), ""},
		{active("system-reboot"), scheduled("system-reboot", "e1", "EC2 reboots the host of the instance"), ""},
		{active("system-maintenance"), scheduled("system-maintenance", "e1", "EC2 works on the network or the power of the host"), ""},
		{active("instance-stop"), scheduled("instance-stop", "e1", "EC2 stops the instance"), ""},
		{active("instance-retirement"), scheduled("instance-retirement", "e1", "EC2 retires the instance, whose host degrades"), ""},
		{active("instance-teleport"), scheduled("instance-retirement", "e1",
			`EC2 announces "instance-teleport" (d), an event that is not known here and is taken for a retirement`), ""},
		// A cause of another kind is no code of an event.
		{active("spot-terminate"), scheduled("instance-retirement", "e1",
			`EC2 announces "spot-terminate" (d), an event that is not known here and is taken for a retirement`), ""},
		{active(""), scheduled("instance-retirement", "e1",
			`EC2 announces "" (d), an event that is not known here and is taken for a retirement`), ""},

		{`[]`, "", ""},
		{`null`, "", ""},
		{list(event("instance-reboot", "e1", "completed", one)), "", ""},
		{list(event("instance-reboot", "e1", "canceled", one)), "", ""},
		{list(event("instance-reboot", "e1", "Cancelled", one)), "", ""},
		{list(event("instance-reboot", "e1", "", one)), reboot("e1"), ""},
		{list(event("instance-reboot", "e1", "brooding", one)), reboot("e1"), ""},

		// No time, or none that can be read, is none.
		{list(event("instance-stop", "e1", "active", "tomorrow")),
			"instance-stop:i-1:e1 to 2025-01-01T14:00:00Z (scheduled event: EC2 stops the instance, at a time that is not known)", ""},
		{`[{"Code":"instance-stop","EventId":"e1"}]`,
			"instance-stop:i-1:e1 (scheduled event: EC2 stops the instance, at a time that is not known)", ""},
		{`[{"Code":"instance-reboot","EventId":"e1","State":"active","NotBefore":"` + one + `","NotAfter":"","NotBeforeDeadline":"later"}]`,
			"instance-reboot:i-1:e1 until 2025-01-01T13:00:00Z (scheduled event: EC2 reboots the instance, not before 2025-01-01T13:00:00Z)", ""},
		{list(event("instance-reboot", "e1", "active", "21 Jan 2019 09:00:43 GMT")),
			"instance-reboot:i-1:e1 until 2019-01-21T09:00:43Z to 2025-01-01T14:00:00Z (scheduled event: EC2 reboots the instance, not before 2019-01-21T09:00:43Z)", ""},

		// Several: the first comes first, each id once.
		{list(event("instance-reboot", "e2", "active", one), event("instance-stop", "e0", "canceled", one), event("instance-reboot", "e1", "active", one)),
			reboot("e1") + "\n" + reboot("e2"), ""},
		{list(event("instance-reboot", "e1", "active", "1 Jan 2025 20:00:00 GMT"), event("system-reboot", "e2", "active", one)),
			scheduled("system-reboot", "e2", "EC2 reboots the host of the instance") +
				"\ninstance-reboot:i-1:e1 until 2025-01-01T20:00:00Z to 2025-01-01T14:00:00Z (scheduled event: EC2 reboots the instance, not before 2025-01-01T20:00:00Z)", ""},
		{list(event("instance-reboot", "e1", "active", one), event("instance-reboot", "e1", "active", one)), reboot("e1"), ""},

		// One that cannot be distinguished from others takes nothing from those.
		{list(event("instance-reboot", "", "active", one), event("instance-reboot", "e1", "active", one)), reboot("e1"), "has no EventId"},
		{list("7", event("instance-reboot", "e1", "active", one), `{"Code":1}`), reboot("e1"), `"7" is not an event`},
		{`{"Code":"instance-reboot"}`, "", "is not a list in JSON"},
		{`[{]`, "", "is not a list in JSON"},
		{``, "", "is not a list in JSON"},
		{`<html>`, "", `events/maintenance/scheduled: "<html>" is not a list in JSON`},
	})
}

// The history ends what the list still has, by the id of the event.
func TestWithoutHistory(t *testing.T) {
	standing, err := notice.ParseMaintenance(instance, list(event("instance-reboot", "e1", "active", one), event("system-reboot", "e2", "active", one)))
	if err != nil {
		t.Fatal(err)
	}
	const both = "instance-reboot:i-1:e1 system-reboot:i-1:e2"
	for _, tc := range []struct{ body, want, wrong string }{
		{`[]`, both, ""},
		{`null`, both, ""},
		{list(event("instance-reboot", "e9", "completed", one)), both, ""},
		{list(event("instance-reboot", "e1", "completed", one)), "system-reboot:i-1:e2", ""},
		{list(event("instance-reboot", "e1", "canceled", one)), "system-reboot:i-1:e2", ""},
		{list(event("something-else", "e1", "", one)), "system-reboot:i-1:e2", ""},
		{list(event("instance-reboot", "e1", "active", one)), both, ""},
		{list(event("instance-reboot", "e1", "completed", one), event("instance-reboot", "e1", "active", one)), "system-reboot:i-1:e2", ""},
		{list(event("system-reboot", "e2", "completed", one), event("instance-reboot", "e1", "canceled", one)), "", ""},
		{list("7", event("instance-reboot", "e1", "completed", one)), "system-reboot:i-1:e2", `events/maintenance/history: "7" is not an event`},
		{`{}`, both, "is not a list in JSON"},
		{``, both, "is not a list in JSON"},
	} {
		t.Run(tc.body, func(t *testing.T) {
			got, err := notice.WithoutHistory(standing, tc.body)
			wantError(t, err, tc.wrong)
			if diff := cmp.Diff(tc.want, strings.Join(notice.IDs(got), " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
	if len(standing) != 2 {
		t.Error("the list that was given has changed")
	}
}

func TestParseErrorsQuoteAndShorten(t *testing.T) {
	body := strings.Repeat("x", 5000)
	for _, s := range notice.Sources {
		_, err := s.Parse(instance, body)
		if err == nil || !strings.Contains(err.Error(), `"xxxx`) || len(err.Error()) > 300 {
			t.Errorf("%s: got %v, want the beginning of the body in quotes", s.Path, err)
		}
	}
}

func TestParseRequest(t *testing.T) {
	for value, want := range map[string]notice.Notice{
		`{"id":"x","kind":"scale-down","reason":"unneeded","by":"s","deadline":"2025-01-01T12:10:00Z"}`: {
			ID: "x", Cause: notice.ScaleDown, Kind: contract.KindScaleDown, Reason: "unneeded", By: "s", Deadline: noon.Add(10 * time.Minute)},
		`upgrade`:                            {ID: "request:upgrade", Cause: notice.Request, Kind: contract.KindRequest, Reason: "upgrade"},
		`{"id":"y","kind":"spot"}`:           {ID: "y", Cause: notice.Request, Kind: contract.KindSpot},
		`{"id":"asg-warm:i","kind":"asg"}`:   {ID: "asg-warm:i", Cause: notice.ASGWarm, Kind: contract.KindASG},
		`{"id":"scale-down:i","kind":"asg"}`: {ID: "scale-down:i", Cause: notice.Request, Kind: contract.KindASG},
	} {
		got, err := notice.ParseRequest(value)
		if err != nil {
			t.Fatal(err)
		}
		want.Source = notice.FromRequest
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", value, diff)
		}
	}
	if _, err := notice.ParseRequest("not a word"); err == nil {
		t.Error("no error")
	}
}

func TestOfMetadata(t *testing.T) {
	ids := map[string]notice.Cause{
		contract.ScaleDownID(instance, noon): "",
		"request:upgrade":                    "",
		"scale-down:i-1":                     "",
		"":                                   "",
		"asg-terminate":                      "",
		"x" + contract.TerminateID(instance): "",
	}
	for _, c := range notice.Causes() {
		if c != notice.ScaleDown && c != notice.Request {
			ids[string(c)+":i-1"], ids[string(c)+":i-1:a:b"] = c, c
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		want := ids[id]
		cause, ok := notice.OfMetadata(id)
		if cause != want || ok != (want != "") {
			t.Errorf("OfMetadata(%q) = %q, %v, want %q", id, cause, ok, want)
		}
	}
}

// Every cause is read at one place, and what is read there has that cause's source.
func TestSourceOfCauses(t *testing.T) {
	for _, c := range notice.Causes() {
		from := c.Source()
		isPath := slices.ContainsFunc(notice.Sources, func(s notice.Source) bool { return s.Path == from })
		if _, metadata := notice.OfMetadata(string(c) + ":"); metadata != isPath || !metadata && from != notice.FromRequest {
			t.Errorf("%s is read from %q", c, from)
		}
	}
	if from := notice.Cause("x").Source(); from != "" {
		t.Errorf("an unknown cause is read from %q", from)
	}
}

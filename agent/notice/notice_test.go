package notice_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
)

const instance = "i-1"

var noon = time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC)

func describe(notices []notice.Notice) string {
	var lines []string
	for _, n := range notices {
		line := string(n.Kind) + " " + n.ID
		if !n.Deadline.IsZero() {
			line += " until " + n.Deadline.Format(time.RFC3339)
		}
		lines = append(lines, line+" ("+n.Reason+")")
	}
	return strings.Join(lines, "\n")
}

// Each row is one body as the metadata give it; wrong is what the error says,
// beside the body itself.
func TestParse(t *testing.T) {
	for _, tc := range []struct {
		path  notice.SourceName
		body  string
		want  string
		wrong string
	}{
		{notice.FromTargetState, "Terminated", "asg asg-terminate:i-1 (Auto Scaling terminates the instance)", ""},
		{notice.FromTargetState, "Terminated\n", "asg asg-terminate:i-1 (Auto Scaling terminates the instance)", ""},
		{notice.FromTargetState, "InService", "", ""},
		{notice.FromTargetState, "Detached", "", ""},
		{notice.FromTargetState, "Standby", "", ""},
		{notice.FromTargetState, "Warmed:Hibernated", "", ""},
		{notice.FromTargetState, "Warmed:Running", "", ""},
		{notice.FromTargetState, "Warmed:Stopped", "", ""},
		{notice.FromTargetState, "Warmed:Terminated", "", ""},
		{notice.FromTargetState, "terminated", "", "unknown state"},
		{notice.FromTargetState, "", "", "unknown state"},
		{notice.FromTargetState, "<html>busy</html>", "", "unknown state"},

		{notice.FromInstanceAction, `{"action":"terminate","time":"2025-01-01T12:02:00Z"}`,
			"spot spot-terminate:i-1:2025-01-01T12:02:00Z until 2025-01-01T12:02:00Z (spot interruption: EC2 terminates the instance at 2025-01-01T12:02:00Z)", ""},
		{notice.FromInstanceAction, `{"action":"stop","time":"2025-01-01T12:02:00Z"}`,
			"spot spot-stop:i-1:2025-01-01T12:02:00Z until 2025-01-01T12:02:00Z (spot interruption: EC2 stops the instance at 2025-01-01T12:02:00Z)", ""},
		{notice.FromInstanceAction, `{"action":"hibernate","time":"2025-01-01T12:00:00Z","more":1}`,
			"spot spot-hibernate:i-1:2025-01-01T12:00:00Z until 2025-01-01T12:00:00Z (spot interruption: EC2 hibernates the instance at 2025-01-01T12:00:00Z)", ""},
		{notice.FromInstanceAction, `{"action":"evaporate","time":"2025-01-01T13:02:00+01:00"}`,
			`spot spot-terminate:i-1:2025-01-01T12:02:00Z until 2025-01-01T12:02:00Z (spot interruption: EC2 does "evaporate" to the instance at 2025-01-01T12:02:00Z)`, ""},
		{notice.FromInstanceAction, `{"action":"terminate","time":"soon"}`, "", "no time such as"},
		{notice.FromInstanceAction, `{"action":"terminate"}`, "", "no time such as"},
		{notice.FromInstanceAction, `{"time":"2025-01-01T12:02:00Z"}`, "", "names no action"},
		{notice.FromInstanceAction, `{"action":`, "", "not valid JSON"},
		{notice.FromInstanceAction, ``, "", "not valid JSON"},
	} {
		t.Run(string(tc.path)+" "+tc.body, func(t *testing.T) {
			got, err := source(t, tc.path).Parse(instance, tc.body)
			if tc.wrong == "" && err != nil {
				t.Fatal(err)
			}
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Fatalf("error %v, want one with %q", err, tc.wrong)
				}
				return
			}
			if diff := cmp.Diff(tc.want, describe(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func source(t *testing.T, path notice.SourceName) notice.Source {
	t.Helper()
	for _, s := range notice.Sources {
		if s.Path == path {
			return s
		}
	}
	t.Fatalf("no source %s", path)
	return notice.Source{}
}

func TestParseErrorsQuoteAndShorten(t *testing.T) {
	body := strings.Repeat("x", 5000)
	_, err := notice.ParseTargetState(instance, body)
	if err == nil || !strings.Contains(err.Error(), `"xxxx`) || len(err.Error()) > 300 {
		t.Errorf("got %v, want the beginning of the body in quotes", err)
	}
}

func TestParseRequest(t *testing.T) {
	got, err := notice.ParseRequest(`{"id":"x","kind":"scale-down","reason":"unneeded","by":"s","deadline":"2025-01-01T12:10:00Z"}`)
	if err != nil {
		t.Fatal(err)
	}
	want := notice.Notice{
		ID: "x", Cause: notice.ScaleDown, Kind: contract.KindScaleDown, Source: notice.FromRequest,
		Reason: "unneeded", By: "s", Deadline: noon.Add(10 * time.Minute),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := notice.ParseRequest("not a word"); err == nil {
		t.Error("no error")
	}
}

// The order of the list is the order of strength, whatever the order in which
// the notices came.
func TestStanding(t *testing.T) {
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	terminate := contract.TerminateID(instance)
	spotLate := notice.Notice{ID: "spot:a", Kind: contract.KindSpot, Deadline: at(3)}
	spotEarly := notice.Notice{ID: "spot:b", Kind: contract.KindSpot, Deadline: at(2)}
	seen := notice.Notice{ID: terminate, Kind: contract.KindASG, Source: notice.FromTargetState, Reason: "seen"}
	asked := notice.Notice{ID: terminate, Kind: contract.KindASG, Source: notice.FromRequest, Deadline: at(9), By: "scaler"}
	down := notice.Notice{ID: "down", Kind: contract.KindScaleDown}
	people := notice.Notice{ID: "people", Kind: contract.KindRequest, Deadline: at(1)}
	other := notice.Notice{ID: "other", Kind: contract.KindRequest}

	want := []notice.Notice{spotEarly, spotLate,
		{ID: terminate, Kind: contract.KindASG, Source: notice.FromRequest, Reason: "seen", By: "scaler", Deadline: at(9)},
		down, people, other}
	in := []notice.Notice{other, asked, spotLate, people, seen, spotEarly, down}
	for turn := range in {
		turned := append(append([]notice.Notice(nil), in[turn:]...), in[:turn]...)
		if diff := cmp.Diff(want, notice.Standing(turned...)); diff != "" {
			t.Errorf("turned by %d:\n%s", turn, diff)
		}
	}
	if got := notice.Deadline(want); !got.Equal(at(1)) {
		t.Errorf("Deadline = %s, want %s", got, at(1))
	}
	if diff := cmp.Diff([]string{terminate, "down", "other", "people", "spot:a", "spot:b"}, notice.IDs(in)); diff != "" {
		t.Error(diff)
	}
}

func TestOfMetadata(t *testing.T) {
	for id, want := range map[string]notice.Cause{
		contract.TerminateID(instance):            notice.ASGTerminate,
		"spot-terminate:i-1:2025-01-01T12:02:00Z": notice.SpotTerminate,
		contract.RetireID(instance, noon):         "",
		"request:upgrade":                         "",
		"":                                        "",
		"asg-terminate":                           "",
		"x" + contract.TerminateID(instance):      "",
	} {
		cause, ok := notice.OfMetadata(id)
		if cause != want || ok != (want != "") {
			t.Errorf("OfMetadata(%q) = %q, %v, want %q", id, cause, ok, want)
		}
	}
}

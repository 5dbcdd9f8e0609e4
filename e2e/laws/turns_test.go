package laws

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// TestTurns: a drain that begins although the scaler has just said that it is not its turn
// is a breach, and one that has a reason is none.
func TestTurns(t *testing.T) {
	start := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	patch := func(after time.Duration, key, value string) Request {
		line, err := json.Marshal(map[string]any{
			"verb": "patch", "objectRef": map[string]string{"resource": "nodes", "name": "n1"}, "responseStatus": map[string]int{"code": 200},
			"requestReceivedTimestamp": start.Add(after),
			"requestObject": []map[string]any{
				{"op": "test", "path": "/metadata/annotations/" + strings.ReplaceAll(key, "/", "~1"), "value": nil},
				{"op": "add", "path": "/metadata/annotations/" + strings.ReplaceAll(key, "/", "~1"), "value": value},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		var r Request
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	report := func(after time.Duration, change func(*contract.Report)) Request {
		r := contract.Report{Answers: []string{"rebalance:1"}, Phase: contract.PhaseWaiting, Kind: contract.KindRebalance, Wants: "rebalance:1", PermitWait: 300, Left: 1}
		change(&r)
		return patch(after, contract.AnnotationDrainReport, r.String())
	}
	waits := func(*contract.Report) {}
	drains := func(r *contract.Report) { r.Phase, r.Wants, r.PermitWait = contract.PhaseDraining, "", 0 }
	notYet := func(after time.Duration) Request {
		return patch(after, contract.AnnotationDrainNotYet, contract.NotYet{ID: "rebalance:1", At: contract.At(start)}.String())
	}
	for _, c := range []struct {
		reason string
		audit  []Request
		broken bool
	}{
		{"it begins a minute after the word", []Request{report(0, waits), notYet(time.Second), report(time.Minute, drains)}, true},
		{"the word was renewed", []Request{report(0, waits), notYet(time.Second), notYet(4 * time.Minute), report(6*time.Minute, drains)}, true},
		{"the scaler is silent for as long as the agent waits", []Request{report(0, waits), notYet(time.Second), report(6*time.Minute, drains)}, false},
		{"nobody has said anything", []Request{report(0, waits), report(5*time.Minute, drains)}, false},
		{"it is permitted", []Request{report(0, waits), notYet(time.Second), patch(2*time.Second, contract.AnnotationDrainPermit, "rebalance:1"), report(3*time.Second, drains)}, false},
		{"another one is permitted", []Request{report(0, waits), notYet(time.Second), patch(2*time.Second, contract.AnnotationDrainPermit, "rebalance:2"), report(3*time.Second, drains)}, true},
		{"something stronger takes the node", []Request{report(0, waits), notYet(time.Second), report(time.Minute, func(r *contract.Report) {
			drains(r)
			r.Kind = contract.KindSpot
		})}, false},
		{"people ask for it", []Request{report(0, waits), notYet(time.Second), report(time.Minute, func(r *contract.Report) {
			drains(r)
			r.Answers = append(r.Answers, "request:now")
		})}, false},
		{"its deadline is near", []Request{report(0, waits), notYet(time.Second), report(time.Minute, func(r *contract.Report) {
			drains(r)
			r.Deadline = contract.At(start.Add(5 * time.Minute))
		})}, false},
	} {
		if got := Turns(c.audit); len(got) > 0 != c.broken {
			t.Errorf("%s: %q", c.reason, got)
		}
	}
}

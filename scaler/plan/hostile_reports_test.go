package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Whatever hundreds of nodes report, what is persisted and reported of them is short, and the
// verdict says which annotation cannot be read.
func TestReportsOfHundredsOfNodesAreBounded(t *testing.T) {
	const nodes = 300
	for _, c := range []struct {
		name    string
		bytes   int
		garbled bool
	}{
		{"as long as a report may be", 30 << 10, false},
		{"200 KiB", 200 << 10, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := scenario.NewWorld()
			text := fmt.Sprintf("group web max=%d desired=%d\nnode n1..%d group=web\nrequest n1..%d kind=scale-down at=09:30:00", 2*nodes, nodes, nodes, nodes)
			if err := w.Apply(text); err != nil {
				t.Fatal(err)
			}
			for i := range w.Nodes {
				n := &w.Nodes[i]
				request, err := contract.ParseRequest(n.Annotations[contract.AnnotationDrainRequest])
				if err != nil {
					t.Fatal(err)
				}
				n.Annotations[contract.AnnotationDrainReport] = fmt.Sprintf(`{"answers":[%q],"phase":"Failed","since":%q,"renewed":%q,"message":%q}`,
					request.ID, w.Now.Add(-2*time.Hour).Format(time.RFC3339), w.Now.Format(time.RFC3339), strings.Repeat("x", c.bytes))
			}
			got := plan.Decide(w.Snapshot, policy.DefaultPolicy())
			state, err := json.Marshal(got.State)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.State.GiveUps) < nodes/2 || len(state) > 512*nodes {
				t.Errorf("%d nodes are given up, and the state has %d bytes", len(got.State.GiveUps), len(state))
			}
			for _, a := range got.Actions {
				if len(a.String()) > 1<<10 {
					t.Fatalf("an action has %d bytes: %.200s", len(a.String()), a)
				}
			}
			for _, v := range got.Verdicts {
				told := strings.Contains(v.Message(), contract.AnnotationDrainReport+" has ")
				if len(v.Message()) > 4<<10 || v.Of == verdict.OfNode && told != c.garbled {
					t.Fatalf("a verdict of %d bytes: %.400s", len(v.Message()), v)
				}
			}
		})
	}
}

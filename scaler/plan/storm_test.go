package plan_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
)

// What must be remembered of a storm in a cluster of 15,000 nodes fits into the persisted state: nothing is
// dropped but what nodes have taught of their memory, which they teach again. Auto Scaling terminates a quarter of the instances, which a hook holds, and for
// each of them another one boots; of a fifth of the others the kubelet is silent; and 20,000 pods wait.
func TestStateOfAStorm(t *testing.T) {
	const most = 512 << 10
	nodes := 15_000
	if testing.Short() {
		nodes = 1_500
	}
	c := busy(nodes)
	g := &c.Groups[0]
	g.Hooks = []fleet.Hook{{Name: "windlass", Transition: fleet.OnTerminate, Heartbeat: metav1.Duration{Duration: 5 * time.Minute}, Global: metav1.Duration{Duration: 2 * time.Hour}}}
	g.Max *= 2
	for i := range g.Instances {
		switch here := &g.Instances[i]; {
		case i%4 == 0:
			here.State, here.TerminatingSince, here.TerminatingExact = fleet.TerminatingWait, c.Now.Add(-time.Minute), true
		case i%5 == 0:
			c.Nodes[i].Ready, c.Nodes[i].ReadySince = false, c.Now.Add(-time.Hour)
		}
	}
	for i := range nodes / 4 {
		g.Instances = append(g.Instances, fleet.Instance{ID: fmt.Sprintf("i-0c0e%012d", i), Zone: benchZones[i%len(benchZones)], Type: "m5.2xlarge", State: fleet.Pending})
	}
	for i := range nodes * 4 / 3 {
		c.wait(pods(4_000, 8*gib).owned(fmt.Sprint("burst-", i%100)))
	}
	s, planner, largest := c.Snapshot, plan.NewPlanner(), 0
	for range 10 {
		s.State = planner.Decide(s, byThreshold()).State
		_, text, shed, err := s.State.ShedTo(most)
		delete(shed, "seen")
		if err != nil || len(shed) > 0 || len(text) > most {
			t.Fatalf("%d bytes, dropped %v (%v)", len(text), shed, err)
		}
		largest = max(largest, len(text))
		s.Now = s.Now.Add(2 * time.Minute)
	}
	if left := len(s.State.Recognition.Left); left < nodes/5 {
		t.Errorf("%d instances are remembered that leave: this is no storm", left)
	}
	t.Logf("%d nodes: the state takes %d KiB at the most", nodes, largest>>10)
}

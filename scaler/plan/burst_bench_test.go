package plan_test

import (
	"fmt"
	"testing"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
)

// BenchmarkBurstBesideRetirements: 2,000 nodes that are 40 % full, a tenth of which is scaled down,
// and a burst of pending pods: none, 2,000 that no node could ever hold, and 4,000 that have room
// on empty nodes alone. No scale-down is worth cancelling for any, so that a burst should cost what
// it costs where no node is scaled down.
func BenchmarkBurstBesideRetirements(b *testing.B) {
	const nodes, podsPerNode, leave = 2_000, 40, 200
	for _, burst := range []struct {
		name     string
		waiting  int
		milliCPU int64
		grow     int
		loops    float64
	}{
		{name: "none", loops: 7.5},
		{name: "unplaceable", waiting: 2_000, milliCPU: 10_100, loops: 44},
		{name: "large", waiting: 4_000, milliCPU: 9_900, grow: 4_000, loops: 8},
	} {
		for _, retiring := range []int{0, leave} {
			b.Run(fmt.Sprintf("%s/retiring=%d", burst.name, retiring), func(b *testing.B) {
				c := uniform(nodes, podsPerNode)
				c.Groups[0].Max = nodes + burst.waiting
				for i := range retiring {
					c.retires(i)
				}
				large := pods(burst.milliCPU, 100*mib).owned("large")
				for range burst.waiting {
					c.wait(large)
				}
				planner := plan.NewPlanner()
				planner.Decide(c.Snapshot, policy.DefaultPolicy())
				got := measured(b, c.Snapshot, bounds{loops: burst.loops}, func() plan.Plan { return planner.Decide(c.Snapshot, policy.DefaultPolicy()) })
				if n := grown(got); n != burst.grow {
					b.Errorf("%d new nodes, want %d", n, burst.grow)
				}
				if n := kept(got); n > 0 {
					b.Errorf("%d retirements are taken back, want none", n)
				}
			})
		}
	}
}

// retires has the drain of the node of that index begin just now.
func (c *city) retires(index int) {
	n := &c.Nodes[index]
	at := contract.Time{Time: benchNow.Add(-time.Second)}
	id := contract.ScaleDownID(n.InstanceID(), at.Time)
	n.Annotations = map[string]string{
		contract.AnnotationDrainRequest: contract.Request{ID: id, Kind: contract.KindScaleDown, By: contract.AppScaler, At: at}.String(),
		contract.AnnotationDrainReport: contract.Report{
			Answers: []string{id}, Phase: contract.PhaseDraining, Kind: contract.KindScaleDown, Since: at, Renewed: at,
		}.String(),
		contract.AnnotationCordonedBy: contract.Cordon{By: contract.AppAgent, At: at}.String(),
	}
	n.Unschedulable = true
	n.Taints = append(n.Taints, contract.DrainingTaint(contract.KindScaleDown))
}

// kept counts the scale-downs that a plan cancels.
func kept(p plan.Plan) int {
	count := 0
	for _, a := range p.Actions {
		if _, is := a.(action.CancelDrain); is {
			count++
		}
	}
	return count
}

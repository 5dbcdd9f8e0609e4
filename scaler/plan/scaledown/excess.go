package scaledown

import (
	"fmt"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// ending is by how many instances each group gets smaller by what has begun, whoever
// began it.
func (d *ScaleDown) ending() map[*cluster.Group]int {
	ending := d.lessening()
	for _, n := range d.In(cluster.Leaving) {
		if n.Instance != nil && n.Instance.Live() && n.Draining() != contract.KindRequest {
			ending[n.Group]++
		}
	}
	return ending
}

// AboveDesired says what becomes of instances above desired; empty where there are none.
func AboveDesired(g *cluster.Group) string {
	over := g.Excess()
	if over == 0 {
		return ""
	}
	open := 0
	for _, i := range g.Live {
		if !i.Protected {
			open++
		}
	}
	text := fmt.Sprintf("it has %s, %d above desired", verdict.Counted(len(g.Live), "instance"), over)
	const ours = "unneeded nodes are drained and terminated without decrement"
	switch {
	case open == 0:
		return fmt.Sprintf("%s; all are protected from scale-in, so Auto Scaling terminates none of them: %s", text, ours)
	case g.IsSuspended(cluster.ProcessTerminate):
		return text + "; its Terminate process is suspended, so Auto Scaling terminates none of them"
	case open >= over:
		return fmt.Sprintf("%s; Auto Scaling terminates %d of the %d that are not protected from scale-in", text, over, open)
	}
	return fmt.Sprintf("%s; Auto Scaling terminates the %d that are not protected from scale-in, and after that %s", text, open, ours)
}

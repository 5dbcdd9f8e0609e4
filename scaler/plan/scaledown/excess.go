package scaledown

import (
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// ending is by how many instances each group gets smaller by what has begun, whoever
// began it.
func (d *ScaleDown) ending() map[*cluster.Group]int {
	ending, _ := d.lessening()
	for n := range d.In(cluster.Draining) {
		if n.Instance != nil && n.Instance.Live() && n.Draining() != contract.KindRequest {
			ending[n.Group]++
		}
	}
	return ending
}

// AboveDesired says what becomes of instances above desired; empty where there are none.
func AboveDesired(g *cluster.Group) verdict.Details {
	over := g.Excess()
	if over == 0 || g.External { // whose provider contradicts itself then
		return nil
	}
	open := 0
	for _, i := range g.Live {
		if !i.Protected {
			open++
		}
	}
	above := verdict.Say("it has {all} {all:instance|instances}, {count} above desired", verdict.All(len(g.Live)), verdict.Count(over))
	const ours = "unneeded nodes are drained and terminated without decrement"
	switch {
	case open == 0:
		return above.Then(verdict.Say("all are protected from scale-in, so Auto Scaling terminates none of them: " + ours))
	case g.IsSuspended(cluster.ProcessTerminate):
		return above.Then(verdict.Say("its Terminate process is suspended, so Auto Scaling terminates none of them"))
	case open >= over:
		return above.Then(verdict.Say("Auto Scaling terminates {count} of the {all} that are not protected from scale-in", verdict.Count(over), verdict.All(open)))
	}
	return above.Then(verdict.Say("Auto Scaling terminates the {count} that are not protected from scale-in, and after that "+ours, verdict.Count(open)))
}

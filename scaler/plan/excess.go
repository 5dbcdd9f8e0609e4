package plan

import (
	"fmt"

	"windlass.dev/windlass/pkg/contract"
)

// People may lower a group's desired capacity by hand. Auto Scaling then terminates
// instances that are not protected from scale-in, and no others: where all are protected
// the group stays as large as it is.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-instance-protection.html
//
// So unneeded nodes of such a group are drained like any other, at most as many as it is
// above desired, and terminated without decrement: desired is what people want. Where only
// some instances are protected, Auto Scaling terminates the others first. That is waited
// for, because both at once would be too many.

// excess is by how many instances the group is larger than desired.
func (g *group) excess() int { return max(0, len(g.live)-g.read) }

// ending is by how many instances each group gets smaller by what has begun, whoever
// began it.
func (d *decision) ending() map[*group]int {
	ending := d.lessening()
	for _, n := range d.in(leaving) {
		if n.instance != nil && n.instance.Live() && n.draining() != contract.KindRequest {
			ending[n.group]++
		}
	}
	return ending
}

// aboveDesired says what becomes of instances above desired; empty where there are none.
func (g *group) aboveDesired() string {
	over := g.excess()
	if over == 0 {
		return ""
	}
	open := 0
	for _, i := range g.live {
		if !i.Protected {
			open++
		}
	}
	text := fmt.Sprintf("it has %s, %d above desired", counted(len(g.live), "instance"), over)
	const ours = "unneeded nodes are drained and terminated without decrement"
	switch {
	case open == 0:
		return fmt.Sprintf("%s; all are protected from scale-in, so Auto Scaling terminates none of them: %s", text, ours)
	case g.suspended(processTerminate):
		return text + "; its Terminate process is suspended, so Auto Scaling terminates none of them"
	case open >= over:
		return fmt.Sprintf("%s; Auto Scaling terminates %d of the %d that are not protected from scale-in", text, over, open)
	}
	return fmt.Sprintf("%s; Auto Scaling terminates the %d that are not protected from scale-in, and after that %s", text, open, ours)
}

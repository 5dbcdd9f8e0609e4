package drain

import (
	"cmp"
	"time"

	"windlass.dev/windlass/agent/notice"
)

// rebootSlack is how long before its announced time a reboot by AWS may come.
const rebootSlack = 5 * time.Minute

// hasRebooted reports whether the machine has come up again since the notice was first
// seen, and that this fulfils it, however long the metadata go on listing it: a reboot
// at the announced time does. After an earlier one, of people, the event stays open.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/schedevents_actions_reboot.html
func (d *decision) hasRebooted(n notice.Notice) bool {
	if d.Node.BootID == "" || d.bootOf(n) == d.Node.BootID {
		return false
	}
	if d.isMarked(n.ID) {
		return false
	}
	switch n.Cause {
	case notice.InstanceReboot, notice.SystemReboot, notice.SystemMaintenance:
		return !d.Now.Before(n.Deadline.Add(-rebootSlack))
	}
	return false
}

// isOver reports whether the time of a scheduled event is over, without a reboot as it may
// be: the metadata may go on listing it.
func (d *decision) isOver(n notice.Notice) bool {
	if n.OverAt().IsZero() || d.isMarked(n.ID) {
		return false
	}
	return d.due(n.OverAt())
}

// bootOf is the boot id under which the notice stands, until noted moves it on.
func (d *decision) bootOf(n notice.Notice) string {
	noted, _ := d.known.Find(n.ID)
	return cmp.Or(noted.Boot, d.Node.BootID)
}

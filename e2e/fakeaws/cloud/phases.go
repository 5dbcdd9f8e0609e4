package cloud

import "time"

// phase is one passage of an instance: a state it starts in, one in which it waits for lifecycle hooks, one after them, and, when it leaves, one in which
// it is kept because a hook was abandoned.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks-overview.html
type phase struct {
	start, wait, proceed, retained LifecycleState
}

var (
	launching = phase{start: Pending, wait: PendingWait, proceed: PendingProceed}
	leaving   = phase{start: Terminating, wait: TerminatingWait, proceed: TerminatingProceed, retained: TerminatingRetained}
	warming   = phase{start: WarmedPending, wait: WarmedPendingWait, proceed: WarmedPendingProceed, retained: WarmedPendingRetained}
	cooling   = phase{start: WarmedTerminating, wait: WarmedTerminatingWait, proceed: WarmedTerminatingProceed, retained: WarmedTerminatingRetained}
)

func (p phase) ends() bool { return p == leaving || p == cooling }

// run takes an instance through a phase: it starts, takes d, waits for the hooks of the transition if there are any, and then goes on.
func (c *Cloud) run(i *instance, p phase, transition string, d time.Duration, then func()) {
	i.phase, i.then, i.actions, i.aborted = p, then, nil, false
	c.enter(i, p.start)
	c.afterIn(i, d, func() {
		if i.EC2State == "pending" {
			i.EC2State = "running"
		}
		hooks := c.groupOf(i).hooks(transition)
		if len(hooks) == 0 {
			then()
			return
		}
		for _, h := range hooks {
			c.startAction(i, h)
		}
		i.activity.progress(statusMidLifecycle, 50)
		c.enter(i, p.wait)
	})
}

// waited goes on when the last lifecycle action has ended.
func (c *Cloud) waited(i *instance) {
	g := c.groupOf(i)
	switch {
	case i.aborted && !i.phase.ends():
		c.abandonLaunch(g, i)
		return
	case i.aborted && g.spec.RetainOnTerminateHookAbandon:
		c.enter(i, i.phase.retained)
		return
	}
	i.activity.progress(statusInProgress, 60)
	c.enter(i, i.phase.proceed)
	c.afterIn(i, c.scaled(c.spec.Timing.Reconcile), i.then)
}

// abandonLaunch throws away an instance whose launch hook was abandoned; the group launches another. Its terminating hooks do not run: it never served.
func (c *Cloud) abandonLaunch(g *group, i *instance) {
	c.endActivity(i.activity, statusCancelled, i.activity.StatusMessage)
	i.activity = c.startActivity(g, i.Zone, "Terminating EC2 instance: "+i.ID,
		c.sentence("an instance was taken out of service in response to a launch failure"), statusInProgress)
	i.phase = leaving
	c.enter(i, Terminating)
	c.shutDown(i)
	c.reconcile(g)
}

// endNow ends an instance whatever it waits for.
func (c *Cloud) endNow(g *group, i *instance, p phase, why string) {
	c.endActivity(i.activity, statusCancelled, "")
	i.activity = c.startActivity(g, i.Zone, "Terminating EC2 instance: "+i.ID, c.sentence("an instance was taken out of service in response to %s", why), statusInProgress)
	i.phase, i.actions = p, nil
	c.enter(i, p.start)
	c.shutDown(i)
}

// inService ends the launch of an instance.
func (c *Cloud) inService(g *group, i *instance) {
	i.EC2State = "running"
	c.endActivity(i.activity, statusSuccessful, "")
	g.lastActivity = c.now
	c.enter(i, InService)
	c.reconcile(g)
}

// shutDown ends the instance itself; its operating system has the time of the shutdown for that.
func (c *Cloud) shutDown(i *instance) {
	if !i.dead {
		i.EC2State = "shutting-down"
		c.emit(i)
	}
	c.afterIn(i, c.scaled(c.spec.Timing.Shutdown), func() { c.end(i) })
}

// end is the last moment of an instance.
func (c *Cloud) end(i *instance) {
	g := c.groupOf(i)
	i.powerOff()
	i.EC2State = "terminated"
	i.Gone = true
	final := Terminated
	if i.LifecycleState.Warm() {
		final = WarmedTerminated
	}
	c.enter(i, final)
	c.endActivity(i.activity, statusSuccessful, "")
	c.forget(i)
	if g != nil {
		g.lastActivity = c.now
		c.dropDeleted(g)
		c.reconcile(g)
	}
}

package cloud

import (
	"cmp"
	"slices"
	"time"
)

// poolState is the state in which instances of the pool wait.
func (g *group) poolState() LifecycleState {
	if g.spec.WarmPool == nil {
		return WarmedStopped
	}
	return LifecycleState("Warmed:" + g.spec.WarmPool.State)
}

// warm are the members of the pool that are not on their way out, oldest first.
func (g *group) warm() []*instance {
	return slices.DeleteFunc(g.members(), func(i *instance) bool { return !i.LifecycleState.Warm() || i.LifecycleState.Leaving() })
}

// poolSize is how many instances the pool should hold.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_PutWarmPool.html
func (g *group) poolSize() int {
	p := g.spec.WarmPool
	if p == nil {
		return 0
	}
	prepared := g.max
	if p.MaxPrepared != nil && *p.MaxPrepared >= 0 {
		prepared = *p.MaxPrepared
	}
	return max(p.MinSize, prepared-g.desired, 0)
}

// keepWarmPool fills the pool, or empties it of what is too much.
func (c *Cloud) keepWarmPool(g *group) {
	if g.spec.WarmPool == nil {
		return
	}
	pool := g.warm()
	for n := len(pool); n < g.poolSize() && !g.isSuspended("Launch"); n++ {
		if !c.launchWarm(g) {
			c.retryLaunch(g)
			return
		}
	}
	for n := len(pool) - 1; n >= g.poolSize(); n-- {
		c.leave(g, pool[n], c.sentence("an instance was taken out of the warm pool in response to a difference between desired and actual capacity"), false)
	}
}

func (c *Cloud) launchWarm(g *group) bool {
	src, err := c.sourceOf(g.spec)
	if err != nil {
		return false
	}
	zone := g.spec.Zones[len(g.warm())%len(g.spec.Zones)]
	o, failed := c.choose(g, zone, src)
	if len(failed) > 0 {
		c.failLaunch(g, zone, failed[len(failed)-1].status(src.mixed))
		return false
	}
	i := c.newInstance(g, zone, o)
	cause := c.sentence("an instance was started in response to a difference between desired and actual capacity of the warm pool")
	i.activity = c.startActivity(g, zone, "Launching a new EC2 instance into warm pool: "+i.ID, cause, statusPreInService)
	c.bootUp(i, c.bootTime(g))
	c.run(i, warming, OnLaunch, c.scaled(c.spec.Timing.Pending), func() { c.rest(g, i) })
	return true
}

// rest brings an instance to rest in the pool.
func (c *Cloud) rest(g *group, i *instance) {
	c.endActivity(i.activity, statusSuccessful, "")
	i.EC2State = "running"
	if g.poolState() != WarmedRunning {
		i.EC2State = "stopped"
		i.powerOff()
	}
	c.enter(i, g.poolState())
	c.reconcile(g)
}

// fromWarmPool brings an instance from the pool into the group; nil if none is at rest.
func (c *Cloud) fromWarmPool(g *group) *instance {
	if g.spec.WarmPool == nil {
		return nil
	}
	for _, i := range g.warm() {
		if i.LifecycleState != g.poolState() || i.Health != "Healthy" {
			continue
		}
		i.activity = c.startActivity(g, i.Zone, "Launching a new EC2 instance from warm pool: "+i.ID, g.startedCause(g.capacity(), i.weight()), statusPreInService)
		if i.OS == OSOff {
			i.EC2State = "pending"
			c.bootUp(i, c.scaled(c.spec.Timing.WarmStart))
		}
		c.run(i, launching, OnLaunch, c.scaled(c.spec.Timing.Pending), func() { c.inService(g, i) })
		return i
	}
	return nil
}

// takesBack reports whether a scaled-in instance returns to the pool.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-warm-pools.html#instance-reuse-policy
func (c *Cloud) takesBack(g *group, i *instance) bool {
	return g.spec.WarmPool != nil && g.spec.WarmPool.ReuseOnScaleIn && i.LifecycleState == InService && !i.dead && i.Health == "Healthy" && len(g.warm()) < g.poolSize()
}

// backToPool takes an instance out of service into the pool; the terminating hooks run on the way, in Warmed:Pending:Wait.
func (c *Cloud) backToPool(g *group, i *instance, cause string) {
	i.activity = c.startActivity(g, i.Zone, "Returning EC2 instance to warm pool: "+i.ID, cause, statusInProgress)
	c.run(i, warming, OnTerminate, c.scaled(c.spec.Timing.Terminating), func() { c.rest(g, i) })
	c.reconcile(g)
}

// PutWarmPool makes the warm pool of a group, or another one of it. Instances that rest in the former state stay as they are.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_PutWarmPool.html
func (c *Cloud) PutWarmPool(name string, p WarmPool, now time.Time) error {
	c.Advance(now)
	g := c.findGroup(name)
	if g == nil {
		return noGroup(name)
	}
	p.State = cmp.Or(p.State, "Stopped")
	g.spec.WarmPool = &p
	c.reconcile(g)
	return nil
}

// DeleteWarmPool takes the warm pool off a group. By force its instances end with it, and no hook holds them up.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DeleteWarmPool.html
func (c *Cloud) DeleteWarmPool(name string, force bool, now time.Time) error {
	c.Advance(now)
	g := c.findGroup(name)
	switch {
	case g == nil:
		return noGroup(name)
	case g.spec.WarmPool == nil:
		return invalid("No warm pool found for Auto Scaling group %s", name)
	case len(g.warm()) > 0 && !force:
		return Errorf(400, "ResourceInUse", "The warm pool of Auto Scaling group %s has instances; delete it by force to end them", name)
	}
	for _, i := range g.warm() {
		c.endNow(g, i, cooling, "the deletion of the warm pool")
	}
	g.spec.WarmPool = nil
	return nil
}

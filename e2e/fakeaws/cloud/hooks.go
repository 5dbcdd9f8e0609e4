package cloud

import (
	"slices"
	"time"
)

// Results of a lifecycle action.
const (
	Continue = "CONTINUE"
	Abandon  = "ABANDON"
)

func (g *group) hooks(transition string) []Hook {
	return slices.DeleteFunc(slices.Clone(g.spec.Hooks), func(h Hook) bool { return h.Transition != transition })
}

func (g *group) hook(name string) (Hook, bool) {
	for _, h := range g.spec.Hooks {
		if h.Name == name {
			return h, true
		}
	}
	return Hook{}, false
}

// PutHook adds or changes a hook of a group; actions under way keep their time-outs.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_PutLifecycleHook.html
func (c *Cloud) PutHook(group string, h Hook, now time.Time) error {
	c.Advance(now)
	g := c.findGroup(group)
	if g == nil {
		return noGroup(group)
	}
	h = completeHook(h)
	if err := c.checkGroup(withHook(g.spec, h)); err != nil {
		return invalid("%v", err)
	}
	g.spec = withHook(g.spec, h)
	return nil
}

func withHook(spec Group, h Hook) Group {
	spec.Hooks = append(slices.DeleteFunc(slices.Clone(spec.Hooks), func(o Hook) bool { return o.Name == h.Name }), h)
	return spec
}

// DeleteHook deletes a hook; actions of it under way end as abandoned when launching and as continued when terminating.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DeleteLifecycleHook.html
func (c *Cloud) DeleteHook(group, name string, now time.Time) error {
	c.Advance(now)
	g := c.findGroup(group)
	if g == nil {
		return noGroup(group)
	}
	h, ok := g.hook(name)
	if !ok {
		return invalid("Lifecycle hook not found - A lifecycle hook with the name: %s does not exist", name)
	}
	g.spec.Hooks = slices.DeleteFunc(slices.Clone(g.spec.Hooks), func(o Hook) bool { return o.Name == name })
	result := Continue
	if h.Transition == OnLaunch {
		result = Abandon
	}
	for _, i := range g.members() {
		if a := i.action(name); a != nil {
			c.endAction(i, a, result, "Lifecycle Hook was deleted")
		}
	}
	return nil
}

func (c *Cloud) startAction(i *instance, h Hook) {
	a := &Action{
		Since: c.now, Beat: c.now, Hook: h.Name, Token: c.uuid(),
		Until: c.now.Add(time.Duration(h.HeartbeatSeconds) * time.Second), End: c.now.Add(time.Duration(h.GlobalSeconds) * time.Second),
	}
	i.actions = append(i.actions, a)
	c.watch(i, a)
}

// watch ends the action with the default result of its hook when nobody has beaten its heart in time.
func (c *Cloud) watch(i *instance, a *Action) {
	until := a.deadline()
	c.after(until.Sub(c.now), func() {
		if !slices.Contains(i.actions, a) || c.now.Before(a.deadline()) {
			return
		}
		result := Abandon
		if h, ok := c.groupOf(i).hook(a.Hook); ok {
			result = h.Default
		}
		c.timeouts = append(c.timeouts, Timeout{At: c.now, Group: i.Group, Instance: i.ID, Action: *a})
		c.endAction(i, a, result, "Heartbeat Timeout")
	})
}

// Timeout is a lifecycle action that ended because nobody completed it, or sent a
// heartbeat, in time.
type Timeout struct {
	At              time.Time
	Group, Instance string
	Action          Action
}

// Timeouts are all that there were, the oldest first.
func (c *Cloud) Timeouts() []Timeout { return slices.Clone(c.timeouts) }

func (a *Action) deadline() time.Time {
	if a.End.Before(a.Until) {
		return a.End
	}
	return a.Until
}

func (i *instance) action(hook string) *Action {
	for _, a := range i.actions {
		if a.Hook == hook {
			return a
		}
	}
	return nil
}

// endAction ends one action. An abandoned one ends the others, too; otherwise the instance waits for all.
func (c *Cloud) endAction(i *instance, a *Action, result, how string) {
	i.actions = slices.DeleteFunc(i.actions, func(o *Action) bool { return o == a })
	if result == Abandon {
		i.aborted = true
		i.actions = nil
		if i.activity != nil {
			i.activity.StatusMessage = "Instance failed to complete user's Lifecycle Action: Lifecycle Action with token " + a.Token + " was abandoned: " + how
		}
	}
	if len(i.actions) == 0 {
		c.waited(i)
		return
	}
	c.emit(i)
}

// findAction finds the action that a caller means, by instance or by token. The text is the same before the wait begins and after it has ended.
func (c *Cloud) findAction(group, hook, instanceID, token string) (*instance, *Action, error) {
	g := c.findGroup(group)
	if g == nil {
		return nil, nil, noGroup(group)
	}
	if instanceID == "" && token == "" {
		return nil, nil, invalid("Either a lifecycle action token or an instance ID must be specified")
	}
	for _, i := range g.members() {
		a := i.action(hook)
		if a != nil && (token == "" || a.Token == token) && (instanceID == "" || i.ID == instanceID) {
			return i, a, nil
		}
	}
	if token != "" {
		return nil, nil, invalid("No active Lifecycle Action found with token %s", token)
	}
	return nil, nil, invalid("No active Lifecycle Action found with instance ID %s", instanceID)
}

// CompleteLifecycleAction is the call of that name.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_CompleteLifecycleAction.html
func (c *Cloud) CompleteLifecycleAction(group, hook, instanceID, token, result string, now time.Time) error {
	c.Advance(now)
	if result != Continue && result != Abandon {
		return invalid("1 validation error detected: Value '%s' at 'lifecycleActionResult' failed to satisfy constraint: Member must satisfy enum value set: [CONTINUE, ABANDON]", result)
	}
	i, a, err := c.findAction(group, hook, instanceID, token)
	if err != nil {
		return err
	}
	c.endAction(i, a, result, "Lifecycle Action Completed with "+result+" Result")
	return nil
}

// Heartbeat is RecordLifecycleActionHeartbeat: the time-out starts again, but the global one does not.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_RecordLifecycleActionHeartbeat.html
func (c *Cloud) Heartbeat(group, hook, instanceID, token string, now time.Time) error {
	c.Advance(now)
	i, a, err := c.findAction(group, hook, instanceID, token)
	if err != nil {
		return err
	}
	h, ok := c.findGroup(group).hook(hook)
	if !ok {
		return invalid("No active Lifecycle Action found with instance ID %s", i.ID)
	}
	a.Beats, a.Beat = a.Beats+1, c.now
	a.Until = c.now.Add(time.Duration(h.HeartbeatSeconds) * time.Second)
	c.watch(i, a)
	return nil
}

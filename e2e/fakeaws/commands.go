package fakeaws

import (
	"fmt"
	"time"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakeaws/metadata"
)

// ask runs f on the cloud and answers what it found.
func ask[T any](s *Server, f func(c *cloud.Cloud, now time.Time) (T, error)) (T, error) {
	var answer T
	err := s.With(func(c *cloud.Cloud, now time.Time) (err error) {
		answer, err = f(c, now)
		return err
	})
	return answer, err
}

// Groups lists all groups.
func (s *Server) Groups() []GroupStatus {
	groups, _ := ask(s, func(c *cloud.Cloud, _ time.Time) ([]GroupStatus, error) { return c.Groups(), nil })
	return groups
}

// Group finds a group by name.
func (s *Server) Group(name string) (GroupStatus, error) {
	return ask(s, func(c *cloud.Cloud, _ time.Time) (GroupStatus, error) { return c.Group(name) })
}

// Instances lists the instances that exist, those of warm pools and detached ones with them, oldest first.
func (s *Server) Instances() []Instance {
	list, _ := ask(s, func(c *cloud.Cloud, _ time.Time) ([]Instance, error) {
		var live []Instance
		for _, i := range c.Instances() {
			if !i.Gone {
				live = append(live, i)
			}
		}
		return live, nil
	})
	return list
}

// Instance finds an instance by id, also one that has ended not long ago.
func (s *Server) Instance(id string) (Instance, error) {
	return ask(s, func(c *cloud.Cloud, _ time.Time) (Instance, error) { return c.Instance(id) })
}

// Activities lists the scaling activities of a group ("" for all), newest first.
func (s *Server) Activities(group string) []Activity {
	list, _ := ask(s, func(c *cloud.Cloud, _ time.Time) ([]Activity, error) { return c.Activities(group), nil })
	return list
}

// Timeouts are the lifecycle actions that nobody completed in time, the oldest first.
func (s *Server) Timeouts() []Timeout {
	list, _ := ask(s, func(c *cloud.Cloud, _ time.Time) ([]Timeout, error) { return c.Timeouts(), nil })
	return list
}

// AddGroup makes another group.
func (s *Server) AddGroup(g Group) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error { return c.AddGroup(g, now) })
}

// AddTemplateVersion adds a version to a launch template and answers its number.
func (s *Server) AddTemplateVersion(name string, v TemplateVersion) (int, error) {
	return ask(s, func(c *cloud.Cloud, _ time.Time) (int, error) { return c.AddTemplateVersion(name, v) })
}

// DeleteTemplate deletes a launch template.
func (s *Server) DeleteTemplate(name string) error {
	return s.With(func(c *cloud.Cloud, _ time.Time) error { return c.DeleteTemplate(name) })
}

// SetDesired sets the desired capacity as a person would.
func (s *Server) SetDesired(group string, desired int) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error { return c.SetDesiredCapacity(group, desired, false, now) })
}

// Resize changes the limits of a group.
func (s *Server) Resize(group string, minSize, maxSize int) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error { return c.Resize(group, minSize, maxSize, now) })
}

// ScaleIn lowers the desired capacity as a scaling policy does; Auto Scaling chooses who leaves.
func (s *Server) ScaleIn(group string, by int) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error { return c.ScaleIn(group, by, now) })
}

// ScaleOut raises the desired capacity as a scaling policy does.
func (s *Server) ScaleOut(group string, by int) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error { return c.ScaleOut(group, by, now) })
}

// RebalanceZones evens out the zones of a group, launching before terminating, and answers how many instances move; force moves one even if all is even.
func (s *Server) RebalanceZones(group string, force bool) (int, error) {
	return ask(s, func(c *cloud.Cloud, now time.Time) (int, error) { return c.RebalanceZones(group, force, now) })
}

// StartRefresh begins an instance refresh and answers its id.
func (s *Server) StartRefresh(group string, p RefreshPreferences) (string, error) {
	return ask(s, func(c *cloud.Cloud, now time.Time) (string, error) { return c.StartRefresh(group, p, now) })
}

// CancelRefresh cancels the instance refresh under way and answers its id.
func (s *Server) CancelRefresh(group string) (string, error) {
	return ask(s, func(c *cloud.Cloud, now time.Time) (string, error) { return c.CancelRefresh(group, now) })
}

// SpotNotice gives an instance a spot interruption notice (terminate) and reclaims it after in; 0 means two minutes, scaled.
func (s *Server) SpotNotice(id string, in time.Duration) error {
	return s.SpotAction(id, "terminate", in)
}

// SpotAction is SpotNotice with another action: stop or hibernate.
func (s *Server) SpotAction(id, action string, in time.Duration) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error { return c.SpotNotice(id, action, in, now) })
}

// CancelSpotNotice takes a spot notice back.
func (s *Server) CancelSpotNotice(id string) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error { return c.CancelSpotNotice(id, now) })
}

// Rebalance gives an instance a rebalance recommendation.
func (s *Server) Rebalance(id string) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error { return c.Rebalance(id, now) })
}

// Maintenance announces a maintenance event and answers its id.
func (s *Server) Maintenance(id string, e MaintenanceEvent) (string, error) {
	return ask(s, func(c *cloud.Cloud, now time.Time) (string, error) { return c.Maintenance(id, e, now) })
}

// EndMaintenance moves a maintenance event to the history; state is completed or canceled.
func (s *Server) EndMaintenance(id, event, state string) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error { return c.EndMaintenance(id, event, state, now) })
}

// SetHealth marks an instance Healthy or Unhealthy; an unhealthy one is replaced.
func (s *Server) SetHealth(id, health string) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error { return c.SetHealth(id, health, now) })
}

// Protect sets the scale-in protection of an instance.
func (s *Server) Protect(id string, protected bool) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error { return c.Protect("", []string{id}, protected, now) })
}

// Kill ends an instance without a word.
func (s *Server) Kill(id string) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error { return c.Kill(id, now) })
}

// Terminate is TerminateInstanceInAutoScalingGroup as a person would call it.
func (s *Server) Terminate(id string, decrement bool) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error {
		_, err := c.Terminate("", []string{id}, decrement, now)
		return err
	})
}

// Reboot restarts the operating system of an instance.
func (s *Server) Reboot(id string) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error { return c.Reboot(id, now) })
}

// EnterStandby takes an instance out of service but keeps it.
func (s *Server) EnterStandby(id string, decrement bool) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error {
		_, err := c.EnterStandby("", []string{id}, decrement, now)
		return err
	})
}

// ExitStandby brings an instance back into service.
func (s *Server) ExitStandby(id string) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error {
		_, err := c.ExitStandby("", []string{id}, now)
		return err
	})
}

// Detach takes an instance out of its group.
func (s *Server) Detach(id string, decrement bool) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error {
		_, err := c.Detach("", []string{id}, decrement, now)
		return err
	})
}

// Force puts an instance into any lifecycle state and leaves it there; with hooks, the lifecycle actions of a wait state begin, too.
func (s *Server) Force(id string, state LifecycleState, hooks bool) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error {
		if err := c.Force(id, state, now); err != nil || !hooks {
			return err
		}
		return c.ForceHook(id, now)
	})
}

// Suspend stops processes of a group; none named means all.
func (s *Server) Suspend(group string, processes ...string) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error { return c.Suspend(group, processes, now) })
}

// Resume starts processes of a group again; none named means all.
func (s *Server) Resume(group string, processes ...string) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error { return c.Resume(group, processes, now) })
}

// PutHook adds or changes a lifecycle hook of a group.
func (s *Server) PutHook(group string, h Hook) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error { return c.PutHook(group, h, now) })
}

// DeleteHook deletes a lifecycle hook of a group.
func (s *Server) DeleteHook(group, name string) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error { return c.DeleteHook(group, name, now) })
}

// DeleteTag takes a tag off a group; instances keep theirs.
func (s *Server) DeleteTag(group, key string) error {
	return s.With(func(c *cloud.Cloud, now time.Time) error {
		g, err := c.Group(group)
		if err != nil {
			return err
		}
		if _, has := g.Spec.Tags[key]; !has {
			return fmt.Errorf("group %q has no tag %q", group, key)
		}
		return c.DeleteTags(group, map[string]cloud.Tag{key: {}}, now)
	})
}

// SetShortages replaces the rules that make launches fail; none means that there is capacity for all.
func (s *Server) SetShortages(rules ...Shortage) error {
	return s.With(func(c *cloud.Cloud, _ time.Time) error {
		c.SetShortages(rules)
		return nil
	})
}

// service finds the metadata service of an instance.
func (s *Server) service(id string) (*metadata.Service, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	service := s.imds[id]
	if service == nil {
		return nil, fmt.Errorf("instance %q has no metadata service", id)
	}
	return service, nil
}

// SetIMDSMode switches the metadata service of an instance on, off, or lets it fail.
func (s *Server) SetIMDSMode(id string, mode IMDSMode) error {
	service, err := s.service(id)
	if err != nil {
		return err
	}
	return service.SetMode(mode)
}

// SetIMDS makes the metadata service of an instance answer a path in another way; nil takes that back.
func (s *Server) SetIMDS(id, path string, a *IMDSAnswer) error {
	service, err := s.service(id)
	if err != nil {
		return err
	}
	service.Override(path, a)
	return nil
}

// ForgetIMDSTokens makes every token of an instance's metadata service invalid.
func (s *Server) ForgetIMDSTokens(id string) error {
	service, err := s.service(id)
	if err != nil {
		return err
	}
	service.ForgetTokens()
	return nil
}

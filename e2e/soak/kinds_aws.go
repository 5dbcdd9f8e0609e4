package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
)

// mortal are the groups whose instances come and go.
var mortal = []string{web, spot, plain, shared, warm}

func spotNotice(s *soak, dice *rand.Rand) (effect, error) {
	i, ok := one(dice, s.serving(spot))
	if !ok {
		return effect{}, nil
	}
	action := []string{"terminate", "terminate", "terminate", "terminate", "stop", "hibernate"}[dice.IntN(6)]
	return effect{what: "EC2 will " + action + " " + named(i)}, s.w.AWS.SpotAction(i.ID, action, 0)
}

// rebalance recommends to leave a spot instance, and interrupts it later, as most
// that are recommended to be left are.
func rebalance(s *soak, dice *rand.Rand) (effect, error) {
	i, ok := one(dice, s.serving(spot))
	if !ok {
		return effect{}, nil
	}
	return effect{
		what:  named(i) + " is at a higher risk",
		lasts: between(dice, 5*time.Second, 60*time.Second),
		end:   func() error { return s.unlessGone(i, s.w.AWS.SpotNotice(i.ID, 0)) },
	}, s.w.AWS.Rebalance(i.ID)
}

// maintenance announces an event, which is cancelled, or happens.
func maintenance(s *soak, dice *rand.Rand) (effect, error) {
	i, ok := one(dice, s.serving(append(mortal, steady)...))
	if !ok {
		return effect{}, nil
	}
	codes := []string{"system-reboot", "instance-reboot", "system-maintenance"}
	if i.Group != steady { // the scaler gives a drained machine up that is to be stopped
		codes = append(codes, "instance-stop", "instance-retirement")
	}
	code, _ := one(dice, codes)
	cancelled := i.Group == steady || dice.IntN(3) == 0
	before := time.Now().Add(between(dice, 2*time.Second, 40*time.Second))
	event, err := s.w.AWS.Maintenance(i.ID, fakeaws.MaintenanceEvent{Code: code, NotBefore: before, NotAfter: before.Add(2 * time.Hour)})
	if code == "instance-stop" || code == "instance-retirement" {
		s.book.retire(i.ID)
	}
	return effect{
		what:  fmt.Sprintf("%s is announced for %s", code, named(i)),
		lasts: between(dice, 5*time.Second, 60*time.Second),
		end: func() error {
			if cancelled {
				return s.unlessGone(i, s.w.AWS.EndMaintenance(i.ID, event, "canceled"))
			}
			return s.unlessGone(i, s.maintain(i, code, event))
		},
	}, err
}

// maintain does what was announced.
func (s *soak) maintain(i fakeaws.Instance, code, event string) error {
	if code == "instance-stop" || code == "instance-retirement" {
		return s.w.AWS.Kill(i.ID)
	}
	if err := s.w.AWS.Reboot(i.ID); err != nil {
		return err
	}
	return s.w.AWS.EndMaintenance(i.ID, event, "completed")
}

func terminate(s *soak, dice *rand.Rand) (effect, error) {
	i, ok := one(dice, s.serving(mortal...))
	if !ok {
		return effect{}, nil
	}
	decrement := dice.IntN(2) == 0 && s.aboveMin(i.Group)
	return effect{what: fmt.Sprintf("somebody terminates %s, decrement %v", named(i), decrement)}, s.w.AWS.Terminate(i.ID, decrement)
}

func scaleIn(s *soak, dice *rand.Rand) (effect, error) {
	group, _ := one(dice, mortal)
	if !s.aboveMin(group) {
		return effect{}, nil
	}
	return effect{what: "a policy scales " + group + " in"}, s.w.AWS.ScaleIn(group, 1)
}

func scaleOut(s *soak, dice *rand.Rand) (effect, error) {
	group, _ := one(dice, mortal)
	if g, err := s.w.AWS.Group(group); err != nil || g.Desired >= g.Max {
		return effect{}, err
	}
	return effect{what: "a policy scales " + group + " out"}, s.scaleOut(group)
}

// scaleOut raises the desired capacity of a group by one.
func (s *soak) scaleOut(group string) error {
	err := s.w.AWS.ScaleOut(group, 1)
	if err == nil {
		s.book.raise(group)
	}
	return err
}

func standby(s *soak, dice *rand.Rand) (effect, error) {
	i, ok := one(dice, s.serving(mortal...))
	if !ok || !s.aboveMin(i.Group) {
		return effect{}, nil
	}
	return effect{
		what:  named(i) + " enters standby",
		lasts: between(dice, 10*time.Second, 40*time.Second),
		end:   func() error { return s.exitStandby(i) },
	}, s.w.AWS.EnterStandby(i.ID, true)
}

// exitStandby brings an instance back, or ends it if its group has filled up meanwhile.
func (s *soak) exitStandby(i fakeaws.Instance) error {
	refused := s.w.AWS.ExitStandby(i.ID)
	if refused == nil {
		s.book.raise(i.Group)
	}
	now, err := s.w.AWS.Instance(i.ID)
	switch {
	case refused == nil || err != nil:
		return s.unlessGone(i, refused)
	case now.LifecycleState == cloud.EnteringStandby:
		return refused
	case now.LifecycleState == fakeaws.Standby:
		return s.w.AWS.Terminate(i.ID, false)
	}
	return s.unlessGone(i, refused)
}

func unhealthy(s *soak, dice *rand.Rand) (effect, error) {
	i, ok := one(dice, s.serving(mortal...))
	if !ok {
		return effect{}, nil
	}
	return effect{what: named(i) + " is called unhealthy"}, s.w.AWS.SetHealth(i.ID, "Unhealthy")
}

func lost(s *soak, dice *rand.Rand) (effect, error) {
	i, ok := one(dice, s.serving(mortal...))
	if !ok {
		return effect{}, nil
	}
	return effect{what: named(i) + " ends without a word"}, s.w.AWS.Kill(i.ID)
}

func reboot(s *soak, dice *rand.Rand) (effect, error) {
	i, ok := one(dice, s.serving(mortal...))
	if !ok {
		return effect{}, nil
	}
	return effect{what: named(i) + " reboots"}, s.w.AWS.Reboot(i.ID)
}

func detach(s *soak, dice *rand.Rand) (effect, error) {
	i, ok := one(dice, s.serving(web, plain))
	if !ok || !s.aboveMin(i.Group) {
		return effect{}, nil
	}
	return effect{
		what:  named(i) + " is detached",
		lasts: between(dice, 20*time.Second, 40*time.Second),
		end:   func() error { return s.unlessGone(i, s.w.AWS.Kill(i.ID)) },
	}, s.w.AWS.Detach(i.ID, true)
}

// refresh replaces the instances of a group, until somebody cancels that; one that is
// through by then needs no cancelling.
func refresh(s *soak, dice *rand.Rand) (effect, error) {
	group, _ := one(dice, []string{web, spot, warm})
	if g, err := s.w.AWS.Group(group); err != nil || len(g.Refreshes) > 0 && g.Refreshes[0].Active() {
		return effect{}, err
	}
	_, err := s.w.AWS.StartRefresh(group, fakeaws.RefreshPreferences{})
	return effect{
		what:  "the instances of " + group + " are refreshed",
		lasts: between(dice, 20*time.Second, 60*time.Second),
		end: func() error {
			if g, err := s.w.AWS.Group(group); err != nil || !g.Refreshes[0].Active() {
				return err
			}
			_, err := s.w.AWS.CancelRefresh(group)
			return err
		},
	}, err
}

func awsFault(s *soak, dice *rand.Rand) (effect, error) {
	operation, _ := one(dice, []string{
		"CompleteLifecycleAction", "RecordLifecycleActionHeartbeat", "TerminateInstanceInAutoScalingGroup", "SetDesiredCapacity", "LaunchInstances", "DescribeAutoScalingGroups", "",
	})
	f := fakeaws.Fault{Service: "autoscaling", Operation: operation, Count: 1 + dice.IntN(5)}
	switch dice.IntN(4) {
	case 0:
		f.Latency = fakeaws.Seconds(5)
	case 1:
		f.LoseReply = true
	default:
		f.Code, _ = one(dice, []string{"Throttling", "ResourceContention", "InternalFailure", "ServiceUnavailable"})
	}
	id, over := s.w.AWS.Inject(f), s.hamper()
	return effect{
		what:     fmt.Sprintf("%d calls of %q fail: %s latency %s lost %v", f.Count, operation, f.Code, time.Duration(f.Latency), f.LoseReply),
		lasts:    between(dice, 5*time.Second, 20*time.Second),
		end:      func() error { s.w.AWS.RemoveFault(id); over(); return nil },
		obstacle: true,
	}, nil
}

// staleReads lets what AWS describes be old.
func staleReads(s *soak, dice *rand.Rand) (effect, error) {
	id, over := s.w.AWS.Inject(fakeaws.Fault{Stale: fakeaws.Seconds(10), Seed: dice.Uint64()}), s.hamper()
	return effect{
		what:     "what AWS describes is up to ten seconds old",
		lasts:    between(dice, 20*time.Second, 60*time.Second),
		end:      func() error { s.w.AWS.RemoveFault(id); over(); return nil },
		obstacle: true,
	}, nil
}

func shortage(s *soak, dice *rand.Rand) (effect, error) {
	group, _ := one(dice, mortal)
	return effect{
		what:     "there is no capacity for " + group,
		lasts:    between(dice, 5*time.Second, 20*time.Second),
		end:      func() error { return s.w.AWS.SetShortages() },
		obstacle: true,
	}, s.w.AWS.SetShortages(fakeaws.Shortage{Group: group})
}

func imdsAway(s *soak, dice *rand.Rand) (effect, error) {
	i, ok := one(dice, s.serving(append(mortal, steady)...))
	if !ok {
		return effect{}, nil
	}
	mode, _ := one(dice, []fakeaws.IMDSMode{fakeaws.IMDSOff, fakeaws.IMDSHung, fakeaws.IMDSRefused, fakeaws.IMDSFailing})
	return effect{
		what:     fmt.Sprintf("the metadata of %s are %s", named(i), mode),
		lasts:    between(dice, 5*time.Second, 40*time.Second),
		end:      func() error { return s.unlessGone(i, s.w.AWS.SetIMDSMode(i.ID, fakeaws.IMDSOn)) },
		obstacle: true,
	}, s.w.AWS.SetIMDSMode(i.ID, mode)
}

func forgetTokens(s *soak, dice *rand.Rand) (effect, error) {
	i, ok := one(dice, s.serving(append(mortal, steady)...))
	if !ok {
		return effect{}, nil
	}
	return effect{what: "the metadata of " + named(i) + " know no token any more"}, s.w.AWS.ForgetIMDSTokens(i.ID)
}

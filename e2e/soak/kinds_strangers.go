package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/e2e/fakeaws"
)

// foreignCluster brings the group of another cluster, which has our tags; if it is there
// already, that cluster ends one of its machines.
func foreignCluster(s *soak, dice *rand.Rand) (effect, error) {
	g, err := s.w.AWS.Group(foreign)
	if i, ok := one(dice, s.serving(foreign)); ok {
		return effect{what: "the other cluster ends " + named(i)}, s.w.AWS.Terminate(i.ID, false)
	}
	if err == nil && g.Desired > 0 {
		return effect{}, nil // it comes
	}
	s.w.JoinElsewhere(foreign, true)
	come := func() error { return s.w.AWS.AddGroup(foreignGroup()) }
	if err == nil {
		come = func() error { return s.resizeForeign(foreignSize) }
	}
	return effect{
		what:  fmt.Sprintf("another cluster has a group of %d with our tags", foreignSize),
		lasts: between(dice, 90*time.Second, 150*time.Second),
		end:   func() error { return s.resizeForeign(0) },
	}, come()
}

func (s *soak) resizeForeign(size int) error {
	return errors.Join(s.w.AWS.Resize(foreign, size, foreignSize+2), s.w.AWS.SetDesired(foreign, size))
}

// foreignInstance has a machine of one of our groups serve another cluster: a person
// started it there.
func foreignInstance(s *soak, dice *rand.Rand) (effect, error) {
	group, _ := one(dice, []string{web, plain, shared})
	if g, err := s.w.AWS.Group(group); err != nil || g.Desired >= g.Max {
		return effect{}, err
	}
	lasts := between(dice, provision+10*time.Second, provision+50*time.Second)
	s.w.JoinElsewhere(group, true)
	return effect{
		what:  "a machine of " + group + " starts for another cluster",
		lasts: between(dice, 4*time.Second, 8*time.Second),
		end: func() error {
			s.w.JoinElsewhere(group, false)
			s.later(effect{what: "its machines of " + group + " end", lasts: lasts, end: func() error { return s.endElsewhere(group) }})
			return nil
		},
	}, s.scaleOut(group)
}

// endElsewhere ends a group's machines that serve another cluster.
func (s *soak) endElsewhere(group string) error {
	var errs []error
	for _, i := range s.serving(group) {
		if s.w.Elsewhere(i.ID) {
			errs = append(errs, s.unlessGone(i, s.w.AWS.Terminate(i.ID, s.aboveMin(group))))
		}
	}
	return errors.Join(errs...)
}

// noProvider has the Nodes of one machine, or of a whole group, register again without a
// provider id, as those of clusters without a cloud provider are, for a while or until
// all is put right.
func noProvider(s *soak, dice *rand.Rand) (effect, error) {
	group, _ := one(dice, []string{web, spot, plain, shared})
	all := s.serving(group)
	if i, ok := one(dice, all); ok && dice.IntN(3) > 0 {
		all = []fakeaws.Instance{i}
	}
	var hidden []fakeaws.Instance
	for _, i := range all {
		switch n, err := s.node(i.PrivateDNSName); {
		case apierrors.IsNotFound(err) || err == nil && n.Spec.ProviderID == "":
			continue
		case err != nil:
			return effect{}, err
		}
		if err := s.w.Client.CoreV1().Nodes().Delete(s.ctx, i.PrivateDNSName, metav1.DeleteOptions{}); err != nil {
			return effect{}, err
		}
		hidden = append(hidden, i)
		if err := s.w.Register(s.ctx, i, true); err != nil {
			return effect{}, err
		}
	}
	if len(hidden) == 0 {
		return effect{}, nil
	}
	lasts := between(dice, 5*time.Second, 30*time.Second)
	if dice.IntN(2) == 0 {
		lasts = between(dice, provision+20*time.Second, 10*time.Minute)
	}
	return effect{
		what:  "no provider id on the Nodes of " + inOneLine(hidden),
		lasts: lasts,
		end: func() error {
			var errs []error
			for _, i := range hidden {
				errs = append(errs, s.unlessGone(i, s.identify(i)))
			}
			return errors.Join(errs...)
		},
	}, nil
}

// identify gives an instance's Node its provider id, if there is one.
func (s *soak) identify(i fakeaws.Instance) error {
	begun := time.Now()
	switch err := s.w.Identify(s.ctx, i); {
	case err == nil:
		s.watch.identified(i.ID, begun)
	case !apierrors.IsNotFound(err):
		return err
	}
	return nil
}

// reunite has every machine that serves, and has no Node, register one: people who read
// that machines are not recognised start their kubelets again.
func (s *soak) reunite() error {
	nodes, err := s.nodes()
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, n := range nodes {
		there[n.Name] = true
	}
	var errs []error
	for _, i := range s.serving(append(mortal, steady)...) {
		if !there[i.PrivateDNSName] {
			errs = append(errs, s.w.Register(s.ctx, i, false))
		}
	}
	return errors.Join(errs...)
}

// massNotices announces the end of many machines, days ahead.
func massNotices(s *soak, dice *rand.Rand) (effect, error) {
	all := s.serving(mortal...)
	if group, _ := one(dice, mortal); dice.IntN(2) == 0 {
		all = s.serving(group)
	}
	if len(all) < 2 {
		return effect{}, nil
	}
	before := time.Now().Add(48 * time.Hour)
	events := map[string]string{}
	for _, i := range all {
		event, err := s.w.AWS.Maintenance(i.ID, fakeaws.MaintenanceEvent{Code: "instance-retirement", NotBefore: before, NotAfter: before.Add(2 * time.Hour)})
		if s.unlessGone(i, err) != nil {
			return effect{}, err
		}
		events[i.ID] = event
		s.book.retire(i.ID)
	}
	return effect{
		what:  "retirement in two days is announced for " + inOneLine(all),
		lasts: between(dice, 2*permitWait, 5*permitWait),
		end: func() error {
			var errs []error
			for _, i := range all {
				if events[i.ID] == "" {
					continue
				}
				if err := s.unlessGone(i, s.w.AWS.EndMaintenance(i.ID, events[i.ID], "canceled")); err != nil {
					errs = append(errs, err) // such as while it reboots
					continue
				}
				delete(events, i.ID)
			}
			return errors.Join(errs...)
		},
	}, nil
}

// massRebalance recommends to leave every spot instance, and interrupts them later.
func massRebalance(s *soak, dice *rand.Rand) (effect, error) {
	all := s.serving(spot)
	if len(all) < 2 {
		return effect{}, nil
	}
	for _, i := range all {
		if err := s.unlessGone(i, s.w.AWS.Rebalance(i.ID)); err != nil {
			return effect{}, err
		}
	}
	return effect{
		what:  "all spot instances are at a higher risk: " + inOneLine(all),
		lasts: between(dice, permitWait, 4*permitWait),
		end: func() error {
			var errs []error
			for _, i := range all {
				errs = append(errs, s.unlessGone(i, s.w.AWS.SpotNotice(i.ID, 0)))
			}
			return errors.Join(errs...)
		},
	}, nil
}

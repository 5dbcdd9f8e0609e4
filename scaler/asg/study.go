package asg

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"golang.org/x/sync/errgroup"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/asg/template"
)

// studyAtOnce is how many groups are asked about at the same time.
const studyAtOnce = 4

// study asks what must be asked anew, of each group by itself.
func (r *Reader) study(ctx context.Context, now time.Time) {
	recheck := r.rechecked()
	for name, k := range r.known {
		k.settle(now, r.account.told.recent(name, now))
		if recheck[name] {
			k.forgetFacts()
		}
		k.noticePool(now) // before anything is asked: it sets the pace of all of it
		r.books.LearnZones(k.raw.Instances)
	}
	var asking errgroup.Group
	asking.SetLimit(studyAtOnce)
	for _, k := range r.known {
		asking.Go(func() error {
			r.readTemplate(ctx, k, now)
			r.studyFacts(ctx, k, now)
			return nil
		})
	}
	r.askActivities(ctx, &asking, r.curious(now), now)
	_ = asking.Wait() // none returns an error: they are faults of their group
}

// askActivities asks for the activities of each group that is due, or for those of
// all at once. Where that has failed it asks for as many as there is time for, and for
// others the next time.
func (r *Reader) askActivities(ctx context.Context, asking *errgroup.Group, due []*known, now time.Time) {
	apart := now.Before(r.apartUntil)
	if apart {
		slices.SortStableFunc(due, func(a, b *known) int { return a.activitiesAt.Compare(b.activitiesAt) })
		due = due[:min(len(due), activitiesApart)]
	}
	if len(due) > activitiesAtOnce && !apart {
		asking.Go(func() error {
			r.studyAllActivities(ctx, due, now)
			return nil
		})
		return
	}
	for _, k := range due {
		asking.Go(func() error {
			r.studyActivities(ctx, k, now)
			return nil
		})
	}
}

// curious are the groups whose activities to read now, in the order of names.
func (r *Reader) curious(now time.Time) []*known {
	var due []*known
	for _, name := range slices.Sorted(maps.Keys(r.known)) {
		if k := r.known[name]; k.curious(now) {
			due = append(due, k)
		}
	}
	return due
}

// settle notes what moves since when, and which instances terminate. ours are our own changes of late:
// what they have begun is known, and what nobody of us has begun deserves quick readings.
func (k *known) settle(now time.Time, ours []change) {
	move := func(begunByUs bool) {
		if k.moving = now; !begunByUs {
			k.surprised = now
		}
	}
	if desired := int(aws.ToInt32(k.raw.DesiredCapacity)); desired != k.desired {
		k.desired = desired
		move(len(ours) > 0)
	}
	if !unsettled(k.raw) {
		k.moving = time.Time{}
	} else if k.moving.IsZero() {
		move(len(ours) > 0)
	}
	leaving, pending := map[string]time.Time{}, map[string]string{}
	for _, i := range k.raw.Instances {
		instance := newInstance(i)
		if strings.HasPrefix(instance.State, fleet.Pending) {
			pending[instance.ID] = instance.State
		}
		if instance.State == fleet.PendingWait && k.pending[instance.ID] != fleet.PendingWait {
			k.hooking.forget() // it may wait for a hook that is not known
		}
		if instance.ReplacesRootVolume() && k.refresh == nil && !now.Before(k.refreshAt) {
			k.refreshing.forget() // only a refresh does that, and nothing else tells of it
		}
		if !instance.Terminating() || instance.Retained() {
			continue
		}
		since, seen := k.leaving[instance.ID]
		if !seen {
			since = now
			move(slices.ContainsFunc(ours, func(c change) bool { return c.ended == instance.ID }))
			k.hooking.forget()
			k.refreshing.forget() // it may be why
			k.activitiesAt = now
		}
		leaving[instance.ID] = since
	}
	for id := range k.pending {
		if !slices.ContainsFunc(k.raw.Instances, func(i astypes.Instance) bool { return aws.ToString(i.InstanceId) == id }) {
			k.thrownAway, k.activitiesAt = true, now
		}
	}
	k.leaving, k.pending = leaving, pending
	maps.DeleteFunc(k.exact, func(id string, _ bool) bool { _, ok := leaving[id]; return !ok })
	k.failures = slices.DeleteFunc(slices.Clone(k.failures), func(f fleet.Failure) bool { return now.Sub(f.At) > failureKept })
	k.forgetReplacement(now)
}

// curious reports whether the group's activities would show something: why an instance does
// not come or is thrown away before it served, why there is one too many, since when one terminates,
// or whether one is still being replaced.
func (k *known) curious(now time.Time) bool {
	return (missing(k.raw) != 0 || k.thrownAway || len(k.exact) < len(k.leaving) || k.replaced()) && !now.Before(k.activitiesAt)
}

func (r *Reader) readTemplate(ctx context.Context, k *known, now time.Time) {
	d := definition(k.raw)
	changed := d != k.drawn
	if !changed && now.Before(k.redrawAt) {
		return
	}
	if changed {
		k.forgetFacts()
	}
	if len(k.hooks) == 0 {
		k.hooking.forget() // people put one on a group that is there, and its description does not change
	}
	b, err := r.books.Blueprint(ctx, k.raw, changed)
	if err != nil && !changed && k.blueprint.Known() && passing(err) {
		k.redrawAt = now.Add(retryFault) // keep the old one, which is most likely right
		return
	}
	k.blueprint, k.drawn, k.redrawAt = b, d, now.Add(template.RedrawEvery)
	if err != nil {
		k.redrawAt = now.Add(retryFault)
	}
}

// passing reports whether a failure is AWS's and not the group's.
func passing(err error) bool {
	return errors.Is(err, ErrThrottled) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrCredentials)
}

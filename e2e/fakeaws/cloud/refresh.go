package cloud

import (
	"cmp"
	"slices"
	"time"
)

// RefreshPreferences say how an instance refresh goes about it.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_RefreshPreferences.html
type RefreshPreferences struct {
	// MinHealthyPercentage of the desired capacity stays in service, 90 if nil; at least one instance is replaced at a time all the same.
	MinHealthyPercentage *int `json:"minHealthyPercentage,omitempty"`
	// Protected is what happens to instances protected from scale in: Refresh, Ignore or Wait (also if empty: an hour, then the refresh fails).
	Protected    string `json:"protected,omitempty"`
	SkipMatching bool   `json:"skipMatching,omitempty"` // leave those that have the wanted template version already
}

// Refresh is an instance refresh.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstanceRefresh.html
type Refresh struct {
	ID          string             `json:"id"`
	Status      string             `json:"status"` // Pending, InProgress, Successful, Failed, Cancelling, Cancelled, …
	Reason      string             `json:"reason,omitempty"`
	Start       time.Time          `json:"start"`
	End         time.Time          `json:"end,omitzero"`
	Total       int                `json:"total"`
	Left        int                `json:"left"`
	Preferences RefreshPreferences `json:"preferences"`
}

// Percent of the instances that have been replaced.
func (r Refresh) Percent() int {
	if r.Total == 0 {
		return 100
	}
	return 100 * (r.Total - r.Left) / r.Total
}

// Active tells a refresh that is under way.
func (r Refresh) Active() bool { return r.End.IsZero() }

const (
	refreshInProgress   = "InProgress"
	refreshSuccessful   = "Successful"
	refreshFailed       = "Failed"
	refreshCancelled    = "Cancelled"
	protectedPatience   = time.Hour
	defaultMinHealthy   = 90
	ignoreProtected     = "Ignore"
	replaceProtected    = "Refresh"
	waitForUnprotection = "Wait"
)

type refresh struct {
	Refresh
	todo    []*instance // still to be replaced
	leaving []*instance // being replaced
}

// StartRefresh begins an instance refresh and answers its id.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_StartInstanceRefresh.html
func (c *Cloud) StartRefresh(name string, p RefreshPreferences, now time.Time) (string, error) {
	c.Advance(now)
	g := c.findGroup(name)
	if g == nil {
		return "", noGroup(name)
	}
	if r := g.activeRefresh(); r != nil {
		return "", Errorf(400, "InstanceRefreshInProgress", "An Instance Refresh is already in progress and blocks the execution of this Instance Refresh.")
	}
	if g.isSuspended("InstanceRefresh") {
		return "", invalid("Cannot start an instance refresh while the InstanceRefresh process is suspended")
	}
	p.Protected = cmp.Or(p.Protected, waitForUnprotection)
	r := &refresh{Refresh: Refresh{ID: c.uuid(), Status: refreshInProgress, Start: c.now, Preferences: p}}
	src, err := c.sourceOf(g.spec)
	if err != nil {
		return "", err
	}
	for _, i := range g.counting() {
		matches := i.LaunchTemplate == src.offers[0].template && i.LaunchTemplateVersion == src.offers[0].version
		if i.Protected && p.Protected == ignoreProtected || p.SkipMatching && matches {
			continue
		}
		r.todo = append(r.todo, i)
	}
	r.Total, r.Left = len(r.todo), len(r.todo)
	g.refreshes = append(g.refreshes, r)
	c.reconcile(g)
	return r.ID, nil
}

// CancelRefresh ends the refresh under way; instances already leaving go on leaving.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_CancelInstanceRefresh.html
func (c *Cloud) CancelRefresh(name string, now time.Time) (string, error) {
	c.Advance(now)
	g := c.findGroup(name)
	if g == nil {
		return "", noGroup(name)
	}
	r := g.activeRefresh()
	if r == nil {
		return "", Errorf(400, "ActiveInstanceRefreshNotFound", "No in progress or pending Instance Refresh found for Auto Scaling group %s", name)
	}
	c.endRefresh(r, refreshCancelled, "Cancelled due to user request.")
	return r.ID, nil
}

func (g *group) activeRefresh() *refresh {
	if len(g.refreshes) == 0 || !g.refreshes[len(g.refreshes)-1].Active() {
		return nil
	}
	return g.refreshes[len(g.refreshes)-1]
}

func (c *Cloud) endRefresh(r *refresh, status, reason string) {
	r.End, r.Status, r.Reason = c.now, status, reason
}

// stepRefresh replaces as many as may be missing at this moment.
func (c *Cloud) stepRefresh(g *group) {
	r := g.activeRefresh()
	if r == nil {
		return
	}
	gone := func(i *instance) bool { return !i.LifecycleState.Counts() || i.Group == "" }
	r.todo = slices.DeleteFunc(r.todo, gone)
	r.leaving = slices.DeleteFunc(r.leaving, func(i *instance) bool { return i.Gone })
	serving := g.serving()
	r.Left = len(r.todo) + max(0, g.desired-serving)
	if len(r.todo) == 0 && len(r.leaving) == 0 && serving >= g.desired {
		r.Left = 0
		c.endRefresh(r, refreshSuccessful, "")
		return
	}
	if c.now.After(r.Start.Add(protectedPatience)) && r.onlyProtected() {
		c.endRefresh(r, refreshFailed, "The instance refresh failed: instances stayed protected from scale in for an hour.")
		return
	}
	for _, i := range r.next(serving - r.mustServe(g.desired)) {
		r.leaving = append(r.leaving, i)
		r.todo = slices.DeleteFunc(r.todo, func(o *instance) bool { return o == i })
		c.leave(g, i, c.sentence("an instance was taken out of service in response to an instance refresh"), false)
	}
	if len(r.todo) > 0 && r.onlyProtected() {
		c.after(protectedPatience+time.Second-c.now.Sub(r.Start), func() { c.reconcile(g) })
	}
}

// serving is how many of the group are in service.
func (g *group) serving() int {
	n := 0
	for _, i := range g.counting() {
		if i.LifecycleState == InService {
			n += i.weight()
		}
	}
	return n
}

func (r *refresh) mustServe(desired int) int {
	percent := defaultMinHealthy
	if r.Preferences.MinHealthyPercentage != nil {
		percent = *r.Preferences.MinHealthyPercentage
	}
	return (desired*percent + 99) / 100
}

// next are those to be replaced now: as many as may be missing, and one at least when none is under way.
func (r *refresh) next(spare int) []*instance {
	if len(r.leaving) == 0 && spare < 1 {
		spare = 1
	}
	var list []*instance
	for _, i := range r.todo {
		if len(list) < spare && r.mayReplace(i) {
			list = append(list, i)
		}
	}
	return list
}

func (r *refresh) mayReplace(i *instance) bool {
	return i.LifecycleState == InService && (!i.Protected || r.Preferences.Protected == replaceProtected)
}

func (r *refresh) onlyProtected() bool {
	return len(r.leaving) == 0 && len(r.todo) > 0 && !slices.ContainsFunc(r.todo, r.mayReplace)
}

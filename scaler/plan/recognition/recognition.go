package recognition

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/outcome"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Recognition knows which instances are this cluster's.
type Recognition struct {
	*cluster.Cluster
	*outcome.Outcome

	// Overdue are the live instances without a Node whose time to register is over.
	Overdue map[string]overdue
	// Brake is why none of those is ended that was not asked for; empty where one may be.
	Brake verdict.Details
	// unrecognised counts these, by group.
	unrecognised map[*cluster.Group]int
}

// New finds the groups and instances that are this cluster's.
func New(c *cluster.Cluster, out *outcome.Outcome) *Recognition {
	d := &Recognition{Cluster: c, Outcome: out, Overdue: map[string]overdue{}, unrecognised: map[*cluster.Group]int{}}
	d.recognise()
	d.recogniseLeaving()
	return d
}

// An instance is one of this cluster if a Node names it by its providerID. One that no Node names
// may be broken, and may as well be a busy machine of others: of another cluster that bears the
// same tags, or of this one where nothing sets the providerID. Nothing that AWS reports
// distinguishes these. So what we asked for and what never came is ended as its group's back-off
// has it; of all else only little is ended at a time, none where there is much of it, and none of a
// group that never had a Node here.

const (
	// UnrecognisedWindow is the time over which ends of instances that we did not ask for
	// are counted together, and unrecognisedShare the part of a group that may be ended in
	// it; one in any case.
	UnrecognisedWindow = 10 * time.Minute
	unrecognisedShare  = 10
	// failedAfter is how long an instance that its provider cannot create is seen before it is
	// given up: whose it is has been written down by then.
	failedAfter = 2 * time.Second
)

// overdue is an instance whose time to register is over.
type overdue struct {
	Due time.Time
	// Launched: it came after we had asked for it, and AskedAt when that was.
	Launched bool
	AskedAt  time.Time
}

// recognise finds the groups that are this cluster's, and the instances that should long
// have become Nodes.
func (d *Recognition) recognise() {
	memory := &d.State.Recognition
	launched, graced, groups := map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}
	live, strangers := 0, 0
	var first time.Time    // when the time of the first stranger was over
	var coming []time.Time // since when those are there that were not asked for either and still have time
	for _, g := range d.Groups {
		since, known := memory.Groups[g.Name]
		if !known {
			since = d.Now
		}
		if known || len(g.Nodes) > 0 {
			groups[g.Name], g.Recognised = since, true
		}
		live += len(g.Live)
		serves := false // one is in service, for however long, that we did not ask for
		for _, i := range g.Nodeless {
			at, ours := d.cameOfAsking(g, i)
			if ours {
				launched[i.ID] = at
			}
			if i.State == fleet.PendingWait {
				continue // its time has not begun
			}
			serves = serves || !ours && i.State == fleet.InService
			since, _ := d.LaunchedAt(i)
			if until, graces := d.grace(i, since); graces {
				graced[i.ID] = until
			}
			over := d.After(since, g.ProvisionTime(d.Policy))
			due := cluster.Later(over, graced[i.ID])
			if i.Failed != "" { // its provider says that it never comes
				due = cluster.Later(i.FailedSince, d.After(since, failedAfter))
				d.Clock.At(due)
			}
			if d.Now.Before(due) {
				if !ours {
					coming = append(coming, since)
				}
				continue // launch.Launches.endUnjoined asks for that moment
			}
			d.Overdue[i.ID] = overdue{due, ours, at}
			if !ours {
				d.unrecognised[g]++
				if first.IsZero() || over.Before(first) {
					first = over
				}
			}
		}
		g.Foreign = !g.Recognised && serves && d.unrecognised[g] > 0
		strangers += d.unrecognised[g]
	}
	memory.Groups, memory.Launched, memory.Graced = groups, launched, graced
	d.forgetAsked()
	d.forgetEnded()
	d.brake(live, strangers, first, coming)
}

// brake is on where more than a share of the live instances are strangers. Many that come at one moment are not
// seen at one moment: so that the first whose time is over is not judged alone, those count as well
// that had come by then. These are Nodes or strangers a provision time later, so that others
// which come again and again hold no brake.
func (d *Recognition) brake(live, strangers int, first time.Time, coming []time.Time) {
	most := d.Policy.MaxUnrecognisedPercent * float64(live)
	together := strangers
	for _, since := range coming {
		if !since.After(first) {
			together++
		}
	}
	share := verdict.Most(fmt.Sprintf("%v%%", d.Policy.MaxUnrecognisedPercent))
	switch {
	case strangers == 0:
	case float64(strangers)*100 > most:
		d.Brake = verdict.Say("{count} of {all} instances of all groups are not Nodes of this cluster, which is more than {most}, so none of these is terminated: {why}",
			verdict.Count(strangers), verdict.All(live), share, verdict.Why(d.suspicion()))
	case float64(together)*100 > most:
		d.Brake = verdict.Say("{count} of {all} instances of all groups {count:has|have} not registered in time, and {more} more that Windlass did not ask for may still: together more than {most}, so none is terminated before these have",
			verdict.Count(strangers), verdict.All(live), verdict.More(together-strangers), share)
	}
}

// nodesOf are the instances of a group that a Node names.
func nodesOf(g *cluster.Group) map[string]bool {
	joined := make(map[string]bool, len(g.Nodes))
	for _, n := range g.Nodes {
		joined[n.InstanceID()] = true
	}
	return joined
}

// cameOfAsking says that an instance without a Node came after we had asked for it, and when
// that was. As many count as that as we asked for, and no more.
func (d *Recognition) cameOfAsking(g *cluster.Group, i *fleet.Instance) (at time.Time, so bool) {
	if at, known := d.Given.Recognition.Launched[i.ID]; known {
		return at, true
	}
	if since, known := d.Given.Unjoined[i.ID]; known && !since.IsZero() || !known && i.State == fleet.InService {
		return time.Time{}, false // it has been there for longer
	}
	asked := d.State.Recognition.Asked[g.Name]
	if asked.Count == 0 || !d.Now.Before(d.askedUntil(g, asked)) {
		return time.Time{}, false
	}
	asked.Count--
	d.State.Recognition.Asked[g.Name] = asked
	return asked.At, true
}

// AskFor notes that a group was asked for more instances.
func (d *Recognition) AskFor(g *cluster.Group, n int) {
	asked := d.State.Recognition.Asked[g.Name]
	if !d.Now.Before(d.askedUntil(g, asked)) {
		asked.Count = 0
	}
	d.State.Recognition.Asked[g.Name] = fleet.Asked{At: d.Now, Count: asked.Count + n}
}

// askedUntil is until when an instance that is seen for the first time counts as one that
// was asked for.
func (d *Recognition) askedUntil(g *cluster.Group, a fleet.Asked) time.Time {
	return d.After(a.At, g.ProvisionTime(d.Policy))
}

func (d *Recognition) forgetAsked() {
	maps.DeleteFunc(d.State.Recognition.Asked, func(name string, a fleet.Asked) bool {
		g := d.GroupOf(name)
		return a.Count == 0 || g == nil || !d.Now.Before(d.askedUntil(g, a))
	})
}

// forgetEnded forgets instances that have joined after all, and those that are terminated, once
// their ends do not count any more: also the end of one that joined meanwhile was one.
func (d *Recognition) forgetEnded() {
	if len(d.State.Recognition.Ended) == 0 {
		return
	}
	there, joined := map[string]bool{}, map[string]bool{}
	for _, g := range d.Groups {
		maps.Copy(joined, nodesOf(g))
		for _, i := range g.Instances {
			there[i.ID] = true
		}
	}
	maps.DeleteFunc(d.State.Recognition.Ended, func(id string, e fleet.Ended) bool {
		return (joined[id] || !there[id]) && !d.Now.Before(e.At.Add(UnrecognisedWindow))
	})
}

// grace is until when a leader that has not seen an instance come does not end it. What was before
// its time it does not know: an outage, or a clock that was wrong. Each instance gets that once, so
// that leaders that follow each other quickly end what never joins.
func (d *Recognition) grace(i *fleet.Instance, since time.Time) (until time.Time, graces bool) {
	if until, known := d.Given.Recognition.Graced[i.ID]; known {
		return until, true
	}
	if d.Leads.IsZero() || !since.Before(d.Leads) {
		return time.Time{}, false
	}
	return d.Leads.Add(cluster.SettlesIn), true
}

// whyForeign says what is wrong with a foreign group, for people.
func (d *Recognition) whyForeign(g *cluster.Group) verdict.Details {
	return verdict.Say("{count} {count:instance has|instances have} not registered within {within}, and no instance of the group ever was a Node of this cluster, so none is terminated and none of their hooks is completed: {why}",
		verdict.Count(d.unrecognised[g]), verdict.Within(g.ProvisionTime(d.Policy)), verdict.Why(d.suspicion()))
}

// suspicion is what is probably wrong where instances serve that are no Nodes.
func (d *Recognition) suspicion() verdict.Details {
	if n := d.Nameless(); n != "" {
		if slices.ContainsFunc(d.Groups, func(g *cluster.Group) bool { return g.External }) {
			return verdict.Say("Nodes such as {node} have no providerID by which their provider knows them, which the kubelet or a cloud controller manager must set", verdict.Node(n))
		}
		return verdict.Say("Nodes such as {node} have no providerID of an EC2 instance, which the kubelet or a cloud controller manager must set to aws:///ZONE/INSTANCE", verdict.Node(n))
	}
	return verdict.Say("another cluster may have the same tags, or the tags name another cluster; else terminate these instances")
}

// UnrecognisedAllowed says whether one more instance of a group may be ended now that we did
// not ask for, and else asks for the moment at which one may.
func (d *Recognition) UnrecognisedAllowed(g *cluster.Group, id string) bool {
	if g.Foreign || d.Brake != nil {
		return false
	}
	ends := make([]time.Time, 0, len(d.State.Recognition.Ended))
	for other, e := range d.State.Recognition.Ended {
		until := e.At.Add(UnrecognisedWindow)
		if other == id && d.Now.Before(until) {
			return true // it was ended before, and still shows
		}
		if e.Group == g.Name && !e.Launched && d.Now.Before(until) {
			ends = append(ends, until)
		}
	}
	if len(ends) < max(1, len(g.Live)/unrecognisedShare) {
		return true
	}
	d.Clock.At(slices.MinFunc(ends, time.Time.Compare))
	return false
}

// AwaitsReplacement reports whether what was asked for in the place of an instance that was
// ended, or for another reason, is not there yet and may come.
func (d *Recognition) AwaitsReplacement(g *cluster.Group) bool {
	if asked, owed := d.State.Recognition.Asked[g.Name]; owed {
		d.Clock.At(d.askedUntil(g, asked))
		return true
	}
	return slices.ContainsFunc(g.Live, func(i *fleet.Instance) bool {
		_, launched := d.State.Recognition.Launched[i.ID]
		_, over := d.Overdue[i.ID]
		return launched && !over
	})
}

// recogniseLeaving notes whose Nodes are seen while they are terminated: their hooks need not wait
// once the Node is deleted.
func (d *Recognition) recogniseLeaving() {
	left := map[string]time.Time{}
	for _, g := range d.Groups {
		var joined map[string]bool
		for j := range g.Instances {
			i := &g.Instances[j]
			if !i.Terminating() && !i.Warmed() {
				continue
			}
			if joined == nil {
				joined = nodesOf(g)
			}
			since, known := d.Given.Recognition.Left[i.ID]
			if !known && !joined[i.ID] {
				continue
			}
			if !known {
				since = d.Now
			}
			left[i.ID] = since
		}
	}
	d.State.Recognition.Left = left
}

// WasNode reports whether a terminating instance was a Node here.
func (d *Recognition) WasNode(i *fleet.Instance) bool {
	_, so := d.State.Recognition.Left[i.ID]
	return so
}

// EndedByUs reports whether an instance is terminated because no Node of it registered.
func (d *Recognition) EndedByUs(i *fleet.Instance) bool {
	_, so := d.State.Recognition.Ended[i.ID]
	return so
}

// Unrecognised are the notes of a group's verdict about its instances that are no Nodes.
func (d *Recognition) Unrecognised(g *cluster.Group) (verdict.Reason, verdict.Details) {
	switch {
	case d.unrecognised[g] == 0:
		return "", nil
	case g.Foreign:
		return verdict.GroupForeign, d.whyForeign(g)
	case d.Brake != nil:
		return verdict.GroupUnrecognised, d.Brake
	}
	return "", nil
}

// UnrecognisedByGroup counts them.
func (d *Recognition) UnrecognisedByGroup() map[string]int {
	counts := map[string]int{}
	for _, g := range d.Groups {
		if d.unrecognised[g] > 0 {
			counts[g.Name] = d.unrecognised[g]
		}
	}
	return counts
}

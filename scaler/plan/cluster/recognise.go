package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// An instance is one of this cluster if a Node names it by its providerID. One that
// no Node names may be broken, and may as well be somebody's busy machine: of another
// cluster that bears the same tags, or of this one where nothing sets the providerID.
// Nothing that AWS says tells these apart. So what we asked for and what never came is
// ended as its group's back-off has it; of all else only little is ended at a time,
// none where there is much of it, and none of a group that never had a Node here.

const (
	// StrangersWindow is the time over which ends of instances that we did not ask for
	// are counted together, and strangersShare the part of a group that may be ended in
	// it; one in any case.
	StrangersWindow = 10 * time.Minute
	strangersShare  = 10
	// settlesIn is how long after the end of an outage, or after another leader took over,
	// an instance that has no Node may still get one.
	settlesIn = 2 * time.Minute
)

// overdue is an instance whose time to register is over.
type overdue struct {
	Due time.Time
	// Launched says that it came after we had asked for it, and askedAt when that was.
	Launched bool
	askedAt  time.Time
}

// Recognise finds the groups that are this cluster's, and the instances that should long
// have become Nodes.
func (d *Cluster) Recognise() {
	memory := &d.State.Recognition
	d.Overdue = map[string]overdue{}
	launched, graced, groups := map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}
	live := 0
	for _, g := range d.Groups {
		since, known := memory.Groups[g.Name]
		if !known {
			since = d.Now
		}
		if known || len(g.Nodes) > 0 {
			groups[g.Name], g.Recognised = since, true
		}
		joined := g.joined()
		live += len(g.Live)
		for _, i := range g.Live {
			if joined[i.ID] {
				continue
			}
			at, ours := d.cameOfAsking(g, i)
			if ours {
				launched[i.ID] = at
			}
			if i.State == fleet.PendingWait {
				continue // its time has not begun
			}
			g.serves = g.serves || !ours && i.State == fleet.InService
			since, _ := d.LaunchedAt(i)
			if until, graces := d.grace(i, since); graces {
				graced[i.ID] = until
			}
			due := Later(d.After(since, d.Policy.MaxNodeProvisionTime), graced[i.ID])
			if d.Now.Before(due) {
				continue // endUnjoined asks for that moment
			}
			d.Overdue[i.ID] = overdue{due, ours, at}
			if !ours {
				g.strangers = append(g.strangers, i)
				d.strangers++
			}
		}
	}
	memory.Groups, memory.Launched, memory.Graced = groups, launched, graced
	d.forgetAsked()
	d.forgetEnded()
	if share := float64(d.strangers) * 100; share > d.Policy.MaxUnrecognisedPercent*float64(live) {
		d.Brake = fmt.Sprintf("%d of %d instances of all groups are not Nodes of this cluster, which is more than %v%%, so none of these is ended: %s",
			d.strangers, live, d.Policy.MaxUnrecognisedPercent, d.suspicion())
	}
}

// joined are the instances that a Node names.
func (g *Group) joined() map[string]bool {
	joined := make(map[string]bool, len(g.Nodes))
	for _, n := range g.Nodes {
		joined[n.InstanceID()] = true
	}
	return joined
}

// cameOfAsking says that an instance without a Node came after we had asked for it, and when
// that was. As many count as that as we asked for, and no more.
func (d *Cluster) cameOfAsking(g *Group, i *fleet.Instance) (at time.Time, so bool) {
	if at, known := d.Given.Recognition.Launched[i.ID]; known {
		return at, true
	}
	if since, known := d.Given.Unjoined[i.ID]; known && !since.IsZero() || !known && i.State == fleet.InService {
		return time.Time{}, false // it has been there for longer
	}
	asked := d.State.Recognition.Asked[g.Name]
	if asked.Count == 0 || !d.Now.Before(d.askedUntil(asked)) {
		return time.Time{}, false
	}
	asked.Count--
	d.State.Recognition.Asked[g.Name] = asked
	return asked.At, true
}

// AskFor notes that a group was asked for more instances.
func (d *Cluster) AskFor(g *Group, n int) {
	asked := d.State.Recognition.Asked[g.Name]
	if !d.Now.Before(d.askedUntil(asked)) {
		asked.Count = 0
	}
	d.State.Recognition.Asked[g.Name] = fleet.Asked{At: d.Now, Count: asked.Count + n}
}

// askedUntil is until when an instance that is seen for the first time counts as one that
// was asked for.
func (d *Cluster) askedUntil(a fleet.Asked) time.Time {
	return d.After(a.At, d.Policy.MaxNodeProvisionTime)
}

func (d *Cluster) forgetAsked() {
	maps.DeleteFunc(d.State.Recognition.Asked, func(name string, a fleet.Asked) bool {
		return a.Count == 0 || d.GroupOf(name) == nil || !d.Now.Before(d.askedUntil(a))
	})
}

// forgetEnded forgets instances that have joined after all, and those that are gone, once
// their ends do not count any more: also the end of one that joined meanwhile was one.
func (d *Cluster) forgetEnded() {
	there, joined := map[string]bool{}, map[string]bool{}
	for _, g := range d.Groups {
		maps.Copy(joined, g.joined())
		for _, i := range g.Instances {
			there[i.ID] = true
		}
	}
	maps.DeleteFunc(d.State.Recognition.Ended, func(id string, e fleet.Ended) bool {
		return (joined[id] || !there[id]) && !d.Now.Before(e.At.Add(StrangersWindow))
	})
}

// grace is until when a leader that has not seen an instance come leaves it in peace. What
// was before its time it does not know: an outage, or a clock that was wrong. Each
// instance gets that once, so that leaders that follow each other quickly end what never
// joins.
func (d *Cluster) grace(i *fleet.Instance, since time.Time) (until time.Time, graces bool) {
	if until, known := d.Given.Recognition.Graced[i.ID]; known {
		return until, true
	}
	if d.leads.IsZero() || !since.Before(d.leads) {
		return time.Time{}, false
	}
	return d.leads.Add(settlesIn), true
}

// After is when so much time is over from a moment on, outages of the API server left out:
// no Node registers, and none becomes Ready, while one lasts. An outage of which nobody
// knows when it began leaves nothing of the time before. Shortly after an outage nothing
// is over that was not before it.
func (d *Cluster) After(from time.Time, patience time.Duration) time.Time {
	due := from.Add(patience)
	for _, o := range d.outages {
		began := Later(o.From, from)
		if !o.Until.After(began) || !began.Before(due) {
			continue
		}
		due = Later(due.Add(o.Until.Sub(began)), o.Until.Add(min(settlesIn, patience)))
	}
	return due
}

func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Foreign says that instances of a group should long be Nodes, that none ever was one here,
// and that one without a Node is in service that did not come because we asked for it.
func (g *Group) Foreign() bool { return !g.Recognised && len(g.strangers) > 0 && g.serves }

// whyForeign says what is wrong with a foreign group, for people.
func (d *Cluster) whyForeign(g *Group) string {
	return fmt.Sprintf("%s for longer than %s and none of the group ever was a Node of this cluster, so none is ended and none of their hooks is completed: %s",
		serve(len(g.strangers)), d.Policy.MaxNodeProvisionTime, d.suspicion())
}

func serve(n int) string {
	if n == 1 {
		return "1 instance has been there"
	}
	return fmt.Sprintf("%d instances have been there", n)
}

// suspicion is what is probably wrong where instances serve that are no Nodes.
func (d *Cluster) suspicion() string {
	if n := d.nameless(); n != "" {
		return fmt.Sprintf("Nodes such as %s have no providerID of an EC2 instance, which the kubelet or a cloud controller manager must set to aws:///ZONE/INSTANCE", n)
	}
	return "another cluster may have the same tags, or the tags name another cluster; else terminate these instances"
}

// nameless is the first Node whose providerID does not say which machine it is; empty
// without one.
func (d *Cluster) nameless() string {
	if i := slices.IndexFunc(d.Nodes, (*Node).nameless); i >= 0 {
		return d.Nodes[i].Name
	}
	return ""
}

// namelessSchemes are those of providerIDs that name the Node and not its machine: those of
// the cloud controllers that k3s and RKE2 run by default.
// https://docs.k3s.io/networking/networking-services#deploying-an-external-cloud-controller-manager
var namelessSchemes = []string{"k3s://", "rke2://"}

// nameless says that the Node's machine may be any.
func (n *Node) nameless() bool {
	return n.ProviderID == "" || slices.ContainsFunc(namelessSchemes, func(s string) bool { return strings.HasPrefix(n.ProviderID, s) })
}

// Resembles names a Node that may be the instance although its providerID does not say so:
// one that names it in another way, or one that names no machine and is not known to be
// elsewhere. Such a Node never stands for the instance. It only keeps it from being ended.
func (d *Cluster) Resembles(i *fleet.Instance, o overdue) string {
	if d.weakly == nil {
		d.indexWeakly()
	}
	if name, so := d.weakly[i.ID]; so {
		return name
	}
	for _, n := range d.namelessNodes {
		if zone := n.Zone(); zone != "" && i.Zone != "" && zone != i.Zone {
			continue
		}
		if o.Launched && n.Created.Before(o.askedAt.Truncate(time.Second)) {
			continue // it was there before the instance was asked for
		}
		return n.Name
	}
	return ""
}

// Contested says which Node may be the machine of an instance beside the one that is known
// to be; n is nil without one. As long as that is so the instance is not ended, and nobody
// begins to drain it. People have to say which is right.
func (d *Cluster) Contested(i *fleet.Instance, n *Node) string {
	if n != nil && n.twin != nil {
		return fmt.Sprintf("Node %s has the same providerID; delete the one that is not there", n.twin.Name)
	}
	if i == nil {
		return ""
	}
	if d.weakly == nil {
		d.indexWeakly()
	}
	other, so := d.weakly[i.ID]
	if !so {
		return ""
	}
	return fmt.Sprintf("Node %s bears the instance id %s too, though not as providerID; correct that Node, or delete it", other, i.ID)
}

// indexWeakly finds the Nodes that may be machines of which their providerID does not tell.
// Where hundreds of instances never join, all of them are asked about thousands of Nodes.
func (d *Cluster) indexWeakly() {
	d.weakly = map[string]string{}
	for _, n := range d.Nodes {
		for id := range n.WeakIDs() {
			if _, known := d.weakly[id]; !known {
				d.weakly[strings.Clone(id)] = n.Name
			}
		}
		if n.nameless() {
			d.namelessNodes = append(d.namelessNodes, n)
		}
	}
}

// StrangersAllowed says whether one more instance of a group may be ended now that we did
// not ask for, and else asks for the moment at which one may.
func (d *Cluster) StrangersAllowed(g *Group, id string) bool {
	if g.Foreign() || d.Brake != "" {
		return false
	}
	ends := make([]time.Time, 0, len(d.State.Recognition.Ended))
	for other, e := range d.State.Recognition.Ended {
		until := e.At.Add(StrangersWindow)
		if other == id && d.Now.Before(until) {
			return true // it was ended before, and still shows
		}
		if e.Group == g.Name && !e.Launched && d.Now.Before(until) {
			ends = append(ends, until)
		}
	}
	if len(ends) < max(1, len(g.Live)/strangersShare) {
		return true
	}
	d.Clock.At(slices.MinFunc(ends, time.Time.Compare))
	return false
}

// AwaitsReplacement says that what was asked for in the place of an instance that was
// ended, or for another reason, is not there yet and may come.
func (d *Cluster) AwaitsReplacement(g *Group) bool {
	if asked, owed := d.State.Recognition.Asked[g.Name]; owed {
		d.Clock.At(d.askedUntil(asked))
		return true
	}
	return slices.ContainsFunc(g.Live, func(i *fleet.Instance) bool {
		_, launched := d.State.Recognition.Launched[i.ID]
		_, over := d.Overdue[i.ID]
		return launched && !over
	})
}

// RecogniseLeaving notes whose Nodes are seen while they leave: their hooks need not wait
// once the Node is gone.
func (d *Cluster) RecogniseLeaving() {
	left := map[string]time.Time{}
	for _, g := range d.Groups {
		joined := g.joined()
		for _, i := range g.Instances {
			since, known := d.Given.Recognition.Left[i.ID]
			if !i.Leaving() && !i.Warmed() || !known && !joined[i.ID] {
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

// WasNode says that an instance that leaves was a Node here.
func (d *Cluster) WasNode(i *fleet.Instance) bool {
	_, so := d.State.Recognition.Left[i.ID]
	return so
}

// EndedByUs says that an instance leaves because no Node of it registered.
func (d *Cluster) EndedByUs(i *fleet.Instance) bool {
	_, so := d.State.Recognition.Ended[i.ID]
	return so
}

func copyRecognition(r fleet.Recognition) fleet.Recognition {
	return fleet.Recognition{
		Groups: Copied(r.Groups), Asked: Copied(r.Asked), Launched: Copied(r.Launched), Ended: Copied(r.Ended), Left: Copied(r.Left), Graced: Copied(r.Graced),
	}
}

func compactRecognition(r fleet.Recognition) fleet.Recognition {
	return fleet.Recognition{
		Groups: filled(r.Groups), Asked: filled(r.Asked), Launched: filled(r.Launched), Ended: filled(r.Ended), Left: filled(r.Left), Graced: filled(r.Graced),
	}
}

// Unrecognised are the notes of a group's verdict about its instances that are no Nodes.
func (d *Cluster) Unrecognised(g *Group) (verdict.Reason, string) {
	switch {
	case len(g.strangers) == 0:
		return "", ""
	case g.Foreign():
		return verdict.GroupForeign, d.whyForeign(g)
	case d.Brake != "":
		return verdict.GroupUnrecognised, d.Brake
	}
	return "", ""
}

// StrangersByGroup counts them; nil without any.
func (d *Cluster) StrangersByGroup() map[string]int {
	counts := map[string]int{}
	for _, g := range d.Groups {
		if len(g.strangers) > 0 {
			counts[g.Name] = len(g.strangers)
		}
	}
	return filled(counts)
}

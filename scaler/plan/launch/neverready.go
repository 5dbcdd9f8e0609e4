package launch

import (
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// EndLost ends instances that should long have become nodes, and nodes that
// should long have been Ready. Others of their group would most likely fare no
// better: it shrinks by them where it may, and is backed off.
func (d *Launches) EndLost() {
	unjoined := map[string]time.Time{}
	d.WatchPools(unjoined)
	for _, g := range d.Groups {
		for _, i := range g.Live {
			since, known := d.LaunchedAt(i)
			n := d.NodeOf(g, i)
			switch {
			case n == nil && i.State == fleet.PendingWait:
				// A launch hook of others holds it, and ends by its own timeout: our clock starts
				// when it goes on.
			case n == nil:
				unjoined[i.ID] = since
				if d.deserted(g, i, known) {
					d.State.Deserted[i.ID] = since
				}
				d.endUnjoined(g, i, since)
			case n.NeverUp(known):
				unjoined[i.ID] = since
				if i.State != fleet.PendingWait {
					d.endUnready(n)
				}
			case known && n.Stage == cluster.Upcoming:
				unjoined[i.ID] = since // its time for devices began when it left the warm pool
			}
		}
	}
	d.State.Unjoined = unjoined
}

// endUnjoined ends an instance whose time to register is over. Where it may be a machine
// that serves it stays; it is no place for pods in any case.
func (d *Launches) endUnjoined(g *cluster.Group, i *fleet.Instance, since time.Time) {
	o, over := d.Overdue[i.ID]
	if !over {
		d.Clock.At(cluster.Later(d.After(since, g.ProvisionTime(d.Policy)), d.State.Recognition.Graced[i.ID]))
		return
	}
	why := "no node of it has registered within " + g.ProvisionTime(d.Policy).String()
	if i.Failed != "" {
		g.Lost[i.ID] = fleet.Failure{At: o.Due, Cause: i.Failed}
		why = "its provider cannot create it: " + i.Failed
	} else if _, served := d.State.Deserted[i.ID]; served {
		g.Lost[i.ID] = fleet.Failure{}
		why = "its node is gone, and it has not registered again within " + g.ProvisionTime(d.Policy).String()
	} else {
		d.lose(g, i, o.Due, cluster.NeverJoined)
	}
	if g.Foreign || !o.Launched && !d.UnrecognisedAllowed(g, i.ID) {
		return
	}
	if n := d.Resembles(i, o.AskedAt); n != "" {
		g.Note(verdict.Say("instance {instance} is not terminated: Node {node} may be it, although its providerID names another or none", verdict.Instance(i.ID), verdict.Node(n)))
		return
	}
	decrement, asks, ok := d.mayEnd(g, cluster.NeverJoined)
	if !ok {
		if g.External && g.Held == "" {
			g.Note(verdict.Say("instance {instance} is not terminated: its group would be smaller than {min}, as its provider replaces none", verdict.Instance(i.ID), verdict.Min(g.Min)))
		}
		return
	}
	// The last time counts: where the first came to nothing, the next one's time begins with this.
	d.State.Recognition.Ended[i.ID] = fleet.Ended{Group: g.Name, At: d.Now, Launched: o.Launched}
	d.Do(action.Terminate{Group: g.Name, Instance: i.ID, ID: neverJoinedID(i.ID), Decrement: decrement, Asks: asks, Why: why})
}

// neverJoinedID is the id of the end of an instance of which no Node registered.
func neverJoinedID(instance string) string { return "never-joined:" + instance }

// deserted reports whether an instance without a node has had one, which was deleted: it was in
// service when it was first seen without one, and its group had not grown for as long as a node may
// take to register. That means nothing for the group's next nodes.
func (d *Launches) deserted(g *cluster.Group, i *fleet.Instance, remembered bool) bool {
	if remembered {
		_, so := d.Given.Deserted[i.ID]
		return so
	}
	grown, grew := d.Given.GrownAt[g.Name]
	return !grew || !d.Now.Before(grown.Add(g.ProvisionTime(d.Policy)))
}

// endUnready ends a node that never was Ready. Whatever holds a node elsewhere
// holds this one too, and so does a pod that got there all the same.
func (d *Launches) endUnready(n *cluster.Node) {
	due := d.DueUp(n)
	if d.Now.Before(due) {
		d.Clock.At(due)
		return
	}
	_, held := contract.Held(n.Annotations)
	_, occupied := n.Occupied(d.Now)
	held = held || d.Contested(n.Instance, n) != nil
	if held || occupied || n.Stage != cluster.Unready && n.Stage != cluster.Serving && n.Stage != cluster.Cordoned {
		return
	}
	why := verdict.Say("it has not been Ready within {within}", verdict.Within(d.Policy.MaxNodeStartupTime))
	if n.Ready {
		why = verdict.Say("its taint {taint} has not gone within {within}", verdict.Taint(n.Awaits), verdict.Within(d.Policy.MaxNodeStartupTime))
	}
	d.lose(n.Group, n.Instance, due, cluster.NeverReady)
	n.Stage, n.Open = cluster.Draining, false
	decrement, asks, ok := d.mayEnd(n.Group, cluster.NeverReady)
	if !ok {
		n.Say(verdict.NodeNeverReady, why.Then(verdict.Say("it is replaced when the back-off of its group is over")))
		return
	}
	d.NoteEnding(n)
	d.Do(action.Terminate{
		Group: n.Group.Name, Instance: n.Instance.ID, Node: n.Ref(), ID: "never-ready:" + n.Instance.ID, Decrement: decrement, Asks: asks, Why: why.String(),
	})
	n.Say(verdict.NodeNeverReady, why.And(", so its instance is terminated"))
}

// lose gives up an instance: it will not become a node, and its launch has failed. Where others of
// its kind are Ready in other zones the fault is its zone's.
func (d *Launches) lose(g *cluster.Group, i *fleet.Instance, due time.Time, cause string) {
	zone := ""
	if worksBeside(g, i.Zone) {
		zone = i.Zone
	}
	g.Lost[i.ID] = fleet.Failure{At: due, Zone: zone, Cause: cause}
}

// worksBeside reports whether a node of the present launch template is up in another
// zone.
func worksBeside(g *cluster.Group, zone string) bool {
	return slices.ContainsFunc(g.Nodes, func(n *cluster.Node) bool {
		return n.Up() && n.Instance.Zone != zone && n.Instance.Template == g.Template
	})
}

// mayEnd says whether an instance that came to nothing is ended now, and whether
// its group shrinks by it. Where it may not, Auto Scaling launches another at
// once (asks), which will most likely come to nothing too: that is done for one at a time, and
// for the next when that one has come, or when the back-off after it is over.
func (d *Launches) mayEnd(g *cluster.Group, cause string) (decrement, asks, ok bool) {
	decrement = g.Shrinkable()
	if g.Held != "" || g.External && !decrement {
		return false, false, false // an external group is one smaller with each that is ended
	}
	asks = !decrement && !g.Surplus()
	if asks {
		if g.ReplacesLost || d.AwaitsReplacement(g) || d.backsOffFor(g, cause) {
			return false, false, false
		}
		g.ReplacesLost = true
		d.AskFor(g, 1)
	}
	g.Ended++
	if decrement {
		g.Lowered++
	}
	return decrement, asks, true
}

// backsOffFor reports whether a back-off of the group runs, in whatever zone, that has such a
// cause.
func (d *Launches) backsOffFor(g *cluster.Group, cause string) bool {
	for _, zone := range append([]string{""}, g.Zones...) {
		b := d.State.BackOffs[fleet.BackOffKey(g.Name, zone, cause)]
		if d.Now.Before(b.Until) {
			d.Clock.At(b.Until)
			return true
		}
	}
	return false
}

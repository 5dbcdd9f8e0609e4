package plan

import (
	"fmt"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// Causes of pauses after launches that Auto Scaling calls a success.
const (
	// NeverJoined: no node of the instance has registered.
	NeverJoined = "NeverJoined"
	// NeverReady: a node has registered, and never was fit for use.
	NeverReady = "NeverReady"
)

// bornUnready is how long after its creation a node's Ready condition may have
// changed last for a node that never was Ready: the kubelet registers first and
// reports then.
const bornUnready = time.Minute

// endLost ends instances that should long have become nodes, and nodes that
// should long have been Ready. Others of their group would most likely fare no
// better: it shrinks by them where it may, and is paused.
func (d *decision) endLost() {
	d.recognise()
	d.recogniseLeaving()
	unjoined := map[string]time.Time{}
	d.watchPools(unjoined)
	for _, g := range d.groups {
		joined := map[string]*node{} // of two Nodes of one instance the one that is not up
		for _, n := range g.nodes {
			if other := joined[n.InstanceID()]; other == nil || other.up() {
				joined[n.InstanceID()] = n
			}
		}
		for _, i := range g.live {
			since, known := d.launchedAt(i)
			n := joined[i.ID]
			switch {
			case n == nil && i.State == fleet.PendingWait:
				// Somebody's launch hook holds it, and ends by its own timeout: our
				// clock starts when it goes on.
			case n == nil:
				unjoined[i.ID] = since
				if d.deserted(g, i, known) {
					d.state.Deserted[i.ID] = since
				}
				d.endUnjoined(g, i, since)
			case n.neverUp(known):
				unjoined[i.ID] = since
				if i.State != fleet.PendingWait {
					d.endUnready(n)
				}
			case known && n.stage == coming:
				unjoined[i.ID] = since // its time for devices began when it left the pool
			}
		}
	}
	d.state.Unjoined = unjoined
}

// neverUp says that a node has never been fit for use. Without a memory of it,
// it was Ready once if that has changed since it registered.
func (n *node) neverUp(remembered bool) bool {
	if n.mark != "" || n.up() {
		return false
	}
	return remembered || !n.Ready && n.ReadySince.Sub(n.Created) < bornUnready
}

// up says that a node is Ready, and that nothing has yet to start on it.
func (n *node) up() bool { return n.Ready && n.awaits == "" }

// endUnjoined ends an instance whose time to register is over. Where it may be a machine
// that serves it stays; it is no place for pods in any case.
func (d *decision) endUnjoined(g *group, i *fleet.Instance, since time.Time) {
	o, over := d.overdue[i.ID]
	if !over {
		d.clock.at(later(d.after(since, d.policy.MaxNodeProvisionTime), d.state.Recognition.Graced[i.ID]))
		return
	}
	why := "no node of it has registered within " + d.policy.MaxNodeProvisionTime.String()
	if _, served := d.state.Deserted[i.ID]; served {
		g.lost[i.ID] = fleet.Failure{}
		why = "its node is gone, and it has not registered again within " + d.policy.MaxNodeProvisionTime.String()
	} else {
		d.lose(g, i, o.due, NeverJoined)
	}
	if g.foreign() || !o.launched && !d.strangersAllowed(g, i.ID) {
		return
	}
	if n := d.resembles(i, o); n != "" {
		g.note(fmt.Sprintf("instance %s is not ended: Node %s may be it, although its providerID does not say so", i.ID, n))
		return
	}
	decrement, asks, ok := d.mayEnd(g, NeverJoined)
	if !ok {
		return
	}
	if e, again := d.state.Recognition.Ended[i.ID]; !again || !d.now.Before(e.At.Add(strangersWindow)) {
		d.state.Recognition.Ended[i.ID] = fleet.Ended{Group: g.Name, At: d.now, Launched: o.launched}
	}
	d.do(Terminate{Group: g.Name, Instance: i.ID, ID: neverJoinedID(i.ID), Decrement: decrement, Asks: asks, Why: why})
}

// neverJoinedID is the id of the end of an instance of which no Node registered.
func neverJoinedID(instance string) string { return "never-joined:" + instance }

// deserted says that an instance without a node has had one, which somebody deleted: it
// was in service when it was first seen without one, and its group had not grown for as
// long as a node may take to register. That tells nothing of the group's next nodes.
func (d *decision) deserted(g *group, i *fleet.Instance, remembered bool) bool {
	if remembered {
		_, so := d.given.Deserted[i.ID]
		return so
	}
	grown, grew := d.given.GrownAt[g.Name]
	return !grew || !d.now.Before(grown.Add(d.policy.MaxNodeProvisionTime))
}

// endUnready ends a node that never was Ready. Whatever holds a node elsewhere
// holds this one too, and so does a pod that got there all the same.
func (d *decision) endUnready(n *node) {
	due := d.dueUp(n)
	if d.now.Before(due) {
		d.clock.at(due)
		return
	}
	_, held := contract.Held(n.Annotations)
	_, occupied := n.occupied(d.now)
	held = held || d.contested(n.instance, n) != ""
	if held || occupied || n.stage != unready && n.stage != serving && n.stage != cordoned {
		return
	}
	why := "it has not been Ready within " + d.policy.MaxNodeStartupTime.String()
	if n.Ready {
		why = fmt.Sprintf("its taint %s has not gone within %s", n.awaits, d.policy.MaxNodeStartupTime)
	}
	d.lose(n.group, n.instance, due, NeverReady)
	n.stage, n.open = leaving, false
	decrement, asks, ok := d.mayEnd(n.group, NeverReady)
	if !ok {
		n.say(NodeNeverReady, why+"; it is replaced when the pause of its group is over")
		return
	}
	d.do(Terminate{
		Group: n.group.Name, Instance: n.instance.ID, Node: n.ref(), ID: "never-ready:" + n.instance.ID, Decrement: decrement, Asks: asks, Why: why,
	})
	n.say(NodeNeverReady, why+", so its instance is ended")
}

// lose gives an instance up: it is not coming, and its launch has failed. Where
// others of its kind are Ready in other zones the fault is its zone's.
func (d *decision) lose(g *group, i *fleet.Instance, due time.Time, cause string) {
	zone := ""
	if g.worksBeside(i.Zone) {
		zone = i.Zone
	}
	g.lost[i.ID] = fleet.Failure{At: due, Zone: zone, Cause: cause}
}

// worksBeside says that a node of the present launch template is up in another
// zone.
func (g *group) worksBeside(zone string) bool {
	return slices.ContainsFunc(g.nodes, func(n *node) bool {
		return n.up() && n.instance.Zone != zone && n.instance.Template == g.Template
	})
}

// mayEnd says whether an instance that came to nothing is ended now, and whether
// its group shrinks by it. Where it may not, Auto Scaling launches another at
// once (asks), which will most likely come to nothing too: that is done for one at a time, and
// for the next when that one has come, or when the pause after it is over.
func (d *decision) mayEnd(g *group, cause string) (decrement, asks, ok bool) {
	decrement = g.shrinkable()
	asks = !decrement && !g.surplus()
	if asks {
		if g.replaces || d.awaitsReplacement(g) || d.pausedFor(g, cause) {
			return false, false, false
		}
		g.replaces = true
		d.askFor(g, 1)
	}
	g.ended++
	if decrement {
		g.lowered++
	}
	return decrement, asks, true
}

// pausedFor says that a pause of the group runs, in whatever zone, that has such a cause.
func (d *decision) pausedFor(g *group, cause string) bool {
	for _, zone := range append([]string{""}, g.Zones...) {
		b := d.state.BackOffs[fleet.BackOffKey(g.Name, zone, cause)]
		if d.now.Before(b.Until) {
			d.clock.at(b.Until)
			return true
		}
	}
	return false
}

// lookAt tells people where the trouble of nodes that never come up shows, when
// it has come again.
func lookAt(b *fleet.BackOff) string {
	if b.Count < 2 {
		return ""
	}
	switch b.Cause {
	case NeverJoined:
		return fmt.Sprintf(", %d times in a row: look at the console output of its instances, at the user data of its launch template, at the rights of its instance role in the cluster and at the way to the API server", b.Count)
	case NeverReady:
		return fmt.Sprintf(", %d times in a row: look at the conditions of its nodes, at the network plugin and at the DaemonSets that take startup taints off", b.Count)
	}
	return ""
}

package cluster

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// BackOffIn is the running back-off of a zone or of the whole group, the longest of
// them; nil without one.
func (g *Group) BackOffIn(zone string) *fleet.BackOff {
	var longest *fleet.BackOff
	for _, z := range []string{"", zone} {
		if b, ok := g.BackOffs[z]; ok && (longest == nil || b.Until.After(longest.Until)) {
			longest = &b
		}
	}
	return longest
}

// BackOff is the back-off that ends first of those that keep a group from growing in
// any zone; nil where it may grow in one.
func (g *Group) BackOff() *fleet.BackOff {
	if len(g.Templates) == 0 {
		return g.BackOffIn("")
	}
	var first *fleet.BackOff
	for _, l := range g.Templates {
		b := g.BackOffIn(l.Zone)
		if b == nil {
			return nil
		}
		if first == nil || b.Until.Before(first.Until) {
			first = b
		}
	}
	return first
}

// MostCause is the most bytes of a cause that is persisted: it may be the words of an agent or of
// AWS.
const MostCause = 256

func BackOff(until time.Time, count int, cause string) fleet.BackOff {
	return fleet.BackOff{Until: until, Count: count, Cause: contract.Shorten(cause, MostCause)}
}

// People may lower a group's desired capacity by hand. Auto Scaling then terminates
// instances that are not protected from scale-in, and no others: where all are protected
// the group stays as large as it is.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-instance-protection.html
//
// So unneeded nodes of such a group are drained like any other, at most as many as it is
// above desired, and terminated without decrement: desired is what people want. Where only
// some instances are protected, Auto Scaling terminates the others first. That is waited
// for, because both at once would be too many.

// Excess is by how many instances the group is larger than desired.
func (g *Group) Excess() int { return max(0, len(g.Live)-g.Read) }

// Processes of Auto Scaling that decisions ask for by name.
const (
	ProcessLaunch    = "Launch"
	ProcessTerminate = "Terminate"
)

// Base is what the group grows from. Auto Scaling may have more instances than
// desired for a while; asking for fewer than there are would end some of them.
func (g *Group) Base() int { return max(g.Desired, len(g.Live)) }

func (g *Group) IsSuspended(process string) bool { return slices.Contains(g.Suspended, process) }

// LiveIn is how many live instances the group was read with in a zone.
func (g *Group) LiveIn(zone string) int {
	n := 0
	for _, i := range g.Live {
		if i.Zone == zone {
			n++
		}
	}
	return n
}

func (d *Cluster) GroupOf(name string) *Group {
	i, ok := slices.BinarySearchFunc(d.Groups, name, func(g *Group, name string) int { return cmp.Compare(g.Name, name) })
	if !ok {
		return nil
	}
	return d.Groups[i]
}

// Group is an Auto Scaling group with what belongs to it.
type Group struct {
	*fleet.Group
	// Templates are those of a new node, one for each zone.
	Templates []*fit.NodeTemplate
	// TemplatesThere are these and those of its nodes, once they were asked for.
	TemplatesThere []*fit.NodeTemplate
	// Have counts for each of these zones what is there and what is upcoming.
	Have  []int
	Live  []*fleet.Instance
	Nodes []*Node
	// Nodeless are those of Live that are no Node.
	Nodeless []*fleet.Instance
	// toBeReplaced counts live instances that Auto Scaling is about to terminate and to
	// replace; see hearOwnDrains.
	toBeReplaced int

	// BackOffs are those that run after failed launches, by zone; that of the whole
	// group has no zone. See BackOffIn.
	BackOffs map[string]fleet.BackOff
	// Lost are the instances that never became nodes that are Ready, as failures at the moment at
	// which they should have been; without a cause where nothing failed.
	Lost map[string]fleet.Failure
	// Unsteered is why the zones of its new nodes are not ours to choose, empty if
	// they are.
	Unsteered verdict.Details
	// Unanswered: a launch is under way, as far as is known.
	Unanswered bool
	// Read is the desired capacity that was read. Desired has on top of it what launches promise
	// that the reading does not show, and which may come to nothing or be terminated again: whether
	// the group may be smaller is asked of Read alone.
	Read int
	// SilentSince is when a launch was asked for that has had no answer for too long to
	// count on it; zero without one.
	SilentSince time.Time
	// LaunchedIn are the zones of the nodes that were launched and do not show yet.
	LaunchedIn []string
	// Differs says where its nodes differ from their node template.
	Differs verdict.Details
	// Similar are the groups that are similar to it; see seats.Seats.SimilarTo.
	Similar []*Group
	// Fresh are the nodes that the group shall grow by.
	Fresh []*fit.Place
	// Grows: it does so in this evaluation, and is not held back by its pace.
	Grows bool
	// Ended counts the instances that this plan ends, and Lowered is by how much it makes desired
	// less than it was read: by what cannot come, and by those of them that go with decrement.
	Ended, Lowered int
	// Planned are its node templates before anything was learned from its nodes, and
	// Definition a hash of them; see template.Templates.Definition.
	Planned    []fleet.NodeTemplate
	Definition string
	// GrowsFor is for which nodes it grows, in words; empty where pods are pending.
	GrowsFor string
	// Closed is why it is not grown for the class of pods at hand; empty if it may be; Doubted is
	// whether its verdict names such a class already.
	Closed  verdict.Details
	Doubted bool
	// Recognised: a Node of one of its instances is here, or was.
	Recognised bool
	// Foreign: instances of the group should long be Nodes, none ever was one here, and one without
	// a Node is in service that did not come because we asked for it.
	Foreign bool
	// ReplacesLost: this plan ends an instance of it that never became a node, and Auto Scaling
	// launches another in its place.
	ReplacesLost bool
	// Uneven says how its zones will differ that Auto Scaling would even out; nil if it
	// would not.
	Uneven []string
	// Aside: it is not grown now, as what is planned is for another group.
	Aside bool
	// Short: there is less headroom than there shall be, which it could have.
	Short bool
	// Wanted: a pod would fit the group, could it grow.
	Wanted bool
	// Totals are those of the cluster that it belongs to.
	Totals *Totals
	// Ill is why no more nodes of it are wanted, as those that it has are unhealthy.
	Ill verdict.Details
	// Retained are its instances that were retained when a hook was abandoned.
	Retained []string
	// Notes are what people should know beside its verdict.
	Notes verdict.Details
}

// Note adds something to the group's verdict, once.
func (g *Group) Note(details verdict.Details) { g.Notes = g.Notes.With(details) }

func groupsOf(s fleet.Snapshot) []*Group {
	groups := make([]*Group, len(s.Groups))
	for i := range s.Groups {
		groups[i] = &Group{Group: sortedGroup(s.Groups[i]), Read: s.Groups[i].Desired, Lost: map[string]fleet.Failure{}, BackOffs: map[string]fleet.BackOff{}}
	}
	slices.SortFunc(groups, func(a, b *Group) int { return cmp.Compare(a.Name, b.Name) })
	return groups
}

// sortedGroup is a copy whose lists have an order.
func sortedGroup(g fleet.Group) *fleet.Group {
	g.NodeTemplates = slices.Clone(g.NodeTemplates)
	slices.SortFunc(g.NodeTemplates, func(a, b fleet.NodeTemplate) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.InstanceType, b.InstanceType))
	})
	byID := func(a, b fleet.Instance) int { return cmp.Compare(a.ID, b.ID) }
	if !slices.IsSortedFunc(g.Instances, byID) { // as they mostly are
		g.Instances = slices.Clone(g.Instances)
		slices.SortFunc(g.Instances, byID)
	}
	g.Hooks = slices.Clone(g.Hooks)
	slices.SortFunc(g.Hooks, func(a, b fleet.Hook) int { return cmp.Compare(a.Name, b.Name) })
	g.Failures = slices.Clone(g.Failures)
	slices.SortFunc(g.Failures, func(a, b fleet.Failure) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Text, b.Text))
	})
	g.Faults = slices.Sorted(slices.Values(g.Faults))
	return &g
}

// Causes of back-offs after launches that Auto Scaling calls a success.
const (
	// NeverJoined: no node of the instance has registered.
	NeverJoined = "NeverJoined"
	// NeverReady: a node has registered, and never was fit for use.
	NeverReady = "NeverReady"
)

// Remedy names where the trouble of nodes that never come up shows, when it has come again.
func Remedy(pause verdict.Details, b *fleet.BackOff) verdict.Details {
	if b.Count < 2 {
		return pause
	}
	switch b.Cause {
	case NeverJoined:
		return pause.And(", {count} times in a row: check the console output of its instances, the user data of its launch template, the rights of its instance role in the cluster and the way to the API server", verdict.Count(b.Count))
	case NeverReady:
		return pause.And(", {count} times in a row: check the conditions of its nodes, the network plugin and the DaemonSets that take startup taints off", verdict.Count(b.Count))
	}
	return pause
}

// Unregistered are live instances whose node is upcoming.
func (d *Cluster) Unregistered(g *Group) []*fleet.Instance {
	var list []*fleet.Instance
	for _, i := range g.Nodeless {
		if _, lost := g.Lost[i.ID]; !lost {
			list = append(list, i)
		}
	}
	return list
}

// WhyNotReplaced says why Auto Scaling may launch none in place of an instance that is ended now without
// decrement; nil where it should.
func (d *Cluster) WhyNotReplaced(g *Group) verdict.Details {
	switch {
	case g.External:
		return verdict.Say("its provider replaces none")
	case len(g.BackOffs) > 0:
		return verdict.Say("its launches are in back-off")
	case g.IsSuspended(ProcessLaunch):
		return verdict.Say("its process Launch is suspended")
	case g.Owed() > 0 || g.Ended > g.Lowered || len(d.Unregistered(g)) > 0:
		return verdict.Say("others of it are upcoming")
	}
	return nil
}

// Owed is what Auto Scaling has yet to launch to have as many as desired.
func (g *Group) Owed() int { return max(0, g.Desired-len(g.Live)) }

// Unlaunched is how much of that can be counted on: what Auto Scaling goes on trying, and what it
// has reported that it launched.
func (g *Group) Unlaunched() int {
	if g.BackOff() != nil || g.IsSuspended(ProcessLaunch) {
		return min(g.Owed(), len(g.LaunchedIn))
	}
	return max(0, g.Desired-len(g.Live)+g.toBeReplaced)
}

// ZoneOf is the index of the zone among the group's node templates; 0 where it is none of them.
func (g *Group) ZoneOf(zone string) int {
	return max(0, slices.IndexFunc(g.Templates, func(l *fit.NodeTemplate) bool { return l.Zone == zone }))
}

// Shrinkable reports whether desired may be one less after what this plan does: above the minimum, and
// so the instances that are there, as what Auto Scaling owes may never come. It
// may not where there are more instances than desired: then nothing is
// launched in place of one that ends.
func (g *Group) Shrinkable() bool {
	return !g.Surplus() && g.Read-g.Lowered > g.Min && len(g.Live)-g.Ended > g.Min
}

// Surplus reports whether there are more instances than desired.
func (g *Group) Surplus() bool { return len(g.Live)-g.Ended > g.Read-g.Lowered }

// CapacityOf a node template; what pods may have of it where the rest is not known.
func CapacityOf(s *fleet.NodeTemplate) corev1.ResourceList {
	if len(s.Capacity) > 0 {
		return s.Capacity
	}
	return s.Allocatable
}

// SettleTime is how long a node is Ready before its clock may start: the pods
// that it came for are bound in its first seconds, and not always where this
// plan would put them. To mark it at once would be two patches for nothing.
const SettleTime = 10 * time.Second

// ProvisionTime is how long an instance of the group may take from its launch to a registered node.
func (g *Group) ProvisionTime(p policy.Policy) time.Duration {
	return g.ScaleDown.ProvisionTime(p.MaxNodeProvisionTime)
}

func (g *Group) UnneededTime(p policy.Policy) time.Duration {
	if g.ScaleDown.UnneededTime != nil {
		return g.ScaleDown.UnneededTime.Duration
	}
	return p.UnneededTime
}

package compare

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/scaler/shadow/record"
)

// at is a record so many seconds after noon.
func at(second int, r record.Record) record.Record {
	r.At = noon.Add(time.Duration(second) * time.Second)
	return r.Normal()
}

func seen(second int, s record.Seen) record.Record { return at(second, record.Record{Seen: &s}) }

func decides(second int, d record.Decided) record.Record {
	return at(second, record.Record{Decided: &d})
}

// TestSides: several records tell of one doing, and what others did is not an autoscaler's.
func TestSides(t *testing.T) {
	const hour = 3600
	up := func(second int, by, group string, from, to int) record.Record {
		return seen(second, record.Seen{By: by, Kind: record.ScaleUp, Group: group, From: from, To: to, Why: by + "'s"})
	}
	claim := func(second int, group string, from, to int, pod string) record.Record {
		return seen(second, record.Seen{By: record.ByClaim, Kind: record.ScaleUp, Group: group, From: from, To: to, Pods: []string{pod}})
	}
	node := func(second int, by, kind, name string) record.Record {
		return seen(second, record.Seen{By: by, Kind: kind, Node: name, Why: kind})
	}
	for _, c := range []struct {
		name, want string
		log        []record.Record
	}{
		{"two Events, an activity and the pods of one scale-up", "world 12:00:01 cluster-autoscaler grew web 2→5 [a/1 a/2] of 2", []record.Record{
			up(1, record.ByAutoscaler, "web", 2, 5), up(2, record.ByAutoscaler, "web", 2, 5), up(0, record.ByUnknown, "web", 2, 5), claim(3, "web", 2, 5, "a/1"), claim(3, "web", 2, 5, "a/2"), claim(4, "web", 2, 5, "a/1")}},
		{"the observer saw two steps as one", "world 12:00:00 cluster-autoscaler grew web 2→3; world 12:00:20 cluster-autoscaler grew web 3→5", []record.Record{
			up(0, record.ByAutoscaler, "web", 2, 3), up(20, record.ByAutoscaler, "web", 3, 5), seen(30, record.Seen{By: record.ByUnknown, Kind: record.DesiredChanged, Group: "web", From: 2, To: 5})}},
		{"an hour later it is another", "world 12:00:00 cluster-autoscaler grew web 2→3; world 13:00:00 cluster-autoscaler grew web 2→3", []record.Record{
			up(0, record.ByAutoscaler, "web", 2, 3), up(hour, record.ByAutoscaler, "web", 2, 3)}},
		{"a claim proves nothing", "", []record.Record{claim(0, "web", 2, 99, "a/1")}},
		{"a schedule", "world 12:00:00 auto-scaling grew web 2→3", []record.Record{up(0, record.ByAutoScaling, "web", 2, 3)}},
		{"shrinking is no scale-up", "", []record.Record{seen(0, record.Seen{By: record.ByUnknown, Kind: record.DesiredChanged, Group: "web", From: 3, To: 2})}},
		{"a taint, two Events and the end of one scale-down", "world 12:00:00 cluster-autoscaler removed n1", []record.Record{
			node(0, record.ByAutoscaler, record.Tainted, "n1"), node(1, record.ByAutoscaler, record.ScaleDown, "n1"), node(300, record.ByUnknown, record.NodeGone, "n1"), node(hour, record.ByAutoscaler, record.ScaleDown, "n1")}},
		{"an activity names the instance alone", "world 12:00:00 cluster-autoscaler removed n1", []record.Record{
			seen(-hour, record.Seen{Kind: record.NodeCame, Node: "n1", Instance: "i-1"}), node(0, record.ByAutoscaler, record.Tainted, "n1"), seen(5, record.Seen{By: record.ByUnknown, Kind: record.ScaleDown, Instance: "i-1"})}},
		{"an instance of which nothing else is known is that of the node before it", "world 12:00:00 cluster-autoscaler removed n1; world 12:10:00 unknown removed i-2", []record.Record{
			node(0, record.ByAutoscaler, record.ScaleDown, "n1"), seen(90, record.Seen{By: record.ByUnknown, Kind: record.ScaleDown, Instance: "i-1"}), seen(600, record.Seen{By: record.ByUnknown, Kind: record.ScaleDown, Instance: "i-2"})}},
		{"a drain that failed, and one that did not", "world 12:15:00 cluster-autoscaler removed n1", []record.Record{
			node(0, record.ByAutoscaler, record.Tainted, "n1"), node(120, record.ByAutoscaler, record.Failed, "n1"), node(900, record.ByAutoscaler, record.Tainted, "n1")}},
		{"a node that only went", "", []record.Record{node(0, record.ByUnknown, record.NodeGone, "n1")}},
		{"another node of that name", "world 12:00:00 cluster-autoscaler removed n1; world 12:20:00 cluster-autoscaler removed n1", []record.Record{
			node(0, record.ByAutoscaler, record.Tainted, "n1"), node(600, record.ByUnknown, record.NodeCame, "n1"), node(1200, record.ByAutoscaler, record.Tainted, "n1")}},
		{"a drain and its end are one; one that was cancelled is none", "Windlass 12:00:00 removed n1", []record.Record{
			decides(0, record.Decided{Kind: record.RequestDrain, Node: "n1"}), decides(600, record.Decided{Kind: record.Terminate, Node: "n1"}),
			decides(0, record.Decided{Kind: record.RequestDrain, Node: "n2"}), decides(60, record.Decided{Kind: record.CancelDrain, Node: "n2"})}},
		{"a node that is in use again is removed another time", "Windlass 12:00:00 removed n1; Windlass 12:30:00 removed n1", []record.Record{
			decides(0, record.Decided{Kind: record.RequestDrain, Node: "n1"}), at(600, record.Record{Diverged: &record.Diverged{Node: "n1", Assumed: "removed", Is: record.InUse}}), decides(1800, record.Decided{Kind: record.RequestDrain, Node: "n1"})}},
		{"what is not compared", "", []record.Record{decides(0, record.Decided{Kind: "mark", Node: "n1"}), decides(0, record.Decided{Kind: "terminate"})}},
	} {
		got := Of(Input{Log: record.Book{Records: c.log}}).sides
		var list []string
		add := func(side string, doings []*doing) {
			for _, d := range doings {
				what := fmt.Sprintf("grew %s %d→%d", d.Group, d.From, d.To)
				if d.Node != "" {
					what = "removed " + d.Node
				}
				words := strings.Fields(fmt.Sprint(side, " ", d.At.Format(time.TimeOnly), " ", d.By, " ", what))
				if len(d.Pods) > 0 {
					words = append(words, fmt.Sprint(d.Pods), "of", fmt.Sprint(d.PodCount))
				}
				list = append(list, strings.Join(words, " "))
			}
		}
		add("world", got.grown.World)
		add("Windlass", got.grown.Windlass)
		add("world", got.removed.World)
		add("Windlass", got.removed.Windlass)
		if diff := cmp.Diff(c.want, strings.Join(list, "; ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestSamplesTell: what samples show was done, whoever did it; of nodes that went without a name
// nothing is claimed.
func TestSamplesTell(t *testing.T) {
	size := func(n int) *record.Sample {
		return &record.Sample{Groups: []record.GroupSample{{Group: "web", World: record.Size{Desired: n}}}}
	}
	var log []record.Record
	for minute := range 180 {
		n := 1
		if minute >= 60 {
			n = 3
		}
		if minute >= 120 {
			n = 2
		}
		log = append(log, at(60*minute, record.Record{Sample: size(n)}))
	}
	log = append(log, decides(3600, record.Decided{Kind: record.Grow, Group: "web", From: 1, To: 3}), decides(90*60, record.Decided{Kind: record.RequestDrain, Group: "web", Node: "n1"}))
	c := Of(Input{Log: record.Book{Records: log}})
	if c.Agreement.ScaleUps.Agreed != 1 || len(c.Divergences) != 0 || c.Agreement.ScaleDowns.Undecided != 1 || len(c.Missing) != 1 {
		t.Errorf("%+v; %+v; %q", c.Agreement, c.First, c.Missing)
	}
	c = Of(Input{Log: record.Book{Records: append(log, seen(100, record.Seen{By: record.ByAutoscaler, Kind: record.ScaleDown, Node: "n7"}))}})
	if c.ByKind[OnlyWindlassRemoved] != 1 || len(c.Missing) != 0 {
		t.Errorf("with a name: %+v; %q", c.ByKind, c.Missing)
	}
	// Across a time that was not seen nobody knows when it grew.
	gap := append(log[:55:55], log[65:]...)
	if c := Of(Input{Log: record.Book{Records: gap}}); len(c.sides.grown.World) != 0 {
		t.Errorf("%+v grew while nobody looked", c.sides.grown.World[0])
	}
}

// TestKinds: each kind of divergence, with what both sides say.
func TestKinds(t *testing.T) {
	var log []record.Record
	for minute := range 300 {
		log = append(log, at(60*minute, record.Record{Sample: &record.Sample{}}))
	}
	grow := func(second int, group string, to int, pods ...string) record.Record {
		return decides(second, record.Decided{Kind: record.Grow, Group: group, From: 1, To: to, Pods: pods, Why: "for pods"})
	}
	up := func(second int, group string, to int, pods ...string) record.Record {
		return seen(second, record.Seen{By: record.ByAutoscaler, Kind: record.ScaleUp, Group: group, From: 1, To: to, Pods: pods, Why: "scale-up"})
	}
	drain := func(second int, node string) record.Record {
		return decides(second, record.Decided{Kind: record.RequestDrain, Group: "web", Node: node, Why: "unneeded"})
	}
	down := func(second int, node string) record.Record {
		return seen(second, record.Seen{By: record.ByAutoscaler, Kind: record.ScaleDown, Group: "web", Node: node, Why: "removing"})
	}
	const noon = 2 * 3600
	for _, c := range []struct {
		name, want string
		more       []record.Record
	}{
		{"the same", "agreed 1+0", []record.Record{up(noon, "web", 2, "a/1"), grow(noon+60, "web", 2, "a/1")}},
		{"the same node", "agreed 0+1", []record.Record{down(noon, "n1"), drain(noon+600, "n1")}},
		{"for other pods", "agreed 0+0; OnlyWorldGrew scale-up | no reason is recorded; OnlyWindlassGrew no reason is recorded | for pods", []record.Record{up(noon, "web", 2, "a/1"), grow(noon+60, "web", 2, "a/2")}},
		{"too late", "agreed 0+0; OnlyWorldGrew scale-up | no reason is recorded; OnlyWindlassGrew no reason is recorded | for pods", []record.Record{up(noon, "web", 2), grow(noon+600, "web", 2)}},
		{"another group", "agreed 0+0; OtherGroup scale-up | for pods", []record.Record{up(noon, "web", 2, "a/1"), grow(noon+60, "spot", 2, "a/1")}},
		{"another size", "agreed 0+0; OtherSize scale-up | for pods", []record.Record{up(noon, "web", 3), grow(noon+60, "web", 2)}},
		{"an hour apart", "agreed 0+0; OtherTime removing | unneeded", []record.Record{down(noon, "n1"), drain(noon+3600, "n1")}},
		{"nobody else, and why", "agreed 0+0; OnlyWindlassGrew max size | for pods", []record.Record{grow(noon, "web", 2, "a/1"),
			seen(noon+10, record.Seen{By: record.ByAutoscaler, Kind: record.Failed, Group: "web", Why: "back-off"}), seen(noon+20, record.Seen{By: record.ByClaim, Kind: record.Unhelped, Pods: []string{"a/1"}, Why: "max size"})}},
		{"the group is what is to blame", "agreed 0+0; OnlyWindlassGrew back-off | for pods", []record.Record{grow(noon, "web", 2, "a/1"),
			seen(noon+10, record.Seen{By: record.ByAutoscaler, Kind: record.Failed, Group: "web", Why: "back-off"}), seen(noon+20, record.Seen{By: record.ByAutoscaler, Kind: record.Failed, Why: "unhealthy"})}},
		{"Windlass alone removes", "agreed 0+0; OnlyWindlassRemoved drain failed | unneeded", []record.Record{drain(noon, "n1"), seen(noon+60, record.Seen{By: record.ByAutoscaler, Kind: record.Failed, Node: "n1", Why: "drain failed"})}},
		{"the world alone removes", "agreed 0+0; OnlyWorldRemoved removing | still needed", []record.Record{down(noon, "n1"), at(noon+30, record.Record{Diverged: &record.Diverged{Node: "n1", Assumed: "stays", Is: "gone", Why: "still needed"}})}},
		{"a schedule grows", "agreed 0+0", []record.Record{seen(noon, record.Seen{By: record.ByAutoScaling, Kind: record.ScaleUp, Group: "web", From: 1, To: 2})}},
	} {
		got := Of(Input{Log: record.Book{Records: append(log[:len(log):len(log)], c.more...)}})
		text := fmt.Sprintf("agreed %d+%d", got.Agreement.ScaleUps.Agreed, got.Agreement.ScaleDowns.Agreed)
		for _, d := range got.Divergences {
			text += fmt.Sprintf("; %s %s | %s", d.Kind, d.World.Why, d.Windlass.Why)
		}
		if text != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, text, c.want)
		}
	}
}

package fit_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

const zone = "topology.kubernetes.io/zone"

// drawNodes draws a group and from least to most nodes of it that differ in zone, size
// and a label, as lines of a scenario.
func drawNodes(t *rapid.T, least, most int) (text string, nodes int) {
	text = "group web zones=a,b,c\n"
	nodes = rapid.IntRange(least, most).Draw(t, "nodes")
	for i := range nodes {
		text += fmt.Sprintf("node n-%03d zone=%s cpu=%d labels=disk=%s\n", i,
			rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "zone"), rapid.IntRange(1, 4).Draw(t, "cpus"),
			rapid.SampledFrom([]string{"ssd", "hdd"}).Draw(t, "disk"))
	}
	return text, nodes
}

// However many places there are and whatever was seated before, a row finds the
// first that takes a pod, as asking one after the other does. Small and large pods
// take turns, so that places are passed over for want of room and found again, and
// spread opens places that refused before.
func TestRowFindsTheFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, _ := drawNodes(t, 1, 200)
		classes := rapid.IntRange(1, 8).Draw(t, "classes")
		for i := range classes {
			text += fmt.Sprintf("pod p-%d waiting cpu=%dm labels=app=%s %s\n", i, 100*rapid.IntRange(0, 15).Draw(t, "cpu"),
				rapid.SampledFrom([]string{"x", "y"}).Draw(t, "app"),
				rapid.SampledFrom([]string{
					"", "hostport=80", "selector=disk=ssd", "apart", "apart=" + zone, "together=" + zone, "together=disk",
					"spread=" + zone, "spread=" + corev1.LabelHostname, "spread=disk", "spread=" + zone + " selector=disk=hdd",
					"spread=" + zone + " together=disk", "spread=disk together=" + zone, "together=" + corev1.LabelHostname,
				}).Draw(t, "rules"))
		}
		s, err := scenario.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c := clusterOf(s)
		var places []*fit.Place
		for i := range s.Nodes {
			places = append(places, c.Add(c.TemplateFrom(&s.Nodes[i], none)))
		}
		// Nodes that pods leave are in no row, but in its zones.
		in := rapid.IntRange((len(places)+1)/2, len(places)).Draw(t, "in the row")
		places, leaving := places[:in], places[in:]
		drawPod := func() *fleet.Pod { return s.Pods[rapid.IntRange(0, classes-1).Draw(t, "pod")] }
		for _, p := range leaving {
			for range rapid.IntRange(0, 3).Draw(t, "pods there") {
				c.TrySeat(c.Tenant(drawPod()), p)
			}
		}
		row := c.NewRow(places)
		for range rapid.IntRange(1, 400).Draw(t, "pods") {
			if len(leaving) > 0 && rapid.IntRange(0, 9).Draw(t, "leaves") == 0 {
				p := rapid.SampledFrom(leaving).Draw(t, "node")
				for _, tenant := range slices.Clone(p.Tenants()) {
					c.Lift(tenant, p)
					if c.Heeded(tenant) {
						row.Forget()
					}
				}
			}
			pod := drawPod()
			class := c.Tenant(pod).Class
			want := firstOpen(c, class, places, nil)
			if got := row.Seat(c.Tenant(pod)); got != want {
				t.Fatalf("pod %s is seated at %s, want %s", pod.Name, nameOf(got), nameOf(want))
			}
		}
	})
}

// A pod that asks for a label that no pod asked for before parts what was one kind.
func TestRowKnowsNewKinds(t *testing.T) {
	s, err := scenario.Parse(`group web
node n-1 cpu=4 labels=disk=hdd
node n-2 cpu=4 labels=disk=ssd
pod plain waiting cpu=1
pod picky waiting cpu=1 selector=disk=ssd`)
	if err != nil {
		t.Fatal(err)
	}
	plain, picky := s.Pods[0], s.Pods[1]
	if plain.Name != "plain" {
		plain, picky = picky, plain
	}
	s.Pods = []*fleet.Pod{plain}
	c := clusterOf(s)
	row := c.NewRow([]*fit.Place{c.Add(c.TemplateFrom(&s.Nodes[0], none)), c.Add(c.TemplateFrom(&s.Nodes[1], none))})
	for _, want := range []struct {
		pod  *fleet.Pod
		node string
	}{{plain, "n-1"}, {picky, "n-2"}, {plain, "n-1"}} {
		if got := nameOf(row.Seat(c.Tenant(want.pod))); got != want.node {
			t.Errorf("pod %s is seated at %s, want %s", want.pod.Name, got, want.node)
		}
	}
}

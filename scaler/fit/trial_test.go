package fit_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

// One place after the other is closed, and its pods seek others in a row: what was
// refused before, in trials that stand and in trials that were undone, never hides
// the first place that takes a pod.
func TestRowInTrials(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, nodes := drawNodes(t, 2, 40)
		for i := range rapid.IntRange(1, 6).Draw(t, "classes") {
			rules := rapid.SampledFrom([]string{
				"", "hostport=80", "selector=disk=ssd", "apart", "apart=" + zone, "together=" + zone,
				"spread=" + zone, "spread=" + corev1.LabelHostname, "spread=" + zone + " apart", "spread=" + zone + " spread=disk",
			}).Draw(t, "rules")
			for j := range rapid.IntRange(1, 20).Draw(t, "pods") {
				text += fmt.Sprintf("pod p-%d-%d on=n-%03d cpu=%dm labels=app=%s %s\n", i, j, rapid.IntRange(0, nodes-1).Draw(t, "on"),
					100*rapid.IntRange(0, 10).Draw(t, "cpu"), rapid.SampledFrom([]string{"x", "y"}).Draw(t, "app"), rules)
			}
		}
		s, err := scenario.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c := clusterOf(s)
		var places []*fit.Place
		for i := range s.Nodes {
			place := c.Add(c.TemplateFrom(&s.Nodes[i], none))
			for _, p := range s.Pods {
				if p.Node == s.Nodes[i].Name {
					c.Put(c.Tenant(p), place)
				}
			}
			places = append(places, place)
		}
		row := c.NewRow(places)
		closed := map[*fit.Place]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "trials") {
			from := places[rapid.IntRange(0, nodes-1).Draw(t, "from")]
			if closed[from] {
				continue
			}
			start := c.Try()
			closed[from] = true
			c.Close(from)
			movers := from.Tenants()
			for _, m := range movers {
				c.Lift(m, from)
			}
			left := false
			for _, m := range movers {
				want := firstOpen(c, m.Class, places, closed)
				if got := row.Seat(m); got != want {
					t.Fatalf("pod %s is seated at %s, want %s\n%s", m.Pod.Name, nameOf(got), nameOf(want), text)
				}
				left = left || want == nil
			}
			if left || rapid.IntRange(0, 3).Draw(t, "back") == 0 {
				c.Revert(start)
				closed[from] = false
			}
		}
	})
}

func firstOpen(c *fit.Cluster, class *fit.Class, places []*fit.Place, closed map[*fit.Place]bool) *fit.Place {
	for _, p := range places {
		if !closed[p] && c.Fits(class, p) == nil {
			return p
		}
	}
	return nil
}

// What it costs to close a place, and to take that back, is counted: where spread constraints
// honor taints, their electorates lose the place and get it again, and those may be many.
func TestClosingIsCounted(t *testing.T) {
	const rules = 50
	s := parse(t, "node n-1")
	honor := corev1.NodeInclusionPolicyHonor
	for i := range rules {
		s.Pods = append(s.Pods, &fleet.Pod{Namespace: "default", Name: fmt.Sprint("p-", i), Node: "n-1", Spec: &corev1.PodSpec{
			Tolerations: []corev1.Toleration{{Key: fmt.Sprint("k-", i), Operator: corev1.TolerationOpExists}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, NodeTaintsPolicy: &honor,
				LabelSelector: &metav1.LabelSelector{},
			}},
		}})
	}
	c := fit.NewRules().Cluster(fit.World{Kubernetes: s.Kubernetes, Pods: s.Pods, Namespaces: s.Namespaces, Closing: []corev1.Taint{{Key: "closing", Effect: corev1.TaintEffectNoSchedule}}})
	p := c.Add(c.TemplateFrom(&s.Nodes[0], none))
	for _, pod := range s.Pods {
		c.Put(c.Tenant(pod), p)
	}
	before := c.Steps()
	start := c.Try()
	c.Close(p)
	if steps := c.Steps() - before; steps < rules {
		t.Errorf("to close a place costs %d steps, with %d rules that it concerns", steps, rules)
	}
	before = c.Steps()
	c.Revert(start)
	if steps := c.Steps() - before; steps < rules {
		t.Errorf("to take that back costs %d steps, with %d rules that it concerns", steps, rules)
	}
}

// A pod that names hosts is compared with each node by itself, and that is counted: with all that it
// lists, and whether or not it has a volume.
func TestNamesOfHostsAreCounted(t *testing.T) {
	const nodes, names = 300, 1000
	var hosts []string
	for i := range names {
		hosts = append(hosts, fmt.Sprint("elsewhere-", i))
	}
	s := parse(t, "node n-1")
	pod := &fleet.Pod{Namespace: "default", Name: "p", Spec: &corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: hosts}},
		}}},
	}}}}
	withVolume := *pod
	spec := *pod.Spec
	spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	withVolume.Name, withVolume.Spec = "q", &spec
	c := fit.NewRules().Cluster(fit.World{Kubernetes: s.Kubernetes, Pods: []*fleet.Pod{pod, &withVolume}, Namespaces: s.Namespaces})
	var places []*fit.Place
	for i := range nodes {
		n := s.Nodes[0]
		n.Name = fmt.Sprint("n-", i)
		places = append(places, c.Add(c.TemplateFrom(&n, none)))
	}
	row := c.NewRow(places)
	for _, p := range []*fleet.Pod{pod, &withVolume} {
		before := c.Steps()
		if at := row.Find(c.Tenant(p).Class); at != nil {
			t.Fatal("it names none of these")
		}
		if steps := c.Steps() - before; steps < nodes*names/4 {
			t.Errorf("to compare %d nodes with the %d names of %s costs %d steps", nodes, names, p.Name, steps)
		}
	}
}

package fit_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

// A new node comes with the pods of the DaemonSets that run there: their room, their
// host ports, and their labels. Those of other nodes do not matter.
func TestDaemonSetsComeFirst(t *testing.T) {
	for _, tc := range []struct{ name, daemon, pod, want string }{
		{"room", "cpu=100m tolerates=*", "cpu=1900m", "needs 1.9 cpu, has 1.83"},
		{"a node that it does not tolerate", "cpu=1", "cpu=1900m", ""},
		{"a node that it does not select", "cpu=1 tolerates=* selector=disk=ssd", "cpu=1900m", ""},
		{"host port", "hostport=9100 tolerates=*", "hostport=9100", "host port 9100/TCP is taken"},
		{"another host port", "hostport=9100 tolerates=*", "hostport=9101", ""},
		{"the pod keeps away from it", "labels=app=x tolerates=*", "labels=app=x apart", "anti-affinity with app=x, and pod default/d-… is there (kubernetes.io/hostname)"},
		{"it keeps away from the pod", "labels=app=x apart tolerates=*", "labels=app=x", "anti-affinity with app=x of pod default/d-… (kubernetes.io/hostname)"},
		{"it has other labels", "labels=app=y tolerates=*", "labels=app=x apart", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := parse(t, fmt.Sprintf("group web taints=dedicated=web:NoSchedule\ndaemonset d %s\npod p tolerates=* %s", tc.daemon, tc.pod))
			c := clusterOf(s)
			looks := c.TemplateOf(&s.Groups[0].NodeTemplates[0])
			class := c.Tenant(podNamed(s, "p")).Class
			why, _ := c.FitsNew(class, []*fit.NodeTemplate{looks})
			if got := why.String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if takes := c.Takes(class, []*fit.NodeTemplate{looks}); takes != (tc.want == "") {
				t.Errorf("takes it: %t", takes)
			}
		})
	}
}

// A pod of a DaemonSet that is present is not reckoned with a second time.
func TestReserveOnlyWhatIsMissing(t *testing.T) {
	s := parse(t, `
node n
daemonset d cpu=500m hostport=9100
daemonset e cpu=300m
pod d-1 on=n owner=DaemonSet/d cpu=500m hostport=9100
pod p cpu=1131m
`)
	c := clusterOf(s)
	looks := c.TemplateFrom(&s.Nodes[0], none)
	d := podNamed(s, "d-1")
	c.Reserve(looks, []*fleet.Pod{d})
	place := c.Add(looks)
	c.Put(c.Tenant(d), place)
	const want = "needs 1.131 cpu, has 1.13"
	if got := c.Fits(c.Tenant(podNamed(s, "p")).Class, place).String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Where a DaemonSet's pod is foreseen, everything is as where it is: a new node with
// the DaemonSets answers as one without any on which their pods were put, whatever is
// seated and undone meanwhile.
func TestDaemonsAreLikeAnyPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := func(name string) string {
			return strings.Join([]string{
				fmt.Sprintf("cpu=%dm", 100*rapid.IntRange(0, 6).Draw(t, name+" cpu")),
				rapid.SampledFrom([]string{"", "hostport=80", "hostport=81"}).Draw(t, name+" port"),
				"labels=app=" + rapid.SampledFrom([]string{"x", "y"}).Draw(t, name+" label"),
				rapid.SampledFrom([]string{"", "apart", "apart=topology.kubernetes.io/zone", "spread=topology.kubernetes.io/zone", "selector=disk=ssd"}).Draw(t, name+" rule"),
			}, " ")
		}
		text := "group web zones=a,b\nnode n labels=topology.kubernetes.io/zone=a\n"
		for i := range rapid.IntRange(0, 3).Draw(t, "daemons") {
			text += fmt.Sprintf("daemonset d-%d %s\n", i, words("daemon"))
		}
		for i := range rapid.IntRange(1, 6).Draw(t, "pods") {
			text += fmt.Sprintf("pod p-%d %s\n", i, words("pod"))
		}
		s, err := scenario.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		foreseen, put := newNodes(s, false), newNodes(s, true)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			pod := rapid.SampledFrom(s.Pods).Draw(t, "pod")
			place := rapid.IntRange(0, 2).Draw(t, "place")
			back := rapid.Bool().Draw(t, "back")
			got, want := foreseen.try(pod, place, back), put.try(pod, place, back)
			if got != want {
				t.Fatalf("%s at place %d: %q where daemons are foreseen, %q where they are\n%s", pod.Name, place, got, want, text)
			}
		}
	})
}

// newCluster is a cluster of a node and two that are new.
type newCluster struct {
	*fit.Cluster
	places []*fit.Place
}

// newNodes opens a node in each zone; put is true if the DaemonSets' pods are put there by
// hand.
func newNodes(s fleet.Snapshot, put bool) newCluster {
	sets := s.DaemonSets
	s.Pods = append([]*fleet.Pod(nil), s.Pods...)
	var daemons []*fleet.Pod
	if put {
		s.DaemonSets = nil
		for i := range sets {
			for _, zone := range []string{"a", "b"} {
				daemons = append(daemons, &fleet.Pod{
					Namespace: sets[i].Namespace, Name: sets[i].Name + zone, Labels: sets[i].Template.Labels, Spec: &sets[i].Template.Spec,
					Owner: &metav1.OwnerReference{Kind: "DaemonSet", Name: sets[i].Name},
				})
			}
		}
		s.Pods = append(s.Pods, daemons...)
	}
	c := newCluster{Cluster: clusterOf(s)}
	c.places = append(c.places, c.Add(c.TemplateFrom(&s.Nodes[0], none)))
	for i := range s.Groups[0].NodeTemplates {
		place := c.Open("new", c.TemplateOf(&s.Groups[0].NodeTemplates[i]))
		c.places = append(c.places, place)
	}
	for i, p := range daemons {
		if len(p.Spec.NodeSelector) == 0 { // the nodes have no such label
			c.Put(c.Tenant(p), c.places[1+i%2])
		}
	}
	return c
}

// try seats a pod where it fits, or returns why it does not; back undoes the seat.
func (c newCluster) try(pod *fleet.Pod, place int, back bool) string {
	start := c.Fork()
	t := c.Tenant(pod)
	// Whose pod is in the way is not compared: the names differ.
	why, _, _ := strings.Cut(c.Fits(t.Class, c.places[place]).String(), "anti-affinity")
	if seated := c.TrySeat(t, c.places[place]); seated && back {
		c.Revert(start)
	}
	return why
}

// What the DaemonSets of a new node cost when it is opened and undone.
func BenchmarkOpenWithDaemonSets(b *testing.B) {
	for _, n := range []int{0, 10} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			text := "group web\npod p labels=app=d apart\n"
			for i := range n {
				text += fmt.Sprintf("daemonset d-%d labels=app=d cpu=50m hostport=%d\n", i, 9000+i)
			}
			s, err := scenario.Parse(text)
			if err != nil {
				b.Fatal(err)
			}
			c := clusterOf(s)
			looks := c.TemplateOf(&s.Groups[0].NodeTemplates[0])
			for b.Loop() {
				start := c.Fork()
				c.Open("new", looks)
				c.Revert(start)
			}
		})
	}
}

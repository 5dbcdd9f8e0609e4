package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/shadow/record"
	"windlass.dev/windlass/scaler/shadow/seen"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func pod(name, cpu, role string) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r", Controller: &yes}}}}
	p.Spec.NodeSelector = map[string]string{"role": role}
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
	return p
}

func groupNamed(name string, desired, most int) group {
	return group{name: name, desired: desired, max: most, kind: "m5.large", tags: map[string]string{contract.TagTemplateLabel + "role": name}}
}

// with adds a Ready node of the group to what is seen.
func (s *sight) with(g int, name string, pods ...*corev1.Pod) *sight {
	n := s.groups[g].template(nil)
	n.Name, n.pods, n.Spec.ProviderID = name, pods, "aws:///eu-west-1a/i-"+name
	s.groups[g].instances = append(s.groups[g].instances, instance{id: n.instance()})
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	s.nodes = append(s.nodes, n)
	return s
}

func newTestAutoscaler() *autoscaler {
	return &autoscaler{options: options{threshold: 0.5}, backedOff: map[string]failure{}, needless: map[string]time.Time{}}
}

func TestDecide(t *testing.T) {
	resting := map[string]failure{"web": {until: noon.Add(time.Minute)}}
	for _, c := range []struct {
		name    string
		desired int
		pods    []*corev1.Pod
		failed  map[string]failure
		want    string
	}{
		{"for each pod a node", 1, []*corev1.Pod{pod("a", "1500m", "web"), pod("b", "1500m", "web")}, nil, "web +2 a,b"},
		{"two on one", 1, []*corev1.Pod{pod("a", "900m", "web"), pod("b", "900m", "web")}, nil, "web +1 a,b"},
		{"an upcoming node takes it", 2, []*corev1.Pod{pod("a", "1500m", "web")}, nil, ""},
		{"up to max", 3, []*corev1.Pod{pod("a", "1500m", "web"), pod("b", "1500m", "web"), pod("c", "1500m", "web"), pod("d", "1500m", "web")}, nil, "web +1 c"},
		{"at max", 4, slices.Repeat([]*corev1.Pod{pod("a", "1500m", "web")}, 4), nil, "a: max node group size reached"},
		{"none takes it", 1, []*corev1.Pod{pod("a", "9", "web"), pod("b", "1", "gpu")}, nil, "a: node(s) didn't match Pod's node affinity/selector\nb: node(s) didn't match Pod's node affinity/selector"},
		{"in back-off", 1, []*corev1.Pod{pod("a", "1500m", "web")}, resting, "a: in backoff after failed scale-up"},
	} {
		s := sight{now: noon, groups: []group{groupNamed("batch", 0, 0), groupNamed("web", c.desired, 4)}, pending: c.pods}
		s.with(1, "n1", pod("x", "1500m", "web"))
		a := newTestAutoscaler()
		if c.failed != nil {
			a.backedOff = c.failed
		}
		g, why := a.decide(s)
		var got []string
		if g.group != nil {
			var names []string
			for _, p := range g.pods {
				names = append(names, p.Name)
			}
			got = append(got, fmt.Sprintf("%s +%d %s", g.group.name, g.by, strings.Join(names, ",")))
		}
		for p, text := range why {
			if line := p.Name + ": " + text; !slices.Contains(got, line) {
				got = append(got, line)
			}
		}
		slices.Sort(got)
		if text := strings.Join(got, "\n"); text != c.want {
			t.Errorf("%s: %q, want %q", c.name, text, c.want)
		}
	}
}

// TestTaintOfANewNode: a node is Ready before its taint goes. Until then it is an upcoming one.
func TestTaintOfANewNode(t *testing.T) {
	s := sight{now: noon, groups: []group{groupNamed("web", 1, 4)}, pending: []*corev1.Pod{pod("a", "1500m", "web")}}
	s.with(0, "n1")
	s.nodes[0].Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
	if g, why := newTestAutoscaler().decide(s); g.group != nil || len(why) > 0 {
		t.Errorf("it grows %+v, or tells %v", g, why)
	}
}

func TestUnneeded(t *testing.T) {
	alone, stays := pod("alone", "100m", "web"), pod("stays", "100m", "web")
	alone.OwnerReferences, stays.Annotations = nil, map[string]string{contract.AnnotationForeignSafeToEvict: "false"}
	for _, c := range []struct {
		name string
		min  int
		pods []*corev1.Pod // on the second node
		want string
	}{
		{"empty", 0, nil, "n2"},
		{"its pod fits elsewhere", 0, []*corev1.Pod{pod("a", "400m", "web")}, "n2"},
		{"its pod does not", 0, []*corev1.Pod{pod("a", "600m", "web")}, ""},
		{"used by more than half", 0, []*corev1.Pod{pod("a", "1100m", "web")}, ""},
		{"at min", 2, nil, ""},
		{"a pod without a controller", 0, []*corev1.Pod{alone}, ""},
		{"a pod that is not to be evicted", 0, []*corev1.Pod{stays}, ""},
	} {
		s := sight{now: noon, groups: []group{groupNamed("web", 2, 4)}}
		s.groups[0].min = c.min
		s.with(0, "n1", pod("x", "1500m", "web")).with(0, "n2", c.pods...)
		nodes, _ := newTestAutoscaler().unneededOf(s)
		var names []string
		for _, n := range nodes {
			names = append(names, n.Name)
		}
		if got := strings.Join(names, ","); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestMinimumWhileNodesGo: a node that goes has left its group's size already, though that falls later.
func TestMinimumWhileNodesGo(t *testing.T) {
	s := sight{now: noon, groups: []group{groupNamed("web", 3, 4)}}
	s.groups[0].min = 1
	s.with(0, "n1").with(0, "n2").with(0, "n3")
	for want, goes := range []int{2: 0, 1: 1, 0: 2} {
		for i := range s.nodes {
			s.nodes[i].Spec.Taints = nil
			if i < goes {
				s.nodes[i].Spec.Taints = []corev1.Taint{taintOf(contract.TaintToBeDeleted, corev1.TaintEffectNoSchedule, noon)}
			}
		}
		if nodes, _ := newTestAutoscaler().unneededOf(s); len(nodes) != want {
			t.Errorf("%d go while %d may, want %d", len(nodes), goes, want)
		}
	}
}

// TestSelects: tags of all flags are one condition, and a named group has the flag's bounds.
func TestSelects(t *testing.T) {
	selection, err := asg.ParseSelection([]string{"2:7:web"}, []string{"asg:tag=a", "asg:tag=b=c"})
	if err != nil {
		t.Fatal(err)
	}
	web := group{name: "web", max: 9}
	if !selects(selection, &web) || web.min != 2 || web.max != 7 {
		t.Errorf("the named group is %+v", web)
	}
	for want, tags := range map[bool]map[string]string{true: {"a": "x", "b": "c"}, false: {"a": "x", "b": "d"}} {
		if got := selects(selection, &group{name: "other", tags: tags}); got != want {
			t.Errorf("with tags %v: %v", tags, got)
		}
	}
}

// TestStatusIsRead: what it writes is what is read of Cluster Autoscaler.
func TestStatusIsRead(t *testing.T) {
	s := sight{now: noon, groups: []group{groupNamed("web", 2, 4)}}
	s.with(0, "n1")
	a := newTestAutoscaler()
	a.conditions, a.needless["n1"] = conditions{}, noon
	a.backedOff["web"] = failure{since: noon, until: noon.Add(time.Minute), message: "denied"}
	status := a.status(s)
	records := seen.OfStatus(status)
	if len(records) != 2 || records[0].Seen.Kind != record.Failed || records[1].Sample.Groups[0].World != (record.Size{Desired: 2, Nodes: 1}) {
		t.Errorf("read as %+v", records)
	}
	if got := status.NodeGroups[0].ScaleDown.Candidates; got != 1 {
		t.Errorf("%d candidates", got)
	}
}

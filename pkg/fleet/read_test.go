package fleet_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"windlass.dev/windlass/pkg/fleet"
)

func TestReadSaysWhatIsWrong(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"not yaml", "now: [", "this is no YAML: yaml: line 1"},
		{"the same field twice", "now: 2025-01-01T10:00:00Z\nnow: 2025-01-01T10:00:00Z", `key "now" already set`},
		{"unknown field", "now: 2025-01-01T10:00:00Z\ngroups: [{name: web, size: 3}]", `unknown field "groups[0].size"`},
		{"two unknown fields", "now: 2025-01-01T10:00:00Z\nhue: red\nnodes: [{color: red}]", `unknown field "nodes[0].color"`},
		{"wrong kind", "now: 2025-01-01T10:00:00Z\ngroups: [{min: many}]", "groups[0].min: json: cannot unmarshal string"},
		{"no moment", "groups: []", "it has no field now"},
		{"a quantity that is none", "now: 2025-01-01T10:00:00Z\nnodes: [{allocatable: {cpu: four}}]", "nodes[0].allocatable.cpu: quantities must match"},
		{"deep inside", "now: 2025-01-01T10:00:00Z\npods: [{}, {spec: {containers: [{name: c, resources: {requests: {memory: lots}}}]}}]", "pods[1].spec.containers[0].resources.requests.memory: quantities"},
		{"a quantity that is never read", "now: 2025-01-01T10:00:00Z\nnodes: [{}, {allocatable: {cpu: '1e-999999999'}}]", `nodes[1].allocatable.cpu: "1e-999999999" is beyond all quantities`},
		{"a quantity that is never added to another", "now: 2025-01-01T10:00:00Z\npods: [{spec: {containers: [{name: c, resources: {requests: {memory: 1e999999999}}}]}}]", "pods[0].spec.containers[0].resources.requests.memory: \"1e999999999\" is beyond"},
		{"the same behind a pointer", "now: 2025-01-01T10:00:00Z\npods: [{spec: {volumes: [{name: v, emptyDir: {sizeLimit: 1e999999999}}]}}]", "pods[0].spec.volumes[0].emptyDir.sizeLimit: \"1e999999999\" is beyond"},
		{"a moment that is none", "now: yesterday", `now: parsing time "yesterday"`},
		{"no document", "just words", "this is no snapshot: json: cannot unmarshal string"},
		{"no text", "\x00\xff\xfe", "this is no YAML"},
		{"cut short", "now: 2025-01-01T10:00:00Z\ngroups: [{name: web, min: 1", "this is no YAML"},
		{"nothing", "", "it has no field now"},
	} {
		_, err := fleet.Read(strings.NewReader(tc.in))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got error %v, want one with %q", tc.name, err, tc.want)
		}
	}
}

// What looks like a huge quantity where there is none is text.
func TestReadTextLikeQuantities(t *testing.T) {
	got, err := fleet.Read(strings.NewReader("now: 2025-01-01T10:00:00Z\nnodes: [{name: one, labels: {commit: \"1e999999999\"}, allocatable: {cpu: \"1e1\"}}]"))
	if err != nil || got.Nodes[0].Labels["commit"] != "1e999999999" || got.Nodes[0].Allocatable.Cpu().Value() != 10 {
		t.Errorf("%v, %v", got.Nodes, err)
	}
}

// Pods of one template share one spec, as those that are observed do.
func TestReadPodsShareSpecs(t *testing.T) {
	s, err := fleet.Read(strings.NewReader(`now: 2025-01-01T10:00:00Z
pods:
- {name: a, spec: {priority: 1, containers: []}}
- {name: b, spec: {containers: [], priority: 1}}
- {name: c, spec: {priority: 2, containers: []}}
- {name: none}
- null`))
	if err != nil {
		t.Fatal(err)
	}
	if p := s.Pods; p[0].Spec != p[1].Spec || p[0].Spec == p[2].Spec || p[3].Spec != nil {
		t.Errorf("shared %v, mixed up %v, made up %v", p[0].Spec == p[1].Spec, p[0].Spec == p[2].Spec, p[3].Spec)
	}
}

func TestReadWhatWriteWrote(t *testing.T) {
	at := time.Date(2025, 1, 1, 10, 0, 0, 0, time.UTC)
	want := fleet.Snapshot{
		Now: at,
		Groups: []fleet.Group{{
			Name: "web", Min: 1, Max: 3, Desired: 2,
			NodeTemplates: []fleet.NodeTemplate{{Zone: "a", Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1930m")}}},
			Instances:     []fleet.Instance{{ID: "i-1", State: fleet.InService}},
		}},
		Nodes: []fleet.Node{{Name: "web-1", ProviderID: "aws:///a/i-1", Ready: true}},
		Pods:  []*fleet.Pod{{Namespace: "shop", Name: "p", Spec: &corev1.PodSpec{NodeSelector: map[string]string{"disk": "ssd"}}, Scheduling: fleet.Unschedulable}},
		State: fleet.State{BackOffs: map[string]fleet.BackOff{"web": {Until: at, Count: 1}}},
	}
	var text bytes.Buffer
	if err := fleet.Write(&text, want); err != nil {
		t.Fatal(err)
	}
	got, err := fleet.Read(&text)
	if err != nil {
		t.Fatal(err)
	}
	equal := cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })
	if diff := cmp.Diff(want, got, equal); diff != "" {
		t.Errorf("read differs from what was written (-want +got):\n%s", diff)
	}
}

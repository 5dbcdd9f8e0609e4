package upstream_test

import (
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit/upstream"
)

func filters(t *testing.T, version string) *upstream.Filters {
	t.Helper()
	f, err := upstream.New(version)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func plugins(refusals []upstream.Refusal) []string {
	var names []string
	for _, r := range refusals {
		names = append(names, r.Plugin)
	}
	return names
}

// namesNode asks for nodes by their name.
func namesNode(op corev1.NodeSelectorOperator, names ...string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: op, Values: names}}}},
	}}}
}

// Every plugin that looks at a pod and a node alone refuses for its own reason,
// and all that refuse are reported.
func TestStatic(t *testing.T) {
	dedicated := corev1.Taint{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}
	// Which features pods need of a node is known from 1.36 on.
	inOwnNamespace := corev1.PodSpec{HostNetwork: true, HostUsers: ptr.To(false)}
	for _, tc := range []struct {
		name, version string
		pod           corev1.PodSpec
		node          corev1.Node
		want          []string
	}{
		{name: "nothing asked"},
		{name: "cordoned", node: corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true}}, want: []string{"NodeUnschedulable"}},
		{
			name: "cordoned and tolerated", node: corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true}},
			pod: corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}},
		},
		{name: "another node by name", pod: corev1.PodSpec{NodeName: "b"}, want: []string{"NodeName"}},
		{name: "taint", node: corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{dedicated}}}, want: []string{"TaintToleration"}},
		{name: "selector", pod: corev1.PodSpec{NodeSelector: map[string]string{"disk": "ssd"}}, want: []string{"NodeAffinity"}},
		{name: "by a field", pod: corev1.PodSpec{Affinity: namesNode(corev1.NodeSelectorOpIn, "a")}},
		{name: "by a field, another", pod: corev1.PodSpec{Affinity: namesNode(corev1.NodeSelectorOpIn, "b")}, want: []string{"NodeAffinity"}},
		{name: "all but one", pod: corev1.PodSpec{Affinity: namesNode(corev1.NodeSelectorOpNotIn, "a")}, want: []string{"NodeAffinity"}},
		{name: "feature", pod: inOwnNamespace, want: []string{"NodeDeclaredFeatures"}},
		{name: "feature declared", pod: inOwnNamespace, node: corev1.Node{Status: corev1.NodeStatus{DeclaredFeatures: []string{"UserNamespacesHostNetworkSupport"}}}},
		{name: "feature before there were any", version: "v1.35.2-eks-1", pod: inOwnNamespace},
		{
			name: "all at once", pod: corev1.PodSpec{NodeName: "b", NodeSelector: map[string]string{"disk": "ssd"}},
			node: corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{dedicated}}},
			want: []string{"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.node.Name = "a"
			got := filters(t, tc.version).Static(&corev1.Pod{Spec: tc.pod}, &tc.node)
			if diff := cmp.Diff(tc.want, plugins(got)); diff != "" {
				t.Errorf("refusing plugins (-want +got):\n%s\n%v", diff, got)
			}
			for _, r := range got {
				if len(r.Reasons) == 0 {
					t.Errorf("%s gives no reason", r.Plugin)
				}
			}
		})
	}
}

func TestNewRefusesWhatIsNoVersion(t *testing.T) {
	for _, version := range []string{"", "1.20", "1.33", "v1.35.2-eks-1", "1.99"} {
		if _, err := upstream.New(version); err != nil {
			t.Errorf("%q: %v", version, err)
		}
	}
	if _, err := upstream.New("latest"); err == nil {
		t.Error("latest is taken for a version")
	}
}

// The plugins of a real scheduler come with informers, recorders and queues that
// run on their own. Here nothing does.
func TestNothingRunsInTheBackground(t *testing.T) {
	before := runtime.NumGoroutine()
	f := filters(t, "1.36")
	f.Sync(nil, storage(), fleet.Devices{})
	f.Seat(mounting("p", "new"), f.NewHost(node("a1", "a"), nil, nil))
	if now := runtime.NumGoroutine(); now > before {
		t.Errorf("%d goroutines, %d before", now, before)
	}
}

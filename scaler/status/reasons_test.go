package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/statuspage"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// What one leader posted on its page the next one reads there.
func TestReasonsOfNodes(t *testing.T) {
	standing := func(text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ours, Name: contract.ConfigMapStatus}, Data: map[string]string{statuspage.Key: text}}
	}
	page, err := NewPage(fleet.Snapshot{}, plan.Plan{Verdicts: []verdict.Verdict{
		{Of: verdict.OfNode, Name: "a", Reason: verdict.NodeNeeded, Details: verdict.Quote("90%: more than 50%")},
		{Of: verdict.OfNode, Name: "b", Reason: verdict.NodeHeld, Details: verdict.Quote("its annotation\nsays so")},
		{Of: verdict.OfPod, Name: "default/p", Reason: verdict.PodNoGroupFits},
	}}, nil).Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReasonsOfNodes(t.Context(), fake.NewClientset(standing(page)).CoreV1().ConfigMaps(ours))
	if diff := cmp.Diff(map[string]verdict.Reason{"a": verdict.NodeNeeded, "b": verdict.NodeHeld}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := ReasonsOfNodes(t.Context(), fake.NewClientset().CoreV1().ConfigMaps(ours)); err != nil || len(got) > 0 {
		t.Errorf("without a page: %v, %v", got, err)
	}
	if _, err := ReasonsOfNodes(t.Context(), fake.NewClientset(standing("nodes: {")).CoreV1().ConfigMaps(ours)); err == nil {
		t.Error("half a page was read")
	}
}

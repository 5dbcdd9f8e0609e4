package status

import (
	"fmt"
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

// What one leader has posted the next one reads there, of all nodes.
func TestReasonsOfNodes(t *testing.T) {
	standing := func(text string, verdicts []byte) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ours, Name: contract.ConfigMapStatus},
			Data: map[string]string{statuspage.Key: text}, BinaryData: map[string][]byte{statuspage.VerdictsKey: verdicts}}
	}
	s, want := fleet.Snapshot{}, map[string]verdict.Reason{}
	p := plan.Plan{Verdicts: []*verdict.Verdict{{Of: verdict.OfPod, Name: "default/p", Reason: verdict.PodNoGroupFits}}}
	for i := range 4 * nodeNames { // more than the page names
		v := &verdict.Verdict{Of: verdict.OfNode, Name: fmt.Sprint(i), Reason: verdict.NodeNeeded, Details: verdict.Quote("90%: more\nthan 50%")}
		if i%3 == 0 {
			v.Reason = verdict.NodeHeld
		}
		s.Nodes = append(s.Nodes, fleet.Node{Name: v.Name})
		p.Verdicts, want[v.Name] = append(p.Verdicts, v), v.Reason
	}
	page, pageErr := NewPage(s, p, nil).Encode()
	verdicts, err := NewVerdicts(s, p, Bill{}).Encode()
	if err != nil || pageErr != nil {
		t.Fatal(err, pageErr)
	}
	got, err := ReasonsOfNodes(t.Context(), fake.NewClientset(standing(page, verdicts)).CoreV1().ConfigMaps(ours))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	// A leader of an older version has left the page alone.
	if got, err := ReasonsOfNodes(t.Context(), fake.NewClientset(standing(page, nil)).CoreV1().ConfigMaps(ours)); err != nil || len(got) != 2*nodeNames || got["0"] != verdict.NodeHeld {
		t.Errorf("of the page alone: %v, %v", got, err)
	}
	if got, err := ReasonsOfNodes(t.Context(), fake.NewClientset().CoreV1().ConfigMaps(ours)); err != nil || len(got) > 0 {
		t.Errorf("without a page: %v, %v", got, err)
	}
	if _, err := ReasonsOfNodes(t.Context(), fake.NewClientset(standing("nodes: {", nil)).CoreV1().ConfigMaps(ours)); err == nil {
		t.Error("half a page was read")
	}
}

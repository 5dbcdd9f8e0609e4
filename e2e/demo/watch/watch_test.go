package watch

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/e2e/demo/story"
	"windlass.dev/windlass/pkg/statuspage"
)

// TestVerdictsOf: what the scaler writes on its page is read back as verdicts.
func TestVerdictsOf(t *testing.T) {
	page := statuspage.Page{
		Groups: []statuspage.GroupLine{{Name: "web", Reason: "ScalingUp", Message: "1→2"}},
		Pods:   []statuspage.PodLine{{Reason: "TriggersScaleUp", Message: "web", Count: 5, Pods: []string{"demo/a", "demo/b"}}},
		Nodes:  []statuspage.NodeLine{{Reason: "Needed", Count: 2, Nodes: map[string]string{"n2": "busy", "n1": "half"}}},
	}
	text, err := page.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := verdictsOf(map[string]string{"status": text})
	if err != nil {
		t.Fatal(err)
	}
	want := []story.Verdict{
		{Of: "group", Name: "web", Reason: "ScalingUp", Message: "1→2"},
		{Of: "pod", Name: "demo/a", Count: 5, Reason: "TriggersScaleUp", Message: "web"},
		{Of: "node", Name: "n1", Reason: "Needed", Message: "half"},
		{Of: "node", Name: "n2", Reason: "Needed", Message: "busy"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

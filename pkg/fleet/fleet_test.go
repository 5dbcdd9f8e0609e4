package fleet

import (
	"encoding/json"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
)

func TestInstanceID(t *testing.T) {
	for id, want := range map[string]string{
		"aws:///eu-west-1a/i-0123456789abcdef0": "i-0123456789abcdef0",
		"aws:///eu-west-1a/":                    "",
		"aws:///us-east-1/fargate-ip-10-0-0-1":  "",
		"gce://project/zone/i-0123":             "gce://project/zone/i-0123",
		"k3s://box":                             "k3s://box",
		"":                                      "",
	} {
		if got := (Node{ProviderID: id}).InstanceID(); got != want {
			t.Errorf("instance of %q = %q, want %q", id, got, want)
		}
	}
}

func TestNamesOther(t *testing.T) {
	for _, c := range []struct {
		providerID, instance string
		want                 bool
	}{
		{"aws:///eu-west-1a/i-1", "i-2", true},
		{"aws:///us-east-1/fargate-ip-10-0-0-1", "i-2", true},
		{"lab://b", "lab://a", true},
		{"k3s://b", "k3s://a", true},
		{"k3s://b", "i-2", false},
		{"k3s://b", "lab://a", false},
		{"aws:///eu-west-1a/i-1", "lab://a", false},
		{"", "lab://a", false},
		{"", "i-2", false},
	} {
		if got := (Node{ProviderID: c.providerID}).NamesOther(c.instance); got != c.want {
			t.Errorf("%q names another machine than %q: %v, want %v", c.providerID, c.instance, got, c.want)
		}
	}
}

func TestWeakIDs(t *testing.T) {
	const id = "i-0123456789abcdef0"
	for name, c := range map[string]struct {
		node Node
		want bool
	}{
		"its own node":                      {Node{Name: id, ProviderID: "aws:///eu-west-1a/" + id}, false},
		"a resource name":                   {Node{Name: id + ".eu-west-1.compute.internal"}, true},
		"the id alone":                      {Node{Name: id}, true},
		"within a name":                     {Node{Name: "web-" + id + "-blue"}, true},
		"two ids":                           {Node{Name: "i-7-" + id + ".ec2.internal"}, true},
		"an IP name":                        {Node{Name: "ip-10-0-1-2.eu-west-1.compute.internal"}, false},
		"a longer id":                       {Node{Name: id + "1.eu-west-1.compute.internal"}, false},
		"a longer id, and then this one":    {Node{Name: id + "1." + id}, true},
		"a hostname":                        {Node{Name: "web-1", Labels: map[string]string{corev1.LabelHostname: id + ".ec2.internal"}}, true},
		"another label":                     {Node{Name: "web-1", Labels: map[string]string{"copied-from": id}}, false},
		"k3s without a cloud provider":      {Node{Name: "web-1", ProviderID: "k3s://" + id}, true},
		"a provider id without a zone":      {Node{Name: "web-1", ProviderID: "aws://" + id}, false}, // which is its own
		"a CSI driver":                      {Node{Name: "web-1", Annotations: map[string]string{contract.AnnotationCSINodeID: `{"ebs.csi.aws.com":"` + id + `"}`}}, true},
		"the CSI driver of another machine": {Node{Name: "web-1", Annotations: map[string]string{contract.AnnotationCSINodeID: `{"ebs.csi.aws.com":"i-1"}`}}, false},
		"a name against a provider id":      {Node{Name: id + ".ec2.internal", ProviderID: "aws:///eu-west-1a/i-1"}, true},
		"nothing":                           {Node{}, false},
	} {
		if got := slices.Contains(slices.Collect(c.node.WeakIDs()), id); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestInstanceStates: every state of Auto Scaling counts towards at most one
// of: desired capacity, leaving, warm pool.
func TestInstanceStates(t *testing.T) {
	for state, want := range map[string]string{
		"Pending": "live", "Pending:Wait": "live", "Pending:Proceed": "live", "InService": "live",
		"Terminating": "leaving", "Terminating:Wait": "leaving", "Terminating:Proceed": "leaving", "Terminating:Retained": "leaving", "Terminated": "leaving",
		"Standby": "", "EnteringStandby": "", "Detaching": "", "Detached": "", "Quarantined": "",
		"Warmed:Pending": "warmed", "Warmed:Running": "warmed", "Warmed:Stopped": "warmed", "Warmed:Terminating:Wait": "warmed",
	} {
		i := Instance{State: state}
		got := ""
		for word, is := range map[string]bool{"live": i.Live(), "leaving": i.Terminating(), "warmed": i.Warmed()} {
			if !is {
				continue
			}
			if got != "" {
				t.Errorf("%s is both %s and %s", state, got, word)
			}
			got = word
		}
		if got != want {
			t.Errorf("%s is %q, want %q", state, got, want)
		}
	}
}

func TestBudgetMatches(t *testing.T) {
	pod := Pod{Namespace: "shop", Labels: map[string]string{"app": "web"}}
	for _, c := range []struct {
		reason string
		budget Budget
		want   bool
	}{
		{"its own selector", Budget{Namespace: "shop", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}, true},
		{"another namespace", Budget{Namespace: "lab", Selector: &metav1.LabelSelector{}}, false},
		{"an empty selector guards all", Budget{Namespace: "shop", Selector: &metav1.LabelSelector{}}, true},
		{"an absent selector guards none", Budget{Namespace: "shop"}, false},
		{"a broken selector guards none", Budget{Namespace: "shop", Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}}, false},
	} {
		if got := c.budget.Matches(pod); got != c.want {
			t.Errorf("%s: got %v, want %v", c.reason, got, c.want)
		}
	}
}

// A pod is written as people know it, and read again: what stands apart in memory does not in the text.
func TestPodAsText(t *testing.T) {
	p := Pod{Namespace: "a", Name: "b", Scheduling: Gated, Rare: &Rare{Claims: []corev1.PodResourceClaimStatus{{Name: "gpu"}}}}
	const want = `{"namespace":"a","name":"b","spec":null,"scheduling":"SchedulingGated","claims":[{"name":"gpu"}]}`
	text, err := json.Marshal(p)
	if err != nil || string(text) != want {
		t.Fatalf("%s, %v, want %s", text, err, want)
	}
	var read Pod
	if err := json.Unmarshal(text, &read); err != nil || !Equal(p, read) {
		t.Errorf("read again: %+v, %v", read, err)
	}
	if err := json.Unmarshal([]byte(`{"scheduling":"Sometimes"}`), &read); err == nil {
		t.Error("an unknown word is understood")
	}
	plain, err := json.Marshal(Pod{Name: "b"})
	if err != nil || string(plain) != `{"namespace":"","name":"b","spec":null}` {
		t.Errorf("without any of it: %s, %v", plain, err)
	}
}

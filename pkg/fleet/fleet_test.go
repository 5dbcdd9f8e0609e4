package fleet

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestInstanceID(t *testing.T) {
	for id, want := range map[string]string{
		"aws:///eu-west-1a/i-0123456789abcdef0": "i-0123456789abcdef0",
		"aws:///eu-west-1a/":                    "",
		"aws:///us-east-1/fargate-ip-10-0-0-1":  "",
		"gce://project/zone/i-0123":             "",
		"":                                      "",
	} {
		if got := (Node{ProviderID: id}).InstanceID(); got != want {
			t.Errorf("instance of %q = %q, want %q", id, got, want)
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
		for word, is := range map[string]bool{"live": i.Live(), "leaving": i.Leaving(), "warmed": i.Warmed()} {
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

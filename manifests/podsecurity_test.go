package manifests

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	podsecurity "k8s.io/pod-security-admission/policy"

	"windlass.dev/windlass/pkg/contract"
)

// TestPodSecurity asks the library that the API server itself asks. Both programs keep
// to "restricted", but for the agent's host network: nothing else may come to need more.
func TestPodSecurity(t *testing.T) {
	want := map[string]map[api.Level][]string{
		contract.AppScaler: {},
		contract.AppAgent: {
			api.LevelBaseline:   {"host namespaces: hostNetwork=true"},
			api.LevelRestricted: {"host namespaces: hostNetwork=true"},
		},
	}
	got := map[string]map[api.Level][]string{}
	for name, w := range renderBase(t).workloads() {
		got[name] = violations(t, w.template)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what each level forbids (-want +got):\n%s", diff)
	}
}

// TestNamespaceHoldsItsPods: a level applies to a whole namespace. One that a pod of
// ours breaks would keep the pod out, or warn at each `kubectl apply`; a lower one than
// they need would let more in than that.
func TestNamespaceHoldsItsPods(t *testing.T) {
	o := renderBase(t)
	want := api.LevelRestricted
	for _, level := range []api.Level{api.LevelRestricted, api.LevelBaseline} {
		for _, w := range o.workloads() {
			if len(violations(t, w.template)[level]) > 0 {
				want = below[level]
			}
		}
	}
	for _, label := range []string{api.EnforceLevelLabel, api.AuditLevelLabel, api.WarnLevelLabel} {
		if got := o.namespaces[0].Labels[label]; got != string(want) {
			t.Errorf("%s is %q, want %q, the highest level that holds for all pods", label, got, want)
		}
	}
}

// below is the next level that allows more.
var below = map[api.Level]api.Level{api.LevelRestricted: api.LevelBaseline, api.LevelBaseline: api.LevelPrivileged}

// violations are what each level forbids of a pod; a level that forbids nothing is left out.
func violations(t *testing.T, template corev1.PodTemplateSpec) map[api.Level][]string {
	t.Helper()
	evaluator, err := podsecurity.NewEvaluator(podsecurity.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[api.Level][]string{}
	for _, level := range []api.Level{api.LevelBaseline, api.LevelRestricted} {
		for _, result := range evaluator.EvaluatePod(api.LevelVersion{Level: level, Version: api.LatestVersion()}, &template.ObjectMeta, &template.Spec) {
			if !result.Allowed {
				out[level] = append(out[level], result.ForbiddenReason+": "+result.ForbiddenDetail)
			}
		}
	}
	return out
}

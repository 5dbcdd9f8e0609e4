package contract

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Who else has written the taint that kube-proxy looks at keeps it, and the server takes
// one of its key and effect only.
func TestKubeProxyTaint(t *testing.T) {
	theirs := corev1.Taint{Key: TaintToBeDeleted, Value: "1700000000", Effect: corev1.TaintEffectNoSchedule}
	other := corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoSchedule}
	for _, tc := range []struct{ before, with, without []corev1.Taint }{
		{nil, []corev1.Taint{KubeProxyTaint()}, nil},
		{[]corev1.Taint{other}, []corev1.Taint{other, KubeProxyTaint()}, []corev1.Taint{other}},
		{[]corev1.Taint{KubeProxyTaint(), other}, []corev1.Taint{KubeProxyTaint(), other}, []corev1.Taint{other}},
		{[]corev1.Taint{theirs}, []corev1.Taint{theirs}, []corev1.Taint{theirs}},
	} {
		before := slices.Clone(tc.before)
		if diff := cmp.Diff(tc.with, WithKubeProxyTaint(tc.before)); diff != "" {
			t.Errorf("with (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(tc.without, WithoutKubeProxyTaint(tc.before)); diff != "" {
			t.Errorf("without (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(before, tc.before); diff != "" {
			t.Errorf("the caller's taints were changed (-want +got):\n%s", diff)
		}
	}
	if errs := validation.IsValidLabelValue(KubeProxyTaint().Value); len(errs) > 0 {
		t.Errorf("the server takes no such value: %v", errs)
	}
}

package world

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestExpand(t *testing.T) {
	env := map[string]string{"NAME": "x", "EMPTY": ""}
	for in, want := range map[string]string{
		"plain":                    "plain",
		"--a=$(NAME),b/$(NAME)":    "--a=x,b/x",
		"$(EMPTY)":                 "",
		"$(UNKNOWN) stays":         "$(UNKNOWN) stays",
		"$$(NAME) is not replaced": "$(NAME) is not replaced",
	} {
		if got := expand(in, env); got != want {
			t.Errorf("expand(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestEnvironment: sources in the order of the manifest, and an unknown one is
// an error.
func TestEnvironment(t *testing.T) {
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"}, Spec: corev1.PodSpec{NodeName: "n"}}
	k := programs{client: fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: "ns"}, Data: map[string]string{"CLUSTER_NAME": "c"},
	})}
	got, err := k.environment(t.Context(), pod, corev1.Container{
		EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}},
		Env: []corev1.EnvVar{
			{Name: "NODE_NAME", ValueFrom: field("spec.nodeName")},
			{Name: "BOTH", Value: "$(CLUSTER_NAME)/$(NODE_NAME)"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"CLUSTER_NAME": "c", "NODE_NAME": "n", "BOTH": "c/n"}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := k.environment(t.Context(), pod, corev1.Container{Env: []corev1.EnvVar{{Name: "X", ValueFrom: field("metadata.labels")}}}); err == nil {
		t.Error("a field that is not supported gave no error")
	}
}

func TestHasFlag(t *testing.T) {
	args := []string{"run", "--metrics-address=:8085", "--metrics"}
	if !hasFlag(args, "metrics-address") || hasFlag(args, "metrics-addr") {
		t.Error("hasFlag looks at more or less than the flag's whole name")
	}
}

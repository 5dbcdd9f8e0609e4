package fleet_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/fleet"
)

// Anybody who may make a pod may ask for 1e9999999 cpus of it: whoever computes with that is busy for
// seconds.
func TestPodFromCutsWhatIsBeyondAllNodes(t *testing.T) {
	for _, text := range []string{"1e9999999", "12345678901234567890e299999", "1e19"} {
		for name, change := range map[string]func(*corev1.PodSpec, corev1.ResourceList){
			"requests": func(s *corev1.PodSpec, l corev1.ResourceList) { s.Containers[1].Resources.Requests = l },
			"limits":   func(s *corev1.PodSpec, l corev1.ResourceList) { s.Containers[1].Resources.Limits = l },
			"init":     func(s *corev1.PodSpec, l corev1.ResourceList) { s.InitContainers[0].Resources.Requests = l },
			"overhead": func(s *corev1.PodSpec, l corev1.ResourceList) { s.Overhead = l },
			"of the pod": func(s *corev1.PodSpec, l corev1.ResourceList) {
				s.Resources = &corev1.ResourceRequirements{Requests: l}
			},
		} {
			list := corev1.ResourceList{"cpu": resource.MustParse(text), "memory": resource.MustParse("1Gi")}
			pod := corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 2), InitContainers: make([]corev1.Container, 1)}}
			change(&pod.Spec, list)
			got := fleet.PodFrom(&pod).Spec.DeepCopy()
			want := corev1.PodSpec{Containers: make([]corev1.Container, 2), InitContainers: make([]corev1.Container, 1)}
			change(&want, corev1.ResourceList{"cpu": *resource.NewQuantity(math.MaxInt64, resource.DecimalExponent), "memory": resource.MustParse("1Gi")})
			if !equality.Semantic.DeepEqual(*got, want) {
				t.Errorf("%s in %s: it is not cut", text, name)
			}
			if cpu := list["cpu"]; cpu.AsApproximateFloat64() <= math.MaxInt64 {
				t.Errorf("%s in %s: the object of the cache was changed", text, name)
			}
		}
	}
}

// TestParseQuantity: what is read is what Kubernetes reads, and can be computed with at once; an
// error is short, however long the text is.
func TestParseQuantity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sign := rapid.SampledFrom([]string{"", "-", "+"})
		digits := rapid.StringMatching(`[0-9]{0,30}(\.[0-9]{0,30})?`).Draw(t, "digits")
		exponent := rapid.OneOf(rapid.IntRange(0, 99), rapid.IntRange(0, 2_000_000_000)).Draw(t, "exponent")
		suffix := rapid.SampledFrom([]string{"", "m", "Gi", "E", "x", "e", fmt.Sprint("e", exponent), fmt.Sprint("E-", exponent), fmt.Sprint("e+", exponent)}).Draw(t, "suffix")
		text := sign.Draw(t, "sign") + digits + suffix
		got, err := fleet.ParseQuantity(text)
		if exponent > 99 && len(suffix) > 2 {
			if err == nil {
				t.Fatalf("%q is read", text)
			}
			return
		}
		want, wrong := resource.ParseQuantity(text)
		if (err == nil) != (wrong == nil) && len(text) <= 64 || err == nil && got.Cmp(want) != 0 {
			t.Fatalf("%q is %s, %v; want %s, %v", text, got.String(), err, want.String(), wrong)
		}
		got.Add(want)
		_, _, _ = got.Value(), got.MilliValue(), got.String()
	})
	for text, want := range map[string]string{
		"1e999999999":              `"1e999999999" is beyond all quantities: want one such as 2, 500m or 20Gi`,
		"0e999999999":              `"0e999999999" is beyond all quantities`,
		"many":                     `"many" is no quantity such as 2, 500m or 20Gi`,
		"":                         `"" is no quantity`,
		strings.Repeat("9", 1<<20): `99…" is beyond all quantities`,
	} {
		if q, err := fleet.ParseQuantity(text); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 150 {
			t.Errorf("%.20s is %s, %.200v; want %s", text, q.String(), err, want)
		}
	}
}

package fleet_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/fleet"
)

// Whatever anybody writes, what is left of it can be written, read, compared and added.
func TestWhatIsBeyondIsCut(t *testing.T) {
	beyond, usual := resource.MustParse("1e300"), resource.MustParse("2")
	node := corev1.Node{Status: corev1.NodeStatus{Capacity: corev1.ResourceList{"a": beyond, "b": usual}, Allocatable: corev1.ResourceList{"a": beyond}}}
	row := fleet.NodeFrom(&node)
	if q := node.Status.Capacity["a"]; q.Cmp(beyond) != 0 {
		t.Error("the Node itself was changed")
	}
	slice := resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{
		Devices:        []resourcev1.Device{{Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: beyond, RequestPolicy: &resourcev1.CapacityRequestPolicy{Default: &beyond}}}}},
		SharedCounters: []resourcev1.CounterSet{{Counters: map[string]resourcev1.Counter{"c": {Value: beyond}, "d": {Value: usual}}}},
	}}
	fleet.CutQuantities(&slice)
	for what, object := range map[string]any{"a node": row, "a slice": slice, "amounts": fleet.BoundedList(corev1.ResourceList{"a": beyond})} {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "e300") || !strings.Contains(string(text), "9223372036854775807") {
			t.Errorf("%s: %s", what, text)
		}
	}
	if q := slice.Spec.SharedCounters[0].Counters["d"].Value; q.Cmp(usual) != 0 || !row.Capacity["b"].Equal(usual) {
		t.Errorf("what is not beyond was changed: %v, %v", q, row.Capacity)
	}
}

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

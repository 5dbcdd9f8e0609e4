package userdata

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"windlass.dev/windlass/pkg/fleet"
)

// Settings is what user data sets. Zero fields set nothing: what an EKS image
// does by itself holds then.
type Settings struct {
	Family         Family
	Density        Density
	KubeReserved   Amounts
	SystemReserved Amounts
	// EvictionHard has signals for keys, such as memory.available, and percentages
	// beside quantities for values.
	EvictionHard Amounts
	Labels       map[string]string
	Taints       []corev1.Taint
	LocalDisks   Disks
	// Faults are sentences about what was left out, and why.
	Faults []string
}

// Family is the kind of machine image that user data is written for.
type Family string

// Families that user data is recognised as. AmazonLinux stands for both, 2 and
// 2023: they reserve the same.
const (
	Unknown      Family = ""
	AmazonLinux  Family = "AmazonLinux"
	Bottlerocket Family = "Bottlerocket"
	Windows      Family = "Windows"
)

// Disks is what becomes of an instance's own disks: with raid, they hold the
// pods' ephemeral storage.
type Disks string

// Arrangements that matter to pods.
const (
	NoDisks Disks = ""
	RAID0   Disks = "raid0"
	RAID10  Disks = "raid10"
)

// Amounts are quantities by name.
type Amounts struct {
	// Whole is true if what is not named here is nothing; otherwise the image's own
	// amount stays.
	Whole bool
	Of    map[string]string
}

// With lays the amounts over those that the image has by itself.
func (a Amounts) With(image map[string]string) map[string]string {
	if a.Whole {
		return a.Of
	}
	out := maps.Clone(image)
	maps.Copy(out, a.Of)
	return out
}

// fault notes what was left out.
func (s *Settings) fault(format string, args ...any) {
	s.Faults = append(s.Faults, "user data: "+fmt.Sprintf(format, args...))
}

// labels adds labels; a malformed one is a fault.
func (s *Settings) labels(given map[string]string) {
	for name, value := range given {
		if wrong := slices.Concat(validation.IsQualifiedName(name), validation.IsValidLabelValue(value)); len(wrong) > 0 {
			s.fault("the label %s=%s is left out: %s", name, value, wrong[0])
			continue
		}
		if s.Labels == nil {
			s.Labels = map[string]string{}
		}
		s.Labels[name] = value
	}
}

var taintEffects = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}

// taint adds a taint; a later one of the same key and effect wins.
func (s *Settings) taint(t corev1.Taint) {
	wrong := slices.Concat(validation.IsQualifiedName(t.Key), validation.IsValidLabelValue(t.Value))
	if !slices.Contains(taintEffects, t.Effect) {
		wrong = append(wrong, fmt.Sprintf("its effect is none of %v", taintEffects))
	}
	if len(wrong) > 0 {
		s.fault("the taint %s=%s:%s is left out: %s", t.Key, t.Value, t.Effect, wrong[0])
		return
	}
	s.Taints = slices.DeleteFunc(s.Taints, func(o corev1.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect })
	s.Taints = append(s.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
}

// amounts keeps what can be read of named quantities. Percentages are amounts
// where the kubelet takes them: in eviction thresholds.
func (s *Settings) amounts(what string, into *Amounts, given map[string]string, percent bool) {
	for name, text := range given {
		if !isAmount(text, percent) {
			s.fault("%s of %s is left out: %q is no quantity", what, name, text)
			continue
		}
		if into.Of == nil {
			into.Of = map[string]string{}
		}
		into.Of[name] = text
	}
}

func isAmount(text string, percent bool) bool {
	if number, ok := strings.CutSuffix(text, "%"); ok && percent {
		share, err := strconv.ParseFloat(number, 64)
		return err == nil && share >= 0 && share <= 100
	}
	q, err := fleet.ParseQuantity(text)
	return err == nil && q.Sign() >= 0
}

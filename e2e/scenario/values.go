package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// day is the day of all scenarios.
var day = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// clockTime reads a time of that day such as 10:00:00; a day before it is
// written -1d10:00:00.
func clockTime(value string) (time.Time, error) {
	t, err := time.Parse(time.TimeOnly, value)
	if err != nil {
		return time.Time{}, fmt.Errorf("want a time such as 10:00:00")
	}
	return day.Add(time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute + time.Duration(t.Second())*time.Second), nil
}

func printTime(t time.Time) string { return t.UTC().Format(time.TimeOnly) }

// pairs reads k=v,k2=v2.
func pairs(value string) (map[string]string, error) {
	out := map[string]string{}
	for _, p := range list(value) {
		k, v, ok := strings.Cut(p, "=")
		if !ok {
			return nil, fmt.Errorf("%q is no pair such as disk=ssd", p)
		}
		out[k] = v
	}
	return out, nil
}

func list(value string) []string {
	if value == "" {
		return nil
	}
	return strings.Split(value, ",")
}

// taint reads key=value:Effect, key:Effect.
func taint(text string) (corev1.Taint, error) {
	pair, effect, ok := strings.Cut(text, ":")
	if !ok {
		return corev1.Taint{}, fmt.Errorf("%q is no taint such as dedicated=gpu:NoSchedule", text)
	}
	key, value, _ := strings.Cut(pair, "=")
	switch e := corev1.TaintEffect(effect); e {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		return corev1.Taint{Key: key, Value: value, Effect: e}, nil
	}
	return corev1.Taint{}, fmt.Errorf("%q is no effect of a taint", effect)
}

func taints(value string) ([]corev1.Taint, error) {
	var out []corev1.Taint
	for _, text := range list(value) {
		t, err := taint(text)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// tolerations reads keys, key=value pairs, and * for everything.
func tolerations(value string) []corev1.Toleration {
	var out []corev1.Toleration
	for _, text := range list(value) {
		key, v, exact := strings.Cut(text, "=")
		switch {
		case text == "*":
			out = append(out, corev1.Toleration{Operator: corev1.TolerationOpExists})
		case exact:
			out = append(out, corev1.Toleration{Key: key, Operator: corev1.TolerationOpEqual, Value: v})
		default:
			out = append(out, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
		}
	}
	return out
}

func integer(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil {
		return 0, fmt.Errorf("want a whole number")
	}
	return n, nil
}

func quantity(value string) (resource.Quantity, error) {
	q, err := resource.ParseQuantity(value)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("want a quantity such as 500m or 2Gi")
	}
	return q, nil
}

// quantities of resources, such as cpu=4,memory=7Gi.
func quantities(value string) (corev1.ResourceList, error) {
	texts, err := pairs(value)
	if err != nil {
		return nil, err
	}
	out := corev1.ResourceList{}
	for name, text := range texts {
		if out[corev1.ResourceName(name)], err = quantity(text); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func duration(value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil {
		return 0, fmt.Errorf("want a duration such as 10m")
	}
	return d, nil
}

// setter makes a table entry of a reader and of what to do with what it read.
func setter[T, V any](read func(string) (V, error), set func(*T, V)) func(*T, string) error {
	return func(thing *T, value string) error {
		v, err := read(value)
		if err != nil {
			return err
		}
		set(thing, v)
		return nil
	}
}

// text is a value that may be anything.
func text(value string) (string, error) { return value, nil }

// instanceTypes are those that scenarios know, with what is left of them
// for pods.
var instanceTypes = map[string]corev1.ResourceList{
	"":            {}, // of several types: what is left is said
	"m5.large":    room("1930m", "7Gi", "29"),
	"m5.xlarge":   room("3920m", "14Gi", "58"),
	"m5.2xlarge":  room("7910m", "29Gi", "58"),
	"c5.xlarge":   room("3920m", "6Gi", "58"),
	"r5.large":    room("1930m", "14Gi", "29"),
	"g4dn.xlarge": withGPU(room("3920m", "14Gi", "29"), "1"),
}

const gpu = corev1.ResourceName("nvidia.com/gpu")

func room(cpu, memory, pods string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: resource.MustParse(pods),
	}
}

func withGPU(list corev1.ResourceList, n string) corev1.ResourceList {
	list[gpu] = resource.MustParse(n)
	return list
}

package fleet

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"reflect"
	"regexp"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"windlass.dev/windlass/pkg/contract"
)

// hugeExponent is one with which a resource.Quantity is parsed, compared or added for hours, and
// hugeString what in JSON may be a quantity with one, or longer than longest. Numbers that stand in
// JSON without quotes are those of a float64, which are not that large.
var (
	hugeExponent = regexp.MustCompile(`[eE][+-]?[0-9]{3}`)
	hugeString   = regexp.MustCompile(`"[^"a-zA-Z]*[eE][+-]?[0-9]{3}[^"a-zA-Z]*"|"[^"a-zA-Z]{65}`)
)

// longest is more bytes than any quantity needs.
const longest = 64

// ParseQuantity reads a quantity that people have written, and which no API server has computed
// with. Whatever is done with it takes no time.
func ParseQuantity(text string) (resource.Quantity, error) {
	if len(text) > longest || hugeExponent.MatchString(text) {
		return resource.Quantity{}, fmt.Errorf("%q is beyond all quantities: want one such as 2, 500m or 20Gi", contract.Shorten(text, longest))
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("%q is no quantity such as 2, 500m or 20Gi", text)
	}
	return q, nil
}

// mostAsked is more than any node has of anything, and the most that is counted.
const mostAsked = math.MaxInt64

// Bounded returns the spec with all amounts of resources that are beyond counting cut to the most,
// or the same spec where there is none. An API server accepts 1e9999999 cpus of anybody who may make
// a pod, and to compare, to add or to write such a number takes seconds.
func Bounded(spec *corev1.PodSpec) *corev1.PodSpec {
	for list := range resourcesOf(spec) {
		if hasBeyond(list) {
			spec = spec.DeepCopy()
			CutQuantities(spec)
			return spec
		}
	}
	return spec
}

// BoundedList is Bounded for the amounts that a kubelet reports of its node, or of a pod there.
func BoundedList(list corev1.ResourceList) corev1.ResourceList {
	if hasBeyond(list) {
		list = maps.Clone(list)
		CutQuantities(&list)
	}
	return list
}

func hasBeyond(list corev1.ResourceList) bool {
	for _, q := range list {
		if isBeyond(q) {
			return true
		}
	}
	return false
}

// CutQuantities cuts all amounts in an object that are beyond counting to the most: that of another
// kind than those of Bounded and BoundedList, of which there are few. It is changed in place.
func CutQuantities(object any) { cutQuantities(reflect.ValueOf(object)) }

func cutQuantities(v reflect.Value) {
	if !hasQuantity(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			cutQuantities(v.Elem())
		}
	case reflect.Struct:
		if q, is := v.Addr().Interface().(*resource.Quantity); is {
			if isBeyond(*q) {
				*q = *resource.NewQuantity(mostAsked, q.Format)
			}
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				cutQuantities(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			cutQuantities(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			cutQuantities(value)
			v.SetMapIndex(key, value)
		}
	}
}

// withQuantities knows of types whether there may be an amount in their values.
var withQuantities sync.Map

func hasQuantity(t reflect.Type) bool {
	if known, ok := withQuantities.Load(t); ok {
		return known.(bool)
	}
	has := t == reflect.TypeFor[resource.Quantity]()
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		has = hasQuantity(t.Elem())
	case reflect.Struct:
		for i := 0; i < t.NumField() && !has; i++ {
			has = t.Field(i).IsExported() && hasQuantity(t.Field(i).Type)
		}
	}
	withQuantities.Store(t, has)
	return has
}

func isBeyond(q resource.Quantity) bool { return math.Abs(q.AsApproximateFloat64()) > mostAsked }

// resourcesOf are all lists of amounts in a spec that pods are placed by.
func resourcesOf(spec *corev1.PodSpec) iter.Seq[corev1.ResourceList] {
	return func(yield func(corev1.ResourceList) bool) {
		if !yield(spec.Overhead) || spec.Resources != nil && !(yield(spec.Resources.Requests) && yield(spec.Resources.Limits)) {
			return
		}
		for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range containers {
				if r := &containers[i].Resources; !yield(r.Requests) || !yield(r.Limits) {
					return
				}
			}
		}
	}
}

// CheckQuantities says where in JSON that is to decode as a T a quantity stands that is
// beyond all: decoding it might never end.
func CheckQuantities[T any](asJSON []byte) error {
	return checkQuantities("", asJSON, reflect.TypeFor[T]())
}

func checkQuantities(path string, raw []byte, t reflect.Type) error {
	if !hugeString.Match(raw) {
		return nil
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[resource.Quantity]() {
		if _, err := ParseQuantity(strings.Trim(string(raw), `"`)); err != nil {
			return fmt.Errorf("%s: %w", strings.TrimPrefix(path, "."), err)
		}
		return nil
	}
	for name, part := range parts(raw, t) {
		if err := checkQuantities(path+name, part.raw, part.t); err != nil {
			return err
		}
	}
	return nil
}

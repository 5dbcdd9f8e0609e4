package fleet

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

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

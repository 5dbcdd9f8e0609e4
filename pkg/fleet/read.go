package fleet

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Read reads one snapshot as YAML or JSON, the whole of r. A field that no
// snapshot has is an error that names it and where it stands, as is a value of
// the wrong kind; a snapshot without the moment it was taken at is one too,
// since every clock is held against it.
func Read(r io.Reader) (Snapshot, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return Snapshot{}, fmt.Errorf("reading a snapshot: %w", err)
	}
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return Snapshot{}, fmt.Errorf("this is no YAML: %w", err)
	}
	if err := CheckQuantities[Snapshot](asJSON); err != nil {
		return Snapshot{}, fmt.Errorf("this is no snapshot: %w", err)
	}
	var s Snapshot
	unknown, err := json.UnmarshalStrict(asJSON, &s)
	if err != nil {
		err = located("", asJSON, reflect.TypeFor[Snapshot](), err)
	}
	if err := errors.Join(append([]error{err}, unknown...)...); err != nil {
		return Snapshot{}, fmt.Errorf("this is no snapshot: %w", err)
	}
	if s.Now.IsZero() {
		return Snapshot{}, fmt.Errorf("this is no snapshot: it has no field now, the moment it was taken at, such as 2006-01-02T15:04:05Z")
	}
	s.shareSpecs()
	return s, nil
}

// shareSpecs has pods of one template share their spec, as those that are observed do: who asks
// which pods are replicas of one another goes by that.
func (s *Snapshot) shareSpecs() {
	known := map[string]*corev1.PodSpec{}
	for _, p := range s.Pods {
		if p == nil || p.Spec == nil {
			continue
		}
		encoded, err := p.Spec.Marshal()
		if err != nil {
			continue // nothing is wrong with a spec that is not shared
		}
		if one := known[string(encoded)]; one != nil {
			p.Spec = one
		} else {
			known[string(encoded)] = p.Spec
		}
	}
}

// located says where in a document the value stands that does not decode as t:
// the decoder tells what is wrong with it, but of most kinds not which it is.
func located(path string, raw []byte, t reflect.Type, err error) error {
	for name, part := range parts(raw, t) {
		if inner := json.UnmarshalCaseSensitivePreserveInts(part.raw, reflect.New(part.t).Interface()); inner != nil {
			return located(path+name, part.raw, part.t, inner)
		}
	}
	if path == "" {
		return err
	}
	return fmt.Errorf("%s: %w", strings.TrimPrefix(path, "."), err)
}

// part is a value inside another one, and what it is to decode as.
type part struct {
	raw []byte
	t   reflect.Type
}

// parts goes through the fields or elements that a document of type t has, each
// with what its path ends in. A type that decodes itself has none.
func parts(raw []byte, t reflect.Type) func(yield func(string, part) bool) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return func(yield func(string, part) bool) {
		if reflect.PointerTo(t).Implements(reflect.TypeFor[stdjson.Unmarshaler]()) {
			return
		}
		if t.Kind() == reflect.Slice {
			var elements []stdjson.RawMessage
			_ = stdjson.Unmarshal(raw, &elements) // none where it is no list
			for i, e := range elements {
				if !yield(fmt.Sprintf("[%d]", i), part{e, t.Elem()}) {
					return
				}
			}
			return
		}
		var fields map[string]stdjson.RawMessage
		_ = stdjson.Unmarshal(raw, &fields) // none where it is no object
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if inner := fieldType(t, name); inner != nil && !yield("."+name, part{fields[name], inner}) {
				return
			}
		}
	}
}

// fieldType is what the field of a struct or a map decodes as; nil where t has
// no such field.
func fieldType(t reflect.Type, name string) reflect.Type {
	switch t.Kind() {
	case reflect.Map:
		return t.Elem()
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); strings.EqualFold(tag, name) { // as encoding/json
				return f.Type
			}
		}
	}
	return nil
}

// Write prints a snapshot as YAML that Read reads.
func Write(w io.Writer, s Snapshot) error {
	text, err := yaml.Marshal(s)
	if err != nil {
		return fmt.Errorf("encoding a snapshot: %w", err)
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("writing a snapshot: %w", err)
	}
	return nil
}

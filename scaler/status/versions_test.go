package status

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/statuspage"
)

// persisted are the forms that another version reads: each is read as the programs do, and printed
// again.
var persisted = map[string]struct {
	full func() any
	read func(text string) (any, error)
}{
	"state": {func() any { return full[fleet.State]() }, func(text string) (any, error) {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: contract.ConfigMapState}, Data: map[string]string{stateKey: text}}
		m := NewMemory(fake.NewClientset(object).CoreV1().ConfigMaps("ns"))
		err := m.Load(context.Background())
		return m.State(), err
	}},
	"page": {func() any { return full[statuspage.Page]() }, func(text string) (any, error) {
		page, err := yaml.JSONToYAML([]byte(text))
		if err != nil {
			return nil, err
		}
		return statuspage.Read(&corev1.ConfigMap{Data: map[string]string{"status": string(page)}})
	}},
	"drain-request": {func() any { return full[contract.Request]() }, as(contract.ParseRequest)},
	"drain-report":  {func() any { return full[contract.Report]() }, as(contract.ParseReport)},
	"drain-not-yet": {func() any { return full[contract.NotYet]() }, as(contract.ParseNotYet)},
	"notices":       {func() any { return full[contract.NoticedList]() }, as(contract.ParseNoticed)},
	"served":        {func() any { return full[contract.ServedList]() }, as(contract.ParseServed)},
	"cordoned-by":   {func() any { return full[contract.Cordon]() }, as(contract.ParseCordon)},
	"dry-run":       {func() any { return full[contract.DryRun]() }, as(contract.ParseDryRun)},
	"facts":         {func() any { return full[contract.Facts]() }, as(contract.ParseFacts)},
}

func as[T any](parse func(string) (T, error)) func(string) (any, error) {
	return func(text string) (any, error) { return parse(text) }
}

// full is a value with something in each of its fields.
func full[T any]() (v T) {
	fill(reflect.ValueOf(&v).Elem())
	return v
}

var someTime = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func fill(v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(someTime))
		return
	case contract.Time:
		v.Set(reflect.ValueOf(contract.At(someTime)))
		return
	case resource.Quantity:
		v.Set(reflect.ValueOf(resource.MustParse("2")))
		return
	case contract.Kind:
		v.SetString(string(contract.KindSpot))
		return
	case contract.Phase:
		v.SetString(string(contract.PhaseDraining))
		return
	case metav1.Time, *metav1.Time, *metav1.FieldsV1: // which nothing persisted has
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	}
}

// fixtures are what version v0.1.0 writes. They are never rewritten: a form that is read no more
// breaks an upgrade, and the drains under way with it. WRITE_FIXTURES=1 writes those that are missing.
const fixtures = "testdata/v0.1.0"

// TestOtherVersions: what the version before wrote is read, and each of its fields means what it did;
// what this one writes, a version reads that knows fewer fields or more.
func TestOtherVersions(t *testing.T) {
	for name, form := range persisted {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(fixtures, name+".json")
			before, err := os.ReadFile(path)
			if errors.Is(err, os.ErrNotExist) && os.Getenv("WRITE_FIXTURES") != "" {
				before = []byte(encoded(t, form.full()))
				err = os.WriteFile(path, before, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			read, err := form.read(string(before))
			if err != nil {
				t.Fatal(err)
			}
			var was, is any
			decode(t, string(before), &was)
			decode(t, encoded(t, read), &is)
			if diff := cmp.Diff(was, within(was, is)); diff != "" {
				t.Errorf("fields of the version before (-written +read):\n%s", diff)
			}
			newer := encoded(t, strangers(was))
			same, err := form.read(newer)
			if err != nil {
				t.Fatalf("a newer version's: %v\n%s", err, newer)
			}
			var got any
			decode(t, encoded(t, same), &got)
			if diff := cmp.Diff(was, within(was, got)); diff != "" {
				t.Errorf("with fields that are not known (-written +read):\n%s", diff)
			}
		})
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

func decode(t *testing.T, text string, into *any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

// within is what of is has a place in was: fields that came since do not count.
func within(was, is any) any {
	switch was := was.(type) {
	case map[string]any:
		of, same := is.(map[string]any)
		if !same {
			return is
		}
		out := map[string]any{}
		for key := range was {
			if value, has := of[key]; has {
				out[key] = within(was[key], value)
			}
		}
		return out
	case []any:
		of, same := is.([]any)
		if !same || len(of) != len(was) {
			return is
		}
		out := make([]any, len(of))
		for i := range of {
			out[i] = within(was[i], of[i])
		}
		return out
	}
	return is
}

// strangers adds fields that no version knows. An object whose only key is x is a map of people's or programs' keys, and no struct.
func strangers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		_, keyed := v["x"]
		for key, value := range v {
			out[key] = strangers(value)
		}
		if !keyed || len(v) > 1 {
			out["ofANewerVersion"] = map[string]any{"a": []any{1, "b"}}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = strangers(v[i])
		}
		return out
	}
	return v
}

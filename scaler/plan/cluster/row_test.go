package cluster

import (
	"reflect"
	"testing"
	"time"

	"windlass.dev/windlass/pkg/fleet"
)

// A row holds for as long as nothing of its node is other, whatever that is: also what is read of
// nodes one day and is not thought of here.
func TestRowHolds(t *testing.T) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[fleet.Node]()) {
		var n fleet.Node
		row := NewRow(n, 0)
		if !row.holds(&n) {
			t.Fatal("it does not hold where nothing has changed")
		}
		value := reflect.ValueOf(&n).Elem().FieldByIndex(field.Index)
		switch {
		case field.Type == reflect.TypeFor[time.Time]():
			value.Set(reflect.ValueOf(time.Unix(1, 0)))
		case field.Type.Kind() == reflect.String:
			value.SetString("other")
		case field.Type.Kind() == reflect.Bool:
			value.SetBool(true)
		case field.Type.Kind() == reflect.Int:
			value.SetInt(1)
		case field.Type.Kind() == reflect.Map:
			value.Set(reflect.MakeMap(field.Type))
		case field.Type.Kind() == reflect.Slice:
			value.Set(reflect.MakeSlice(field.Type, 1, 1))
		default:
			t.Fatalf("%s is of a kind that this test does not change", field.Name)
		}
		if row.holds(&n) {
			t.Errorf("it holds with another %s", field.Name)
		}
	}
}

package fleet

import (
	"reflect"
	"testing"
	"time"
)

// Of all dates of a state none lies ahead then, and the state that was read is as it was.
func TestNotAhead(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	before, after := now.Add(-time.Hour), now.Add(time.Hour)
	var s State
	maps := 0
	for field, value := range reflect.ValueOf(&s).Elem().Fields() {
		if value.Type() == reflect.TypeFor[map[string]time.Time]() {
			value.Set(reflect.ValueOf(map[string]time.Time{"before": before, "after": after, "never": {}}))
			maps++
		}
		_ = field
	}
	cut := s.NotAhead(now)
	for field, value := range reflect.ValueOf(cut).Fields() {
		if dates, is := value.Interface().(map[string]time.Time); is && (!dates["before"].Equal(before) || !dates["after"].Equal(now) || !dates["never"].IsZero()) {
			t.Errorf("%s: %v", field.Name, dates)
		}
	}
	if !s.GrownAt["after"].Equal(after) || maps == 0 {
		t.Error("the state itself was changed")
	}
}

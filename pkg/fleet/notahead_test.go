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
	s.Launches, s.Promises = map[string]Launch{"after": {At: after}}, map[string]Promise{"before": {At: before}, "after": {At: after}}
	s.Recognition.Asked, s.Recognition.Launched = map[string]Asked{"after": {At: after}}, map[string]time.Time{"after": after}
	s.Recognition.Ended, s.Recognition.Left = map[string]Ended{"after": {At: after}}, map[string]time.Time{"after": after}
	s.CutIn = map[string]CutIn{"after": {At: after}}
	s.StandIns = map[string]LoneDrain{"after": {Excluded: before, Emptied: after, Evicted: map[string]LoneEviction{"after": {At: before, Left: after}}}}
	s.Replacement = &NodeReplacement{Found: before, Launched: after, Until: after.Add(time.Minute)}
	cut := s.NotAhead(now)
	for name, at := range map[string]time.Time{
		"a launch": cut.Launches["after"].At, "a promise": cut.Promises["after"].At, "what was asked": cut.Recognition.Asked["after"].At, "what was launched": cut.Recognition.Launched["after"],
		"what was emptied": cut.StandIns["after"].Emptied, "an eviction": cut.StandIns["after"].Evicted["after"].Left,
		"a replacement": cut.Replacement.Launched, "its end, but for a minute": cut.Replacement.Until.Add(-time.Minute),
		"an end": cut.Recognition.Ended["after"].At, "what left": cut.Recognition.Left["after"], "a cut-in": cut.CutIn["after"].At,
	} {
		if !at.Equal(now) {
			t.Errorf("%s: %v", name, at)
		}
	}
	if at := cut.Promises["before"].At; !at.Equal(before) {
		t.Errorf("a promise of before: %v", at)
	}
	for field, value := range reflect.ValueOf(cut).Fields() {
		if dates, is := value.Interface().(map[string]time.Time); is && (!dates["before"].Equal(before) || !dates["after"].Equal(now) || !dates["never"].IsZero()) {
			t.Errorf("%s: %v", field.Name, dates)
		}
	}
	if !cut.StandIns["after"].Excluded.Equal(before) || !cut.Replacement.Found.Equal(before) {
		t.Errorf("what does not lie ahead is cut: %+v, %+v", cut.StandIns, cut.Replacement)
	}
	if !s.StandIns["after"].Evicted["after"].Left.Equal(after) || !s.Replacement.Launched.Equal(after) || !s.GrownAt["after"].Equal(after) || !s.Launches["after"].At.Equal(after) || maps == 0 {
		t.Error("the state itself was changed")
	}
}

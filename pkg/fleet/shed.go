package fleet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// A state that does not fit is made smaller by what costs least to lose, part by part in
// this order, and never by anything else: a part that is not named here would do harm if it
// were forgotten. Of a part only so many entries go as must. Of those that say since when
// something is so the youngest go first: their clocks begin anew and have lost least, and
// those that come again at the next evaluation are the ones that go again. Of those that
// say until when something is not done the ones that are over first go first.
var sheds = []shedding{
	// Node templates go by their definition again until a node teaches them.
	parting("seen", func(s *State) *map[string]resource.Quantity { return &s.Seen }, func(a, b resource.Quantity) int { return a.Cmp(b) }),
	parting("lessons", func(s *State) *map[string]Lesson { return &s.Lessons }, func(a, b Lesson) int { return 0 }),
	// A pod is taken for one that kube-scheduler has not looked at yet.
	parting("disputed", func(s *State) *map[string]time.Time { return &s.Disputed }, youngest),
	// A drain in place of an agent waits once more for load balancers or volumes, and may evict
	// pods that came back once more.
	parting("alone", func(s *State) *map[string]LoneDrain { return &s.StandIns }, func(a, b LoneDrain) int {
		return cmp.Or(youngest(a.Excluded, b.Excluded), youngest(a.Emptied, b.Emptied))
	}),
	// A group may get smaller sooner after it got smaller, or after a scale-down failed.
	parting("shrunkAt", func(s *State) *map[string]time.Time { return &s.ShrunkAt }, oldest),
	parting("failedAt", func(s *State) *map[string]time.Time { return &s.FailedAt }, oldest),
	// Something that was given up is tried again sooner: a replacement, a drain.
	parting("swapPauses", func(s *State) *map[string]BackOff { return &s.ReplacementBackOffs }, firstOver),
	parting("giveUps", func(s *State) *map[string]BackOff { return &s.GiveUps }, firstOver),
	// What never comes is waited for longer.
	parting("awaited", func(s *State) *map[string]time.Time { return &s.Awaited }, youngest),
}

func youngest(a, b time.Time) int { return b.Compare(a) }
func oldest(a, b time.Time) int   { return a.Compare(b) }
func firstOver(a, b BackOff) int  { return a.Until.Compare(b.Until) }

// shedding is a part of which entries can go.
type shedding struct {
	part string
	// costs lists its entries, the one that costs least to lose first, with the bytes
	// that each takes.
	costs func(State) ([]entry, error)
	// drop makes it a part without some entries; the map that was there stays as it is.
	drop func(s *State, keys []string)
}

type entry struct {
	key   string
	bytes int
}

func parting[V any](part string, of func(*State) *map[string]V, order func(a, b V) int) shedding {
	return shedding{
		part: part,
		costs: func(s State) (entries []entry, err error) {
			m := *of(&s)
			keys := slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(order(m[a], m[b]), cmp.Compare(a, b)) })
			for _, key := range keys {
				text, err := json.Marshal(map[string]V{key: m[key]})
				if err != nil {
					return nil, err
				}
				entries = append(entries, entry{key, len(text) - len("{}") + len(",")})
			}
			return entries, nil
		},
		drop: func(s *State, keys []string) {
			m := maps.Clone(*of(s))
			for _, key := range keys {
				delete(m, key)
			}
			*of(s) = m
		},
	}
}

// Shed counts the entries that were dropped, by the part of the state that they were of.
type Shed map[string]int

// ShedParts names the parts of a state of which entries may be dropped.
func ShedParts() []string {
	var parts []string
	for _, x := range sheds {
		parts = append(parts, x.part)
	}
	return parts
}

// String names the parts, by name.
func (s Shed) String() string {
	parts := make([]string, 0, len(s))
	parts = append(parts, slices.Sorted(maps.Keys(s))...)
	return strings.Join(parts, ", ")
}

// ShedTo is the state as JSON of at most so many bytes, and the state that this is: the same
// one, or one without what costs least to lose. It is larger where what is left must not
// be lost. The same state always loses the same.
func (s State) ShedTo(most int) (State, []byte, Shed, error) {
	text, err := json.Marshal(s)
	if err != nil || len(text) <= most {
		return s, text, nil, err
	}
	over, shed := len(text)-most, Shed{}
	for _, x := range sheds {
		if over <= 0 {
			break
		}
		entries, err := x.costs(s)
		if err != nil {
			return s, nil, nil, fmt.Errorf("encoding %s: %w", x.part, err)
		}
		var keys []string
		for _, e := range entries {
			if over <= 0 {
				break
			}
			keys, over = append(keys, e.key), over-e.bytes
		}
		if len(keys) > 0 {
			x.drop(&s, keys)
			shed[x.part] = len(keys)
		}
	}
	text, err = json.Marshal(s)
	return s, text, shed, err
}

// Differing names the parts in which two states differ, as their JSON does.
func Differing(a, b State) []string {
	var parts []string
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		if !meaning.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			parts = append(parts, partOf(x.Type().Field(i)))
		}
	}
	return parts
}

// StateParts names every part of a state.
func StateParts() []string {
	var parts []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[State]()) {
		parts = append(parts, partOf(field))
	}
	return parts
}

func partOf(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

package action

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// Whatever can be done has its row in the table, so that a new action is not handled by
// chance, and package act carries it out.
func TestTraits(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, file := range files {
		source.WriteString(read(t, file))
	}
	actor := read(t, "../../act/actor.go")
	rows := map[string]bool{}
	for is := range table {
		rows[is.Name()] = true
	}
	all := regexp.MustCompile(`(?m)^func \(\w+ (\w+)\) Lane\(\)`).FindAllStringSubmatch(source.String(), -1)
	for _, found := range all {
		name := found[1]
		if name != "unheardOf" && !rows[name] {
			t.Errorf("%s has no row in the table of traits", name)
		}
		if name != "unheardOf" && !regexp.MustCompile(`(case|todo\.\()\s*action\.`+name+`\b`).MatchString(actor) {
			t.Errorf("package act does not carry out %s", name)
		}
		delete(rows, name)
	}
	if len(all) < 15 || len(rows) > 0 {
		t.Errorf("found %d actions, and rows without one: %v", len(all), rows)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each row is whole, and what one action is about is its own.
func TestTraitsAreWhole(t *testing.T) {
	for _, k := range table {
		if k.Kind == "" || k.Time <= 0 || k.Turn < ForPods || k.Turn > ForNobody {
			t.Errorf("%s: %+v", k.is, k.Traits)
		}
		for _, part := range k.Guards {
			if !slices.Contains(fleet.StateParts(), part) {
				t.Errorf("%s is guarded by %s, which is no part of the state", k.is, part)
			}
		}
	}
	n, other := NodeRef{Name: "n"}, NodeRef{Name: "o"}
	keys := map[string]Action{}
	for _, a := range []Action{
		Suspend{Group: "g", Process: "p"}, Suspend{Group: "g", Process: "q"}, Suspend{Group: "h", Process: "p"}, Claim{Group: "g"}, Lower{Group: "g"},
		Grow{Group: "g"}, Grow{Group: "g", Zone: "a"}, Grow{Group: "g", Zone: "a", Part: 1}, Terminate{Instance: "i"}, Terminate{Instance: "j"},
		Complete{Instance: "i", Hook: "h"}, Complete{Instance: "i", Hook: "k"}, Heartbeat{Instance: "i", Hook: "h"}, Heartbeat{Instance: "j", Hook: "h"},
		Evict{Node: n, Pod: PodRef{Name: "a"}}, Evict{Node: n, Pod: PodRef{Name: "b"}}, Evict{Node: n, Pod: PodRef{Name: "b", UID: "2"}},
		RequestDrain{Node: n}, RequestDrain{Node: other}, CancelDrain{Node: n}, CancelDrain{Node: other}, Permit{Node: n}, Permit{Node: other}, NotYet{Node: n}, NotYet{Node: other},
		Release{Node: n}, Release{Node: other}, ClearTerminationMark{Node: n}, ClearTerminationMark{Node: other}, OutOfService{Node: n}, OutOfService{Node: other},
		InServiceAgain{Node: n}, InServiceAgain{Node: other}, Mark{Node: n}, Mark{Node: other}, Unmark{Node: n}, Unmark{Node: other}, Steer{Node: n}, Steer{Node: other},
		TakeOver{Node: n}, TakeOver{Node: other}, Cordon{Node: n}, Cordon{Node: other}, UpdateBuffer{Buffer: BufferRef{Name: "a"}}, UpdateBuffer{Buffer: BufferRef{Name: "b"}},
	} {
		key := TraitsOf(a).Key
		if was, twice := keys[key]; twice {
			t.Errorf("%#v and %#v both are %s", was, a, key)
		}
		keys[key] = a
	}
	// The figures of another evaluation make no other action.
	for _, pair := range [][2]Action{
		{Grow{Group: "g", From: 1, To: 2}, Grow{Group: "g", From: 2, To: 4}}, {Lower{Group: "g", From: 2}, Lower{Group: "g", From: 3}},
		{RequestDrain{Node: n, ID: "a"}, RequestDrain{Node: n, ID: "b"}}, {UpdateBuffer{Version: "1"}, UpdateBuffer{Version: "2"}},
	} {
		if a, b := TraitsOf(pair[0]).Key, TraitsOf(pair[1]).Key; a != b {
			t.Errorf("%#v is %s, and later %s", pair[0], a, b)
		}
	}
}

// What ends something whose reason only the state has waits for the state; what is persisted
// elsewhere does not.
func TestGuards(t *testing.T) {
	for _, a := range []Action{Grow{}, Suspend{}, Terminate{ID: "never-joined:i-1"}, Terminate{ID: "never-ready:i-1"}} {
		if len(TraitsOf(a).Guards) == 0 {
			t.Errorf("nothing guards %T", a)
		}
	}
	for _, a := range []Action{Heartbeat{}, Complete{}, CancelDrain{}, RequestDrain{}, Evict{}, Terminate{ID: contract.TerminateID("i-1")}} {
		if parts := TraitsOf(a).Guards; len(parts) > 0 {
			t.Errorf("%T waits for %v to be written", a, parts)
		}
	}
}

type unheardOf struct{}

func (x unheardOf) Lane() string   { return "web" }
func (x unheardOf) String() string { return "do something" }

// An action that has no row waits for every part of the state, goes after all others, and is known
// from them.
func TestTraitsOfTheUnknown(t *testing.T) {
	got := TraitsOf(unheardOf{})
	if !slices.Equal(got.Guards, fleet.StateParts()) || got.Key != "unheard-of/do something" || got.Time != UsualTime || got.Sizes {
		t.Errorf("%+v", got)
	}
	last := Ordered([]Action{unheardOf{}, Lower{Group: "web"}, Unmark{Group: "web"}, Grow{Group: "web"}})
	if _, is := last[3].(unheardOf); !is {
		t.Errorf("in the order %v", last)
	}
}

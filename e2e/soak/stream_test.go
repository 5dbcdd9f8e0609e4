package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A seed has one stream, whatever the steps do with their dice.
func TestStreamIsTheSeeds(t *testing.T) {
	type drawn struct {
		Kind  string
		Pause time.Duration
		First uint64
	}
	take := func(seed uint64, rolls int) []drawn {
		s := newStream(seed, usualPause, kinds)
		var all []drawn
		for range 200 {
			step := s.step()
			all = append(all, drawn{step.Kind, step.Pause, step.Dice.Uint64()})
			for range rolls {
				step.Dice.Uint64()
			}
		}
		return all
	}
	if diff := cmp.Diff(take(7, 0), take(7, 5)); diff != "" {
		t.Errorf("the same seed gave two streams (-first +second):\n%s", diff)
	}
	if cmp.Equal(take(7, 0), take(8, 0)) {
		t.Error("two seeds gave one stream")
	}
}

// Every kind comes, as often as its weight says.
func TestStreamHasEveryKind(t *testing.T) {
	const steps = 20_000
	s := newStream(1, usualPause, kinds)
	count, all := map[string]int{}, 0
	for range steps {
		count[s.step().Kind]++
	}
	for _, k := range kinds {
		all += k.weight
	}
	for _, k := range kinds {
		want := steps * k.weight / all
		if got := count[k.name]; got < want*3/4 || got > want*4/3 {
			t.Errorf("%s came %d times in %d steps, want about %d", k.name, got, steps, want)
		}
	}
}

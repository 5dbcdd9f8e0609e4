package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// step is one disturbance of the stream: which kind, when after the one before it,
// and the dice with which it is carried out. What it meets is chosen among what is
// there then: a seed repeats the stream, not the world's timing.
type step struct {
	Number int
	Pause  time.Duration
	Kind   string
	Dice   *rand.Rand
}

// usualPause is how long a disturbance comes after the one before, on average.
const usualPause = 2500 * time.Millisecond

// usualTenantPods is what two cores bear beside everything else.
const usualTenantPods = 240

// stream makes the steps of a seed, one after the other.
type stream struct {
	pause time.Duration // on average
	seed  uint64
	dice  *rand.Rand
	kinds []kind
	next  int
}

func newStream(seed uint64, pause time.Duration, kinds []kind) *stream {
	return &stream{pause: pause, seed: seed, dice: rand.New(rand.NewPCG(seed, 0)), kinds: kinds}
}

// step makes the next one. Each has dice of its own, so that it takes nothing from
// those that follow, however much it rolls.
func (s *stream) step() step {
	s.next++
	return step{
		Number: s.next,
		Pause:  min(time.Duration(s.dice.ExpFloat64()*float64(s.pause)), 4*s.pause),
		Kind:   s.draw(),
		Dice:   rand.New(rand.NewPCG(s.seed, uint64(s.next))),
	}
}

// draw chooses a kind by weight.
func (s *stream) draw() string {
	all := 0
	for _, k := range s.kinds {
		all += k.weight
	}
	at := s.dice.IntN(all)
	for _, k := range s.kinds {
		if at -= k.weight; at < 0 {
			return k.name
		}
	}
	panic("the weights do not add up")
}

// chosen are the kinds of those names, all of them if there is none.
func chosen(names string) ([]kind, error) {
	if names == "" {
		return kinds, nil
	}
	var some []kind
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no disturbance of kind %q", name)
		}
		some = append(some, kinds[i])
	}
	return some, nil
}

// between draws a duration.
func between(dice *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(dice.Int64N(int64(most-least)))
}

// one draws one of several; false if there is none.
func one[T any](dice *rand.Rand, of []T) (T, bool) {
	if len(of) == 0 {
		var none T
		return none, false
	}
	return of[dice.IntN(len(of))], true
}

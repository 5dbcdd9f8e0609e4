package fit_test

import (
	"math/rand/v2"
)

// dice decide what a random world is like. The same seed always gives the same.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, 0))} }

// chance is true in so many of a hundred throws.
func (d dice) chance(percent int) bool { return d.IntN(100) < percent }

// between is a number from low to high.
func (d dice) between(low, high int) int { return low + d.IntN(high-low+1) }

// one of the values.
func one[T any](d dice, values ...T) T { return values[d.IntN(len(values))] }

// some of the values, in their order; perhaps none.
func some[T any](d dice, values ...T) []T {
	var chosen []T
	for _, v := range values {
		if d.chance(50) {
			chosen = append(chosen, v)
		}
	}
	return chosen
}

// times makes so many values.
func times[T any](n int, value func(i int) T) []T {
	values := make([]T, 0, n)
	for i := range n {
		values = append(values, value(i))
	}
	return values
}

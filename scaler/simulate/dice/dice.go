// Package dice draws random numbers that a seed determines: the same seed gives the same
// numbers, in every version of Go and on every machine.
package dice

import (
	"hash/fnv"
	"math"
)

// Dice is one sequence of numbers. Not for concurrent use.
type Dice struct{ state uint64 }

// New begins the sequence of a seed and of what it is for: sequences of several purposes do
// not shift each other.
func New(seed uint64, purpose string) *Dice {
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose)) // a hash takes everything
	return &Dice{seed ^ h.Sum64()}
}

// next is splitmix64.
// https://prng.di.unimi.it/splitmix64.c
func (d *Dice) next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	z := d.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Float is at least 0 and less than 1.
func (d *Dice) Float() float64 { return float64(d.next()>>11) / (1 << 53) }

// N is at least 0 and less than n, which is more than 0.
func (d *Dice) N(n int) int { return int(d.Float() * float64(n)) }

// Below is true so often, as a share of all times.
func (d *Dice) Below(share float64) bool { return share > 0 && d.Float() < share }

// Exp is the time to the next of events that come independently, at that mean.
func (d *Dice) Exp(mean float64) float64 { return -math.Log(1-d.Float()) * mean }

// Index is an index of weights, each as often as its weight.
func (d *Dice) Index(weights []float64) int {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	at := d.Float() * sum
	for i, w := range weights {
		if at -= w; at < 0 {
			return i
		}
	}
	return len(weights) - 1
}

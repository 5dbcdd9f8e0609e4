package cluster

import "time"

// clock finds the earliest of the moments at which something falls due.
type clock struct{ now, Next time.Time }

// At asks for an evaluation at t; moments that have passed ask for none.
func (c *clock) At(t time.Time) {
	if !t.After(c.now) {
		return
	}
	if c.Next.IsZero() || t.Before(c.Next) {
		c.Next = t
	}
}

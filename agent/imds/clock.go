package imds

import "time"

// skewTolerated is the difference between two clocks that counts as none. A Date
// is whole seconds, and an answer may take two to arrive.
const skewTolerated = 5 * time.Second

// clock measures how far the clock of this node is ahead of that of the metadata
// service. It changes only when the difference changes by more than is tolerated,
// so that a deadline does not tremble.
type clock struct {
	ahead time.Duration
	// dated: the other clock has said something.
	dated bool
}

// compare takes in what the other clock said when ours said now. It returns
// whether the difference is another one than before.
func (c *clock) compare(date, now time.Time) (changed bool) {
	if date.IsZero() {
		return false
	}
	c.dated = true
	ahead := now.Sub(date).Round(time.Second)
	if (ahead - c.ahead).Abs() <= skewTolerated {
		return false
	}
	if ahead.Abs() <= skewTolerated {
		ahead = 0
	}
	c.ahead = ahead
	return true
}

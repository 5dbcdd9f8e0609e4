package observe

import (
	"testing"
	"testing/synctest"
	"time"
)

// What is never urgent waits ten times as long as an evaluation takes, within bounds; what is urgent
// does not, and is not delayed by what waits already.
func TestRest(t *testing.T) {
	for _, c := range []struct{ evaluation, within, want time.Duration }{
		{0, later, later},
		{time.Millisecond, later, later},
		{50 * time.Millisecond, later, 500 * time.Millisecond},
		{time.Minute, later, latest},
		{time.Minute, seldom, seldom},
		{time.Minute, soon, soon},
	} {
		synctest.Test(t, func(t *testing.T) {
			n, began := newNudger(), time.Now()
			n.rest(c.evaluation)
			n.within(c.within)
			<-n.c
			if took := time.Since(began); took != c.want {
				t.Errorf("after an evaluation of %s what may wait %s waits %s, want %s", c.evaluation, c.within, took, c.want)
			}
			n.within(later)
			n.within(soon)
			began = time.Now()
			<-n.c
			if took := time.Since(began); took != soon {
				t.Errorf("after an evaluation of %s what is urgent waits %s beside what is not", c.evaluation, took)
			}
		})
	}
}

package main

import (
	"container/heap"
	"fmt"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/agent/drain"
)

// queue is a model of an API server that many drains ask for evictions: it works them
// off one after the other, answers each a tenth of a second later, which is what its
// look at the budgets takes, and refuses what is beyond its limit. Its watches fall
// behind when hundreds are at work: by three times what an answer takes beyond a quarter
// of a second, as was measured on a real one.
type queue struct {
	now, free, last time.Time // last is when the last eviction was answered
	todo            agenda
	underWay        int
	refused         int
	late            []time.Duration // the watch, by eviction
}

const (
	eachTakes     = 2 * time.Millisecond
	budgetsTake   = 100 * time.Millisecond
	inFlightLimit = 1000
)

// happening is something that the model does at a moment.
type happening struct {
	at time.Time
	do func()
}

type agenda []happening

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(happening)) }
func (a *agenda) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	*a = (*a)[:last]
	return x
}

func (q *queue) at(when time.Time, do func()) { heap.Push(&q.todo, happening{when, do}) }

// run lets everything happen, and returns how long it took.
func (q *queue) run() time.Duration {
	began := q.now
	defer func() { q.now = began }()
	for len(q.todo) > 0 {
		next := heap.Pop(&q.todo).(happening)
		q.now = next.at
		next.do()
	}
	return q.last.Sub(began)
}

// work takes a place in the queue, and returns when it is done.
func (q *queue) work(takes time.Duration) time.Time {
	if q.free.Before(q.now) {
		q.free = q.now
	}
	q.free = q.free.Add(takes)
	return q.free
}

// drainOf is one node's drain of the model.
type drainOf struct {
	*queue
	pace
	left   int
	unseen map[types.UID]bool
	wake   time.Time
}

// drain writes the Node and evicts so many pods.
func (q *queue) drain(pods int) {
	d := &drainOf{queue: q, pace: newPace(), left: pods, unseen: map[types.UID]bool{}}
	begun := q.now
	q.at(q.work(eachTakes/2).Add(5*time.Millisecond), func() {
		d.wrote(q.now, begun)
		d.look()
	})
}

// look asks for what the pace admits.
func (d *drainOf) look() {
	d.saw(d.now, func(pod types.UID) bool { return d.unseen[pod] })
	for d.left > 0 && d.admits(d.now) {
		d.ask()
	}
	if again := d.resumesAfter(d.now); d.left > 0 && again.After(d.now) && !again.Equal(d.wake) {
		d.wake = again
		d.at(again, d.look)
	}
}

func (d *drainOf) ask() {
	begun, pod := d.now.Add(time.Duration(d.left)), types.UID(strconv.Itoa(d.left)) // no two at one moment
	d.begin(begun)
	d.left--
	if d.underWay == inFlightLimit {
		d.queue.refused++
		d.at(d.now.Add(time.Millisecond), func() {
			d.left++
			d.end(d.now, begun, pod, drain.Overloaded)
			d.look()
		})
		return
	}
	d.underWay++
	d.at(d.work(eachTakes).Add(budgetsTake), func() {
		d.underWay--
		d.last = d.now
		d.end(d.now, begun, pod, drain.Accepted)
		d.unseen[pod] = true
		late := max(0, 3*(d.now.Sub(begun)-250*time.Millisecond))
		d.late = append(d.late, late)
		d.at(d.now.Add(late), func() {
			d.unseen[pod] = false
			d.look()
		})
		d.look()
	})
}

// However many drains begin at one moment, the server works nearly without a pause until
// the last pod is evicted, refuses little, and its watches come soon after.
func TestPaceOfManyDrains(t *testing.T) {
	for _, c := range []struct {
		drains, pods int
		most         time.Duration // beyond the work that there is
		refused      float64       // of the evictions, at most
		late         time.Duration // the watch at most, on average
	}{
		{1, 20, 400 * time.Millisecond, 0, 0},
		{1, 110, 800 * time.Millisecond, 0, 0},
		{10, 50, 500 * time.Millisecond, 0, 300 * time.Millisecond},
		{100, 20, 500 * time.Millisecond, 0, 1500 * time.Millisecond},
		{300, 20, 2 * time.Second, 0, 2 * time.Second},
		{1000, 20, 5 * time.Second, 0.15, 4 * time.Second},
	} {
		t.Run(fmt.Sprintf("%d of %d", c.drains, c.pods), func(t *testing.T) {
			q := &queue{now: time.Now()}
			for range c.drains {
				q.drain(c.pods)
			}
			took := q.run()
			evictions := c.drains * c.pods
			if n := len(q.late); n != evictions {
				t.Fatalf("%d of %d evicted", n, evictions)
			}
			work := time.Duration(evictions) * eachTakes
			if took > work+c.most {
				t.Errorf("took %s for %s of work", took, work)
			}
			if share := float64(q.refused) / float64(evictions); share > c.refused {
				t.Errorf("refused %.2f for each that was accepted", share)
			}
			var sum time.Duration
			for _, late := range q.late {
				sum += late
			}
			if mean := sum / time.Duration(evictions); mean > c.late {
				t.Errorf("the watch was late by %s on average", mean)
			}
		})
	}
}

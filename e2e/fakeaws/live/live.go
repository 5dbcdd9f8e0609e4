// Package live runs a cloud against the clock: it holds the lock around it, wakes when something is due, and hands what has changed to observers.
package live

import (
	"sync"
	"time"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
)

// Cloud is a cloud that lives. It is safe for concurrent use.
type Cloud struct {
	mu    sync.Mutex
	cloud *cloud.Cloud
	gone  func(id string)

	memory time.Duration  // how far back snapshots go; 0 keeps none
	past   []*cloud.Cloud // oldest first

	observers []func(cloud.Instance)
	outbox    []delivery
	filled    chan struct{} // has room for one: the outbox is not empty
	wake      chan struct{} // has room for one: the next time-out may be another
	done      chan struct{}
	running   sync.WaitGroup
}

// delivery is a snapshot on its way to observers.
type delivery struct {
	to       []func(cloud.Instance)
	instance cloud.Instance
}

// Start makes the cloud of the spec and lets it live until Close. address is asked once for each instance, gone told when one has ended; both are called with
// the lock held and must not call the cloud.
func Start(spec cloud.Spec, address func(id string) string, gone func(id string)) (*Cloud, error) {
	l := &Cloud{gone: gone, filled: make(chan struct{}, 1), wake: make(chan struct{}, 1), done: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	c, err := cloud.New(spec, time.Now(), address)
	if err != nil {
		return nil, err
	}
	l.cloud = c
	l.flush()
	l.running.Go(l.keepTime)
	l.running.Go(l.deliver)
	return l, nil
}

// Close ends the life of the cloud: nothing happens any more by itself. A call to an observer that is under way is waited for.
func (l *Cloud) Close() {
	close(l.done)
	l.running.Wait()
}

// Done is closed when the cloud ends.
func (l *Cloud) Done() <-chan struct{} { return l.done }

// With brings the cloud up to now, runs f while nothing else looks at it, and then lets observers know what has changed. f must not keep the cloud.
func (l *Cloud) With(f func(c *cloud.Cloud, now time.Time) error) error {
	l.mu.Lock()
	now := time.Now()
	l.cloud.Advance(now)
	err := f(l.cloud, now)
	l.remember()
	l.flush()
	l.mu.Unlock()
	signal(l.wake)
	return err
}

// Remember keeps what the cloud was for a while, so that At can look back; 0 forgets it.
func (l *Cloud) Remember(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.memory, l.past = d, nil
	l.cloud.Advance(time.Now())
	l.remember()
}

// snapshotEach is the least time between two snapshots.
const snapshotEach = 50 * time.Millisecond

// remember takes a snapshot, and drops those that nobody can ask for any more. The caller holds the lock.
func (l *Cloud) remember() {
	now := l.cloud.Now()
	if l.memory == 0 || len(l.past) > 0 && now.Sub(l.past[len(l.past)-1].Now()) < snapshotEach {
		return
	}
	l.past = append(l.past, l.cloud.Snapshot())
	for len(l.past) > 1 && now.Sub(l.past[1].Now()) > l.memory {
		l.past = l.past[1:]
	}
}

// At runs f on the cloud as it was at a time, or as it was when Remember began. f must not change it.
func (l *Cloud) At(t time.Time, f func(c *cloud.Cloud, now time.Time) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.past) == 0 {
		return f(l.cloud, l.cloud.Now())
	}
	n := len(l.past) - 1
	for n > 0 && l.past[n].Now().After(t) {
		n--
	}
	return f(l.past[n], l.past[n].Now())
}

// OnInstance lets f know of every change of an instance, in order: its lifecycle state, its operating system coming up or ending, its health, and at last
// that it is gone. f first learns of all that are there already. It is called by one goroutine and may call the cloud.
func (l *Cloud) OnInstance(f func(cloud.Instance)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range l.cloud.Instances() {
		if !i.Gone {
			l.outbox = append(l.outbox, delivery{to: []func(cloud.Instance){f}, instance: i})
		}
	}
	l.observers = append(l.observers[:len(l.observers):len(l.observers)], f)
	signal(l.filled)
}

// keepTime lets the cloud do what is due.
func (l *Cloud) keepTime() {
	const idle = time.Hour
	t := time.NewTimer(idle)
	defer t.Stop()
	for {
		l.mu.Lock()
		l.cloud.Advance(time.Now())
		l.remember()
		l.flush()
		next, ok := l.cloud.Next()
		l.mu.Unlock()
		wait := idle
		if ok {
			wait = time.Until(next)
		}
		t.Reset(wait)
		select {
		case <-t.C:
		case <-l.wake:
		case <-l.done:
			return
		}
	}
}

// flush queues what has changed in the cloud. The caller holds the lock.
func (l *Cloud) flush() {
	for _, i := range l.cloud.TakeEvents() {
		if i.Gone {
			l.gone(i.ID)
		}
		l.outbox = append(l.outbox, delivery{to: l.observers, instance: i})
	}
	if len(l.outbox) > 0 {
		signal(l.filled)
	}
}

// deliver hands the snapshots to the observers.
func (l *Cloud) deliver() {
	for {
		select {
		case <-l.filled:
		case <-l.done:
			return
		}
		l.mu.Lock()
		batch := l.outbox
		l.outbox = nil
		l.mu.Unlock()
		for _, d := range batch {
			for _, f := range d.to {
				f(d.instance)
			}
		}
	}
}

// signal sets a flag that a goroutine waits for.
func signal(flag chan<- struct{}) {
	select {
	case flag <- struct{}{}:
	default:
	}
}

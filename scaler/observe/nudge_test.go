package observe

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"windlass.dev/windlass/pkg/fleet"
)

// What is never urgent waits ten times as long as an evaluation takes, and fifty times where only pods
// come and go, within bounds; what is urgent does not, and is not delayed by what waits already.
func TestRest(t *testing.T) {
	within := func(d time.Duration) func(*nudger) { return func(n *nudger) { n.within(d) } }
	for _, c := range []struct {
		evaluation time.Duration
		change     func(*nudger)
		want       time.Duration
	}{
		{0, within(later), later},
		{time.Millisecond, within(later), later},
		{50 * time.Millisecond, within(later), 500 * time.Millisecond},
		{time.Minute, within(later), latest},
		{time.Minute, within(seldom), seldom},
		{time.Minute, within(soon), soon},
		{time.Millisecond, (*nudger).churn, later},
		{10 * time.Millisecond, (*nudger).churn, 500 * time.Millisecond},
		{time.Minute, (*nudger).churn, latest},
	} {
		synctest.Test(t, func(t *testing.T) {
			n, began := newNudger(), time.Now()
			n.rest(c.evaluation)
			c.change(n)
			<-n.c
			if took := time.Since(began); took != c.want {
				t.Errorf("after an evaluation of %s a change waits %s, want %s", c.evaluation, took, c.want)
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

// What AWS confirms of our own calls can wait, unless pods wait for it; what others do to groups cannot.
func TestUrgentOfGroups(t *testing.T) {
	for _, c := range []struct {
		expected, awaited bool
		want              time.Duration
	}{{true, false, latest}, {true, true, soon}, {false, false, soon}, {false, true, soon}} {
		synctest.Test(t, func(t *testing.T) {
			o := New(Config{Client: fake.NewClientset(), Logger: quiet(), Groups: &groups{}})
			o.Rest(time.Minute)
			o.Awaits(true)
			o.Awaits(c.awaited)
			began := time.Now()
			o.GroupsChanged(c.expected)
			<-o.Changed()
			if took := time.Since(began); took != c.want {
				t.Errorf("expected %t, awaited %t: an evaluation after %s, want %s", c.expected, c.awaited, took, c.want)
			}
		})
	}
}

// A list of pods that a watch begins with anew may hold one that has come to wait meanwhile, and a pod
// that has just become unschedulable waits for an answer. All else that happens to pods can wait.
func TestUrgentOfPods(t *testing.T) {
	waits, runs := &fleet.Pod{Scheduling: fleet.Unschedulable}, &fleet.Pod{}
	for _, c := range []struct {
		reason  string
		was, is *fleet.Pod
		want    time.Duration
	}{
		{"all are listed anew", nil, nil, soon},
		{"one comes that is unschedulable", nil, waits, soon},
		{"one becomes unschedulable", runs, waits, soon},
		{"one stays unschedulable", waits, waits, latest},
		{"one comes", nil, runs, latest},
		{"one goes", runs, nil, latest},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := New(Config{Client: fake.NewClientset(), Logger: quiet(), Groups: &groups{}})
			o.Rest(time.Minute)
			began := time.Now()
			o.podChanged(c.was, c.is)
			<-o.Changed()
			if took := time.Since(began); took != c.want {
				t.Errorf("%s: an evaluation after %s, want %s", c.reason, took, c.want)
			}
		})
	}
}

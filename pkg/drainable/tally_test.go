package drainable_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

var tallied = time.Date(2025, 1, 1, 10, 0, 0, 0, time.UTC)

// owned is a pod of a ReplicaSet.
func owned(name string, change ...func(*fleet.Pod)) *fleet.Pod {
	p := &fleet.Pod{
		Namespace: "shop", Name: name, UID: types.UID(name), Created: fleet.SecondOf(tallied.Add(-time.Hour)),
		Owner: &metav1.OwnerReference{Kind: "ReplicaSet", Name: "web"}, Spec: &corev1.PodSpec{},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

// Each row is the pods of a node, with what came of asking for some, and how the drain stands:
// its phase, who is left, whose turn it is and what is blocked.
func TestTally(t *testing.T) {
	critical := func(p *fleet.Pod) { p.Spec.PriorityClassName = "system-node-critical" }
	tolerant := func(p *fleet.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }
	naked := func(p *fleet.Pod) { p.Owner = nil }
	task := func(p *fleet.Pod) { p.Annotations = map[string]string{contract.AnnotationSafeToEvict: "on-completion"} }
	leaving := func(p *fleet.Pod) { p.Deleted = fleet.SecondOf(tallied.Add(20 * time.Second)) }
	stays := func(p *fleet.Pod) { p.Deleted = fleet.SecondOf(tallied.Add(-time.Minute)) }
	young := func(p *fleet.Pod) { p.Created = fleet.SecondOf(tallied.Add(-time.Second)) }
	asked := func(uid string, is drainable.Asked) map[types.UID]drainable.Asked {
		return map[types.UID]drainable.Asked{types.UID(uid): is}
	}
	for _, tc := range []struct {
		name  string
		pods  []*fleet.Pod
		asked map[types.UID]drainable.Asked
		in    time.Duration // to the deadline
		want  string
	}{
		{"nothing", nil, nil, 0, "Drained left=0 due= blocked= returned= overdue="},
		{"two that leave at once", []*fleet.Pod{owned("a"), owned("b")}, nil, 0, "Draining left=2 due=a,b blocked= returned= overdue="},
		{"critical pods leave last", []*fleet.Pod{owned("a"), owned("c", critical)}, nil, 0, "Draining left=2 due=a blocked= returned= overdue="},
		{"but not later than their step's time", []*fleet.Pod{owned("a"), owned("c", critical)}, nil, 15 * time.Second, "Draining left=2 due=a,c blocked= returned= overdue="},
		{"one that leaves holds the next step up", []*fleet.Pod{owned("a", leaving), owned("c", critical)}, nil, 0, "Draining left=2 due= blocked= returned= overdue="},
		{"so does one whose eviction was accepted", []*fleet.Pod{owned("a"), owned("c", critical)}, asked("a", drainable.Granted), 0, "Draining left=2 due= blocked= returned= overdue="},
		{"one that is stuck holds up no others", []*fleet.Pod{owned("a"), owned("c", critical)}, asked("a", drainable.Stuck), 0, "Draining left=2 due=a,c blocked= returned= overdue="},
		{"all are stuck", []*fleet.Pod{owned("a")}, asked("a", drainable.Stuck), 0, "Blocked left=1 due=a blocked= returned= overdue="},
		{"one that a rule keeps holds up no others", []*fleet.Pod{owned("n", naked), owned("c", critical)}, nil, 0, "Draining left=2 due=c blocked=n returned= overdue="},
		{"a rule keeps it", []*fleet.Pod{owned("n", naked)}, nil, 0, "Blocked left=1 due= blocked=n returned= overdue="},
		{"it ends by itself", []*fleet.Pod{owned("j", task)}, nil, 0, "Waiting left=1 due= blocked= returned= overdue="},
		{"it is waited for before the next step", []*fleet.Pod{owned("j", task), owned("c", critical)}, nil, 0, "Waiting left=2 due= blocked= returned= overdue="},
		{"it does not end", []*fleet.Pod{owned("a", stays)}, nil, 0, "Drained left=0 due= blocked= returned= overdue=a"},
		{"it came back", []*fleet.Pod{owned("a", tolerant, young)}, nil, 0, "Blocked left=1 due= blocked= returned=a overdue="},
	} {
		d := drainable.Drain{
			Manner: drainable.DefaultManner(), Now: tallied,
			Returns: drainable.Returns{Closed: tallied.Add(-time.Minute), Now: tallied, Steps: drainable.DefaultSteps()}.Find(slices.Values(tc.pods)),
			Asked:   func(p *fleet.Pod) drainable.Asked { return tc.asked[p.UID] },
		}
		if tc.in != 0 {
			d.Deadline = tallied.Add(tc.in)
		}
		got := d.Tally(tc.pods)
		if text := say(got); text != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, text, tc.want)
		}
	}
}

func say(t drainable.Tally) string {
	names := func(list []*fleet.Pod) string {
		var out []string
		for _, p := range list {
			out = append(out, p.Name)
		}
		return strings.Join(out, ",")
	}
	of := func(list []drainable.Candidate) (pods []*fleet.Pod) {
		for _, c := range list {
			pods = append(pods, c.Pod)
		}
		return pods
	}
	return fmt.Sprintf("%s left=%d due=%s blocked=%s returned=%s overdue=%s", t.Phase(false), t.Left, names(of(t.Due)), names(of(t.Blocked)), names(t.Returned), names(t.Overdue))
}

// A drain that pauses waits, or is still draining where no pod is left.
func TestPhaseOfAPause(t *testing.T) {
	if got := (drainable.Tally{}).Phase(true); got != contract.PhaseDraining {
		t.Errorf("an empty node that pauses is %s", got)
	}
	if got := (drainable.Tally{Left: 1, Moving: 1}).Phase(true); got != contract.PhaseWaiting {
		t.Errorf("a node with a pod that pauses is %s", got)
	}
}

// Of each notice there is one last call, however often its deadline is put off, and what is
// written down of them stays small.
func TestOneLastCall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := owned("a", func(p *fleet.Pod) {
			p.Created = fleet.SecondOf(tallied.Add(time.Minute))
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		})
		now, calls := tallied.Add(2*time.Minute), drainable.Calls{Notices: []string{"request:upgrade"}}
		deadline, asked := now.Add(10*time.Minute), 0
		for range rapid.IntRange(60, 120).Draw(t, "looks") {
			r := drainable.Returns{Closed: tallied, Now: now, Deadline: deadline, LastCall: calls.Last(tallied), Steps: drainable.DefaultSteps()}
			r = r.Find(slices.Values([]*fleet.Pod{pod}))
			d := drainable.Drain{Manner: drainable.DefaultManner(), Now: now, Deadline: deadline, Urgency: drainable.Hurried, Returns: r}
			if len(d.Tally([]*fleet.Pod{pod}).Due) > 0 {
				asked++
				pod = owned("a", func(p *fleet.Pod) { *p = *pod; p.Created = fleet.SecondOf(now.Add(time.Second)) })
			}
			calls.Begun = r.NoteCalls(calls, []*fleet.Pod{pod})
			if len(calls.Begun) > contract.MostLastCalls {
				t.Fatalf("%d last calls are kept", len(calls.Begun))
			}
			now = now.Add(time.Duration(rapid.IntRange(8, 20).Draw(t, "seconds")) * time.Second)
			if left := deadline.Sub(now); left < time.Minute {
				deadline = now.Add(3 * time.Minute)
			}
		}
		most := 1
		for length := 2 * time.Minute; length < now.Sub(tallied); length *= 2 {
			most++ // the drain has gone on for twice as long
		}
		if asked > most {
			t.Fatalf("it was asked %d times in %s, %d are enough", asked, now.Sub(tallied), most)
		}
	})
}

// The next pod of an owner is asked when the successor of the one before would have shown: a few
// seconds after that was asked, and where pods came back before two minutes after it left.
func TestNextAfterOneHasLeft(t *testing.T) {
	tolerant := func(p *fleet.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }
	stateful := func(p *fleet.Pod) { p.Owner = &metav1.OwnerReference{Kind: "StatefulSet", Name: "web"} }
	back := func(p *fleet.Pod) { p.Created = fleet.SecondOf(tallied.Add(-10 * time.Minute)) }
	left := drainable.Eviction{At: tallied.Add(-20 * time.Second), Left: tallied.Add(-2 * time.Second)}
	for _, tc := range []struct {
		name   string
		pod    *fleet.Pod
		beside []*fleet.Pod
		gone   drainable.Eviction
		in     time.Duration
	}{
		{"it was asked a while ago", owned("a", tolerant), nil, left, 0},
		{"it was asked a moment ago", owned("a", tolerant), nil, drainable.Eviction{At: tallied.Add(-2 * time.Second)}, 3 * time.Second},
		{"of a StatefulSet", owned("a", tolerant, stateful), nil, left, 3 * time.Second},
		{"where one came back", owned("a", tolerant), []*fleet.Pod{owned("b", tolerant, back)}, left, 2*time.Minute + 3*time.Second},
		{"of another owner", owned("a", tolerant), []*fleet.Pod{owned("b", tolerant, stateful)}, drainable.Eviction{Maker: "another", At: tallied}, 0},
	} {
		if tc.gone.Maker == "" {
			tc.gone.Maker = drainable.MakerOf(tc.pod)
		}
		r := drainable.Returns{Closed: tallied.Add(-30 * time.Minute), Now: tallied, Steps: drainable.DefaultSteps(), Evicted: []drainable.Eviction{tc.gone}}
		at, ok := r.Find(slices.Values(append(tc.beside, tc.pod))).Next(tc.pod)
		if !ok || !at.Equal(tallied.Add(tc.in)) {
			t.Errorf("%s: the next is asked in %s (%t), want %s", tc.name, at.Sub(tallied), ok, tc.in)
		}
	}
}

// A pod's time to end begins when its kubelet can have heard of it: a loaded API server tells
// late, and one that was away later still.
func TestOverdueOfAPodHeardOfLate(t *testing.T) {
	grace := int64(5)
	pod := owned("a", func(p *fleet.Pod) {
		p.Spec.TerminationGracePeriodSeconds = &grace
		p.Deleted = fleet.SecondOf(tallied.Add(5 * time.Second)) // it was asked to end at tallied
	})
	for _, tc := range []struct {
		name string
		late time.Duration
		back time.Duration // after it was asked; zero for never away
		want time.Duration // after it was asked, when it is overdue
	}{
		{"heard of at once", 0, 0, 35 * time.Second},
		{"heard of late", 28 * time.Second, 0, 63 * time.Second},
		{"by a clock that is behind", -time.Hour, 0, 35 * time.Second},
		{"by a clock that was ahead", time.Hour, 0, 95 * time.Second},
		{"heard of late, and the server was away after that", 10 * time.Second, 50 * time.Second, 85 * time.Second},
		{"heard of after the server was back", 55 * time.Second, 50 * time.Second, 90 * time.Second},
	} {
		for _, c := range []struct {
			now     time.Duration
			overdue bool
		}{{tc.want - time.Second, false}, {tc.want, true}} {
			var again time.Time
			d := drainable.Drain{
				Now: tallied.Add(c.now), Again: func(t time.Time) { again = t },
				HeardLate: func(*fleet.Pod) time.Duration { return tc.late },
			}
			if tc.back > 0 {
				d.Back = tallied.Add(tc.back)
			}
			if got := len(d.Tally([]*fleet.Pod{pod}).Overdue) > 0; got != c.overdue {
				t.Errorf("%s: after %s overdue is %t", tc.name, c.now, got)
			}
			if want := tallied.Add(tc.want); !c.overdue && !again.Equal(want) {
				t.Errorf("%s: looked at again at %s, want %s", tc.name, again, want)
			}
		}
	}
}

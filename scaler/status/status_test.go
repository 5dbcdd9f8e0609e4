package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/statuspage"
	"windlass.dev/windlass/scaler/act"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/verdict"
)

const ours = "windlass-system"

func state(group string) fleet.State {
	return fleet.State{GrownAt: map[string]time.Time{group: time.Unix(1_700_000_000, 0).UTC()}}
}

// What one leader persists the next one reads.
func TestMemoryOutlivesItsLeader(t *testing.T) {
	maps := fake.NewClientset().CoreV1().ConfigMaps(ours)
	first := NewMemory(maps)
	if err := first.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, group := range []string{"web", "batch"} { // made, then changed
		if _, err := first.Remember(t.Context(), state(group)); err != nil {
			t.Fatal(err)
		}
	}
	next := NewMemory(maps)
	if err := next.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(state("batch"), next.State()); diff != "" {
		t.Error(diff)
	}
}

// Nothing is written where nothing changed.
func TestMemoryWritesOnChange(t *testing.T) {
	client := fake.NewClientset()
	m := NewMemory(client.CoreV1().ConfigMaps(ours))
	for range 3 {
		if _, err := m.Remember(t.Context(), fleet.State{Heartbeats: map[string]time.Time{}}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(client.Actions()); n != 0 {
		t.Errorf("%d calls for an empty state", n)
	}
	for range 3 {
		if _, err := m.Remember(t.Context(), state("web")); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(client.Actions()); n != 1 {
		t.Errorf("%d calls for one state", n)
	}
}

// Two that think they lead find out; what was not written is not persisted.
func TestMemoryHasOneWriter(t *testing.T) {
	client := fake.NewClientset()
	maps := client.CoreV1().ConfigMaps(ours)
	one, other := NewMemory(maps), NewMemory(maps)
	if _, err := one.Remember(t.Context(), state("web")); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Remember(t.Context(), state("batch")); !errors.Is(err, ErrOthers) {
		t.Errorf("the second that makes it: %v", err)
	}
	if err := other.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	client.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(corev1.Resource("configmaps"), contract.ConfigMapState, nil)
	})
	if _, err := other.Remember(t.Context(), state("batch")); !errors.Is(err, ErrOthers) {
		t.Errorf("the second that changes it: %v", err)
	}
	if diff := cmp.Diff(state("web"), other.State()); diff != "" {
		t.Error(diff)
	}
}

func TestMemoryUnreadable(t *testing.T) {
	for text, want := range map[string]string{
		"{":                           "unexpected end",
		`{"seen":{"web":"1e-99999"}}`: `seen.web: "1e-99999" is beyond all quantities`,
	} {
		maps := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ours, Name: contract.ConfigMapState},
			Data: map[string]string{"state": text}}).CoreV1().ConfigMaps(ours)
		m := NewMemory(maps)
		if err := m.Load(t.Context()); !errors.Is(err, ErrUnreadable) || !strings.Contains(err.Error(), contract.ConfigMapState) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
		if _, err := m.Remember(t.Context(), state("web")); err != nil {
			t.Errorf("writing anew: %v", err)
		}
	}
}

func TestPage(t *testing.T) {
	s := fleet.Snapshot{
		Faults: []string{"no right to list volumes"},
		Groups: []fleet.Group{
			{Name: "web", Max: 5, Desired: 3, NodeTemplates: []fleet.NodeTemplate{{PricePerHour: 0.1}, {PricePerHour: 0.25}}, Instances: []fleet.Instance{{ID: "i-1", State: fleet.InService}, {ID: "i-2", State: fleet.Terminating}}},
			{Name: "batch", Max: 2, Faults: []string{"no template"}},
		},
		Nodes: []fleet.Node{{Name: "n1", ProviderID: "aws:///a/i-1", Ready: true}, {Name: "n2", ProviderID: "aws:///a/i-2", Ready: true}},
	}
	var verdicts []*verdict.Verdict
	for i := range 5 {
		verdicts = append(verdicts, &verdict.Verdict{Of: verdict.OfPod, Name: fmt.Sprintf("default/p%d", 4-i), Reason: verdict.PodGroupsUnavailable, Details: verdict.Quote("web is at max")})
	}
	verdicts = append(verdicts,
		&verdict.Verdict{Of: verdict.OfPod, Name: "default/big", Reason: verdict.PodNoGroupFits, Details: verdict.Quote("64 cpu")},
		&verdict.Verdict{Of: verdict.OfGroup, Name: "web", Reason: verdict.GroupAtMax, Details: verdict.Quote("5 of 5")})
	for i := range nodeNames + 2 {
		verdicts = append(verdicts, &verdict.Verdict{Of: verdict.OfNode, Name: fmt.Sprintf("n%02d", i), Reason: verdict.NodeNeeded, Details: verdict.Quote("used")})
	}
	suspend := action.Suspend{Group: "web", Process: "A", Why: "x"}
	page := NewPage(s, plan.Plan{Verdicts: verdicts, Others: []string{"a Cluster Autoscaler is alive"}, Actions: []action.Action{suspend}}, []act.Result{
		{Action: suspend, Outcome: act.Paused, Err: errors.New("no right")}, {Action: suspend, Outcome: act.Paused}, {Action: suspend, Outcome: act.Stopped, Err: act.ErrStopped}})

	wantGroups := []statuspage.GroupLine{
		{Name: "batch", Max: 2, Faults: []string{"no template"}},
		{Name: "web", Max: 5, Desired: 3, Ready: 1, Terminating: 1, PricePerHour: 0.25, Reason: verdict.GroupAtMax, Message: "5 of 5"},
	}
	if diff := cmp.Diff(wantGroups, page.Groups); diff != "" {
		t.Error(diff)
	}
	wantPods := []statuspage.PodLine{
		{Reason: verdict.PodGroupsUnavailable, Message: "web is at max", Count: 5, Pods: []string{"default/p0", "default/p1", "default/p2"}},
		{Reason: verdict.PodNoGroupFits, Message: "64 cpu", Count: 1, Pods: []string{"default/big"}},
	}
	if diff := cmp.Diff(wantPods, page.Pods); diff != "" {
		t.Error(diff)
	}
	if len(page.Nodes) != 1 || page.Nodes[0].Count != nodeNames+2 || len(page.Nodes[0].Nodes) != nodeNames || page.Nodes[0].Nodes["n00"] != "used" {
		t.Errorf("nodes %+v", page.Nodes)
	}
	if diff := cmp.Diff([]string{"suspend A of web: x"}, page.Doing); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"suspend A of web: x: no right"}, page.Failing); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"no right to list volumes"}, page.Faults); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a Cluster Autoscaler is alive"}, page.Others); diff != "" {
		t.Error(diff)
	}
}

// However many verdicts there are, the page has room in its ConfigMap.
func TestPageHasBounds(t *testing.T) {
	var verdicts []*verdict.Verdict
	for i := range 20_000 {
		verdicts = append(verdicts, &verdict.Verdict{Of: verdict.OfPod, Name: fmt.Sprintf("default/p%d", i), Reason: verdict.PodNoGroupFits,
			Details: verdict.Quote(fmt.Sprintf("needs %d cpu, %s", i, strings.Repeat("x", 100)))})
	}
	var s fleet.Snapshot
	for i := range 100 {
		s.Groups = append(s.Groups, fleet.Group{Name: fmt.Sprintf("group-%d", i)})
	}
	page := NewPage(s, plan.Plan{Verdicts: verdicts}, nil)
	text, err := page.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 256<<10 || len(text) < 64<<10 {
		t.Errorf("%d bytes", len(text))
	}
	if !strings.Contains(text, "omitted:") || !strings.Contains(text, "group-99") {
		t.Error("the page does not say that it leaves something out, or leaves groups out first")
	}
}

// Neither do ten thousand groups, long names, nor messages of any length.
func TestPageHasBoundsWhateverIsSaid(t *testing.T) {
	long := strings.Repeat("ä", 2_000)
	var s fleet.Snapshot
	var verdicts []*verdict.Verdict
	var actions []action.Action
	for i := range 10_000 {
		name := fmt.Sprintf("%05d-%s", i, strings.Repeat("n", 250))
		s.Groups = append(s.Groups, fleet.Group{Name: name, Faults: []string{long, long}})
		for _, kind := range []verdict.SubjectKind{verdict.OfGroup, verdict.OfPod, verdict.OfNode} {
			verdicts = append(verdicts, &verdict.Verdict{Of: kind, Name: name, Reason: verdict.Reason(fmt.Sprintf("R%d", i%40)), Details: verdict.Quote(fmt.Sprint(i, long))})
		}
		actions = append(actions, action.Suspend{Group: name, Process: "A", Why: long})
	}
	page := NewPage(s, plan.Plan{Verdicts: verdicts, Actions: actions}, nil)
	page.Written = time.Now()
	text, err := page.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 256<<10 || len(text) < 64<<10 {
		t.Errorf("%d bytes", len(text))
	}
	if !strings.Contains(text, "00000-nnn") || !strings.Contains(text, "omitted:") || !utf8.ValidString(text) {
		t.Error("no group is left, or nothing is said to be left out")
	}
}

// A page is written when it changes, and at most every five seconds.
func TestBoardWritesOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		b := NewBoard(client.CoreV1().ConfigMaps(ours), "me", slog.New(slog.NewTextHandler(io.Discard, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { b.Run(ctx); close(done) }()
		defer func() { cancel(); <-done }()

		for i := range 95 { // for nearly ten seconds, something else each 100 ms
			b.Post(func() statuspage.Status {
				return statuspage.Status{Page: statuspage.Page{Doing: []string{fmt.Sprint(i)}}}
			})
			time.Sleep(100 * time.Millisecond)
		}
		if n := writes(client); n != 2 {
			t.Errorf("%d writes in nearly ten seconds", n)
		}
		time.Sleep(postEvery)
		before := writes(client)
		for range 100 {
			b.Post(func() statuspage.Status { return statuspage.Status{Page: statuspage.Page{Doing: []string{"94"}}} })
			time.Sleep(100 * time.Millisecond)
		}
		if n := writes(client); n != before {
			t.Errorf("%d writes of an unchanged page", n-before)
		}
		object, err := client.CoreV1().ConfigMaps(ours).Get(ctx, contract.ConfigMapStatus, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if text := object.Data["status"]; !strings.Contains(text, "leader: me") || !strings.Contains(text, `- "94"`) || !strings.Contains(text, "written:") {
			t.Errorf("status:\n%s", text)
		}
	})
}

// A page that somebody deleted is there again after a while, though nothing has changed or been posted.
func TestBoardIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		maps := client.CoreV1().ConfigMaps(ours)
		b := NewBoard(maps, "me", slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { b.Run(ctx); close(done) }()
		defer func() { cancel(); <-done }()
		time.Sleep(2 * refreshEvery)
		if n := len(client.Actions()); n != 0 {
			t.Errorf("%d calls for nothing", n)
		}
		b.Post(func() statuspage.Status { return statuspage.Status{Page: statuspage.Page{Doing: []string{"a"}}} })
		time.Sleep(time.Minute)
		if err := maps.Delete(ctx, contract.ConfigMapStatus, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(refreshEvery)
		if _, err := maps.Get(ctx, contract.ConfigMapStatus, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// What the page has no room for is written when it changes, too, a minute later at most, and a status is drawn no
// more often than it may be written.
func TestBoardWritesVerdicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		b := NewBoard(client.CoreV1().ConfigMaps(ours), "me", slog.New(slog.NewTextHandler(io.Discard, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { b.Run(ctx); close(done) }()
		defer func() { cancel(); <-done }()
		var drawn atomic.Int64
		post := func(node string) {
			b.Post(func() statuspage.Status {
				drawn.Add(1)
				return statuspage.Status{Verdicts: statuspage.Verdicts{Nodes: statuspage.List[statuspage.Node]{{Name: node}}}}
			})
		}
		for range 100 {
			post("a")
			time.Sleep(100 * time.Millisecond)
		}
		if n := writes(client); n != 1 || drawn.Load() > 3 {
			t.Errorf("%d writes and %d drawn in ten seconds", n, drawn.Load())
		}
		post("b")
		time.Sleep(2 * postEvery)
		if n := writes(client); n != 1 {
			t.Errorf("%d writes in twenty seconds, though the page stays", n)
		}
		time.Sleep(verdictsEvery)
		object, err := client.CoreV1().ConfigMaps(ours).Get(ctx, contract.ConfigMapStatus, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if v, err := statuspage.ReadVerdicts(object); err != nil || len(v.Nodes) != 1 || v.Nodes[0].Name != "b" {
			t.Errorf("verdicts %+v, error %v", v, err)
		}
	})
}

// A page that could not be written is tried again.
func TestBoardTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var away atomic.Bool
		away.Store(true)
		client.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			if away.Load() {
				return true, nil, errors.New("away")
			}
			return false, nil, nil
		})
		b := NewBoard(client.CoreV1().ConfigMaps(ours), "me", slog.New(slog.NewTextHandler(io.Discard, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { b.Run(ctx); close(done) }()
		defer func() { cancel(); <-done }()
		b.Post(func() statuspage.Status { return statuspage.Status{} })
		time.Sleep(time.Second)
		away.Store(false)
		time.Sleep(2 * postEvery)
		if _, err := client.CoreV1().ConfigMaps(ours).Get(ctx, contract.ConfigMapStatus, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// writes counts the pages that arrived.
func writes(client *fake.Clientset) int {
	n := 0
	for _, a := range client.Actions() {
		if a.GetVerb() == "create" || a.GetVerb() == "update" {
			n++
		}
	}
	// The first update finds nothing and is followed by a create.
	return n - 1
}

// What was posted in a term that has ended is not written in the next one: another leader's page may stand.
func TestBoardDropsWhatATermLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		b := NewBoard(client.CoreV1().ConfigMaps(ours), "a", slog.New(slog.DiscardHandler))
		b.Post(func() statuspage.Status {
			return statuspage.Status{Page: statuspage.Page{Trouble: "of the earlier term"}}
		})
		b.Drop()
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { b.Run(ctx); close(ended) }()
		time.Sleep(2 * postEvery)
		if n := len(client.Actions()); n > 0 {
			t.Errorf("%d calls, and nothing was posted", n)
		}
		b.Post(func() statuspage.Status { return statuspage.Status{} })
		time.Sleep(2 * postEvery)
		if n := len(client.Actions()); n == 0 {
			t.Error("what was posted then is not written")
		}
		end()
		<-ended
	})
}

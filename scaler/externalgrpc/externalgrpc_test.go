package externalgrpc

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/e2e/fakegrpc"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/act"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/externalgrpc/protocol"
	"windlass.dev/windlass/scaler/observe"
)

var (
	_ act.Groups     = (*Verbs)(nil)
	_ observe.Groups = (*Reader)(nil)
)

var usual = Defaults{UtilizationThreshold: 0.5, GPUUtilizationThreshold: 0.5, UnneededTime: 10 * time.Minute, UnreadyTime: 20 * time.Minute, MaxNodeProvisionTime: 15 * time.Minute}

func node(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: "rack-1", corev1.LabelInstanceTypeStable: "box", corev1.LabelHostname: name, "team": "a"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Capacity: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110"),
		}},
	}
}

func pool(instances ...string) fakegrpc.Group {
	g := fakegrpc.Group{Name: "pool", Min: 1, Max: 5, Target: len(instances), Node: node("pool-template"), Price: 0.5}
	for _, id := range instances {
		g.Instances = append(g.Instances, fakegrpc.Running(id))
	}
	return g
}

// bed is a provider, and what speaks with it.
type bed struct {
	t        *testing.T
	machines *fakegrpc.Memory
	fake     *fakegrpc.Provider
	provider *Provider
	reader   *Reader
	verbs    *Verbs
	log      *bytes.Buffer
	mu       sync.Mutex
	clock    time.Time
}

func newBed(t *testing.T, groups ...fakegrpc.Group) *bed {
	b := &bed{t: t, machines: fakegrpc.NewMemory(groups...), log: &bytes.Buffer{}, clock: time.Unix(1_800_000_000, 0)}
	var err error
	if b.fake, err = fakegrpc.Start(b.machines, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.fake.Stop)
	b.dial(Config{Address: b.fake.Address()})
	return b
}

func (b *bed) dial(c Config) {
	provider, err := Dial(c, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = provider.Close() })
	b.provider, b.reader, b.verbs = provider, provider.NewReader(usual, slog.New(slog.NewTextHandler(b.log, nil)), nil), provider.NewVerbs()
	now := func() time.Time { b.mu.Lock(); defer b.mu.Unlock(); return b.clock }
	b.reader.now, b.verbs.now = now, now
}

func (b *bed) later(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clock = b.clock.Add(d)
}

func (b *bed) read() []fleet.Group {
	b.t.Helper()
	if err := b.reader.Read(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	groups, _, _ := b.reader.Groups(nil)
	return groups
}

func TestReadsGroups(t *testing.T) {
	g := pool("lab://a", "lab://b")
	g.Instances[1].Status.InstanceState = protocol.InstanceStatus_instanceCreating
	b := newBed(t, g)
	want := fleet.Group{
		Name: "pool", External: true, Min: 1, Max: 5, Desired: 2, Zones: []string{"rack-1"},
		Instances: []fleet.Instance{{ID: "lab://a", State: fleet.InService, Type: "box", Protected: true}, {ID: "lab://b", State: fleet.Pending, Type: "box", Protected: true}},
		NodeTemplates: []fleet.NodeTemplate{{
			Zone: "rack-1", InstanceType: "box", PricePerHour: 0.5, Capacity: node("").Status.Capacity, Allocatable: node("").Status.Capacity,
			Labels: map[string]string{corev1.LabelTopologyZone: "rack-1", corev1.LabelInstanceTypeStable: "box", "team": "a"}, Taints: node("").Spec.Taints,
		}},
	}
	got := b.read()[0]
	want.Template = got.Template
	for i := range want.Instances {
		want.Instances[i].Template = got.Template // nodes of the group correct the template
	}
	if diff := cmp.Diff(want, got); diff != "" || got.Template == "" {
		t.Errorf("template %q: %s", got.Template, diff)
	}
}

// A provider of before November 2025 and one of since then, each of which reads and writes its own
// numbers alone, are read as one that knows both.
func TestBothGenerations(t *testing.T) {
	minutes := func(n int) *metav1.Duration {
		return &metav1.Duration{Duration: time.Duration(n) * time.Minute}
	}
	for name, faults := range map[string]fakegrpc.Faults{"old": {Old: true}, "new": {New: true}, "both": {}} {
		t.Run(name, func(t *testing.T) {
			g := pool("lab://a")
			g.Options = Defaults{UtilizationThreshold: 0.7, UnneededTime: 3 * time.Minute, UnreadyTime: 4 * time.Minute, MaxNodeProvisionTime: time.Hour}.message()
			if faults.Old {
				// As it sends back what it does not know.
				g.Options.ScaleDownUnneededDuration, g.Options.ScaleDownUnreadyDuration = usual.message().ScaleDownUnneededDuration, nil
				g.Options.MaxNodeProvisionDuration = usual.message().MaxNodeProvisionDuration
			}
			if faults.New {
				g.Options.ScaleDownUnneededTime, g.Options.ScaleDownUnreadyTime, g.Options.MaxNodeProvisionTime = nil, nil, nil
			}
			b := newBed(t, g)
			b.fake.Break(faults)
			got := b.read()[0]
			share, gpu, ignore := 0.7, 0.0, false
			if diff := cmp.Diff(fleet.ScaleDownOptions{UtilizationThreshold: &share, GPUUtilizationThreshold: &gpu, IgnoreDaemonSets: &ignore, UnneededTime: minutes(3), UnreadyTime: minutes(4), MaxNodeProvisionTime: minutes(60)}, got.ScaleDown); diff != "" {
				t.Error(diff)
			}
			if len(got.NodeTemplates) != 1 || got.NodeTemplates[0].PricePerHour != 0.5 || len(got.Faults) != 0 {
				t.Errorf("got templates %v and faults %v", got.NodeTemplates, got.Faults)
			}
			options, price := b.fake.Requests()
			if d := options.GetDefaults(); d.GetScaleDownUnneededTime().GetDuration() != int64(10*time.Minute) || d.GetScaleDownUnneededDuration().AsDuration() != 10*time.Minute {
				t.Errorf("the defaults are not sent in both: %v", d)
			}
			if price.GetStartTime().GetSeconds() != b.clock.Unix() || price.GetEndTimestamp().GetSeconds() != b.clock.Add(time.Hour).Unix() {
				t.Errorf("the times are not sent in both: %v", price)
			}
		})
	}
}

// What is optional may be missing: no template, no price, no options, no label.
func TestOptionalCalls(t *testing.T) {
	g := pool("lab://a")
	g.Node = nil
	b := newBed(t, g)
	b.fake.Break(fakegrpc.Faults{Fail: map[string]error{"GPULabel": status.Error(codes.Unimplemented, ""), "Refresh": status.Error(codes.Unimplemented, "")}})
	if got := b.read()[0]; len(got.Faults) != 0 || got.Held != "" || got.Desired != 1 || len(got.NodeTemplates) != 0 {
		t.Errorf("got %+v", got)
	}
}

// Whatever a provider answers, nothing of a group is changed where it contradicts itself, and the
// culprit is named.
func TestWrongAnswers(t *testing.T) {
	creating := func(id, code string) *protocol.Instance {
		return &protocol.Instance{Id: id, Status: &protocol.InstanceStatus{InstanceState: protocol.InstanceStatus_instanceCreating, ErrorInfo: &protocol.InstanceErrorInfo{ErrorCode: code, ErrorMessage: "no\nboxes\x1b left"}}}
	}
	many := make([]*protocol.Instance, mostMachines+1)
	for i := range many {
		many[i] = fakegrpc.Running("lab://" + strings.Repeat("x", i%7) + time.Duration(i).String())
	}
	tests := []struct {
		name   string
		lie    func(groups []fakegrpc.Group) []fakegrpc.Group
		broken fakegrpc.Faults
		held   string // of the first group
		fault  string // of the first group, or of the provider
		check  func(g fleet.Group) bool
	}{
		{name: "size below instances", lie: func(g []fakegrpc.Group) []fakegrpc.Group { g[0].Target = 1; return g }, held: "target size 1, and 2 instances"},
		{name: "negative size", lie: func(g []fakegrpc.Group) []fakegrpc.Group { g[0].Target = -3; return g }, held: "target size -3"},
		{name: "huge size", lie: func(g []fakegrpc.Group) []fakegrpc.Group { g[0].Target, g[0].Max = 2e9, 2e9; return g }, held: "target size 2000000000", check: func(g fleet.Group) bool { return g.Desired <= mostOwed+2 }},
		{name: "bounds the wrong way round", lie: func(g []fakegrpc.Group) []fakegrpc.Group { g[0].Min, g[0].Max = 5, 1; return g }, held: "5 to 1"},
		{name: "negative minimum", lie: func(g []fakegrpc.Group) []fakegrpc.Group { g[0].Min = -1; return g }, held: "-1 to 5", check: func(g fleet.Group) bool { return g.Min >= 0 }},
		{name: "one id twice", lie: func(g []fakegrpc.Group) []fakegrpc.Group { return append(g, g[0]) }, held: "names it twice"},
		{name: "an instance in two groups", lie: func(g []fakegrpc.Group) []fakegrpc.Group {
			other := g[0]
			other.Name = "zother"
			return append(g, other)
		}, held: "lab://b in groups pool, zother"},
		{name: "an instance twice", lie: func(g []fakegrpc.Group) []fakegrpc.Group {
			g[0].Instances = append(g[0].Instances, g[0].Instances[0])
			g[0].Target = 3
			return g
		}, held: "lab://a twice"},
		{name: "an instance without an id", lie: func(g []fakegrpc.Group) []fakegrpc.Group {
			g[0].Instances = append(g[0].Instances, fakegrpc.Running(""))
			g[0].Target = 3
			return g
		}, held: `an instance ""`},
		{name: "an instance that is no providerID", lie: func(g []fakegrpc.Group) []fakegrpc.Group { g[0].Instances[0].Id = "box:5"; return g }, held: `an instance "box:5"`},
		{name: "an AWS providerID without an instance", lie: func(g []fakegrpc.Group) []fakegrpc.Group { g[0].Instances[0].Id = "aws:///zone/fargate"; return g }, held: "aws:///zone/fargate"},
		{name: "more instances than there can be", lie: func(g []fakegrpc.Group) []fakegrpc.Group { g[0].Instances = many; return g }, held: "more than 20000 instances"},
		{name: "all or nothing", lie: func(g []fakegrpc.Group) []fakegrpc.Group {
			g[0].Options = &protocol.NodeGroupAutoscalingOptions{ZeroOrMaxNodeScaling: true}
			return g
		}, held: "zeroOrMaxNodeScaling"},
		{name: "a group without an id", lie: func(g []fakegrpc.Group) []fakegrpc.Group { return append(g, fakegrpc.Group{}) }, fault: "a group without an id"},
		{name: "a group with a long id", lie: func(g []fakegrpc.Group) []fakegrpc.Group {
			return append(g, fakegrpc.Group{Name: strings.Repeat("g", 300)})
		}, fault: "id of 300 bytes"},
		{name: "too many groups", lie: func(g []fakegrpc.Group) []fakegrpc.Group {
			for i := range mostGroups + 5 {
				g = append(g, fakegrpc.Group{Name: "more-" + time.Duration(i).String(), Max: 1})
			}
			return g
		}, fault: "1006 groups"},
		{name: "options out of range", lie: func(g []fakegrpc.Group) []fakegrpc.Group {
			g[0].Options = Defaults{UtilizationThreshold: -1, UnneededTime: -time.Second}.message()
			return g
		},
			fault: "scaleDownUtilizationThreshold is -1", check: func(g fleet.Group) bool {
				return g.ScaleDown.UtilizationThreshold == nil && g.ScaleDown.UnneededTime == nil
			}},
		{name: "no time to register", lie: func(g []fakegrpc.Group) []fakegrpc.Group { g[0].Options = Defaults{}.message(); return g },
			fault: "maxNodeProvisionDuration is 0s: want more than 0", check: func(g fleet.Group) bool { return g.ScaleDown.MaxNodeProvisionTime == nil }},
		{name: "a negative price", lie: func(g []fakegrpc.Group) []fakegrpc.Group { g[0].Price = -1; return g }, fault: "-1 dollars an hour", check: func(g fleet.Group) bool { return g.NodeTemplates[0].PricePerHour == 0 }},
		{name: "a template that does not parse", broken: fakegrpc.Faults{Template: []byte("hello")}, fault: "it is no Node in protobuf", check: func(g fleet.Group) bool { return len(g.NodeTemplates) == 0 }},
		{name: "a huge template", broken: fakegrpc.Faults{Template: make([]byte, mostTemplate+1)}, fault: "bytes, more than", check: func(g fleet.Group) bool { return len(g.NodeTemplates) == 0 }},
		{name: "a launch that fails", lie: func(g []fakegrpc.Group) []fakegrpc.Group {
			g[0].Instances = append(g[0].Instances, creating("lab://c", "out of: boxes"))
			g[0].Target = 3
			return g
		}, fault: "cannot create lab://c: out-of--boxes: no boxes left", check: func(g fleet.Group) bool {
			return g.Instances[2].Failed == "out-of--boxes" && !g.Instances[2].FailedSince.IsZero() && g.Held == ""
		}},
		{name: "nodes are not told", broken: fakegrpc.Faults{Fail: map[string]error{"NodeGroupNodes": status.Error(codes.Internal, "db")}}, held: "not been read yet", fault: "NodeGroupNodes: Internal: db", check: func(g fleet.Group) bool { return g.Desired == 0 && len(g.Instances) == 0 }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t, pool("lab://a", "lab://b"))
			faults := test.broken
			faults.Lie = test.lie
			b.fake.Break(faults)
			got := b.read()[0]
			said := strings.Join(append(got.Faults, b.reader.Fault()), "\n")
			if !strings.Contains(got.Held, test.held) || (got.Held == "") != (test.held == "") {
				t.Errorf("held for %q, want %q", got.Held, test.held)
			}
			if !strings.Contains(said, test.fault) {
				t.Errorf("said %q, want %q", said, test.fault)
			}
			if test.check != nil && !test.check(got) {
				t.Errorf("got %+v", got)
			}
			if got.Held != "" && len(got.NodeTemplates) > 0 {
				t.Errorf("it has a template: %+v", got)
			}
			if got.Held == "" || test.lie == nil {
				return
			}
			// Nor is anything changed by an action that was decided before.
			_ = b.verbs.Lower(t.Context(), "pool", 2, 1)
			_ = b.verbs.Terminate(t.Context(), "pool", "lab://x", true)
			if calls := b.fake.Calls(); len(calls) > 0 {
				t.Errorf("made %v", calls)
			}
		})
	}
}

// A template that says the same in other words at each reading is the same template: what was learned
// from its nodes holds, and nobody is woken. One that says something else is another.
func TestTemplateInOtherWords(t *testing.T) {
	read := func(change func(n *corev1.Node)) []fleet.Group {
		g := pool("lab://a")
		g.Node.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}, {Key: "b", Effect: corev1.TaintEffectNoExecute}}
		change(g.Node)
		return newBed(t, g).read()
	}
	first := read(func(*corev1.Node) {})
	for name, change := range map[string]func(n *corev1.Node){
		"another name": func(n *corev1.Node) {
			n.Name, n.UID, n.Labels[corev1.LabelHostname] = "template-node-8372", "other", "template-node-8372"
			n.Spec.ProviderID = "lab://template/8372"
		},
		"another time": func(n *corev1.Node) {
			now := metav1.Now()
			n.CreationTimestamp, n.Spec.Taints[1].TimeAdded = now, &now
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: now}}
		},
		"another order": func(n *corev1.Node) { slices.Reverse(n.Spec.Taints) },
	} {
		for range 5 { // maps have no order
			if diff := cmp.Diff(first, read(change)); diff != "" {
				t.Errorf("%s: %s", name, diff)
				break
			}
		}
	}
	for name, change := range map[string]func(n *corev1.Node){
		"label":    func(n *corev1.Node) { n.Labels["team"] = "b" },
		"taint":    func(n *corev1.Node) { n.Spec.Taints[0].Value = "x" },
		"resource": func(n *corev1.Node) { n.Status.Capacity[corev1.ResourceCPU] = resource.MustParse("3") },
	} {
		if read(change)[0].Template == first[0].Template {
			t.Errorf("another %s, and the same template", name)
		}
	}
}

func TestHostileTemplates(t *testing.T) {
	for name, change := range map[string]func(n *corev1.Node){
		"a resource below zero": func(n *corev1.Node) { n.Status.Capacity[corev1.ResourceCPU] = resource.MustParse("-1") },
		"more than any machine": func(n *corev1.Node) { n.Status.Capacity[corev1.ResourceMemory] = resource.MustParse("8Ei") },
		"pods that overflow": func(n *corev1.Node) {
			n.Status.Capacity[corev1.ResourcePods] = resource.MustParse("9223372036854775807")
		},
		"no pods":           func(n *corev1.Node) { delete(n.Status.Capacity, corev1.ResourcePods) },
		"nothing":           func(n *corev1.Node) { n.Status = corev1.NodeStatus{} },
		"a label key":       func(n *corev1.Node) { n.Labels["not a key"] = "" },
		"a label value":     func(n *corev1.Node) { n.Labels["a"] = strings.Repeat("v", 64) },
		"a taint's effect":  func(n *corev1.Node) { n.Spec.Taints[0].Effect = "Sometimes" },
		"a resource's name": func(n *corev1.Node) { n.Status.Capacity["?"] = resource.MustParse("1") },
		"many labels": func(n *corev1.Node) {
			for i := range mostLabels + 1 {
				n.Labels["l"+time.Duration(i).String()] = ""
			}
		},
	} {
		n := node("x")
		change(n)
		encoded, err := n.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := readTemplate(encoded); err == nil {
			t.Errorf("%s was taken: %+v", name, got)
		} else if len(err.Error()) > 2*mostMessage {
			t.Errorf("%s: %d bytes are said", name, len(err.Error()))
		}
	}
}

func FuzzTemplate(f *testing.F) {
	encoded, _ := node("x").Marshal()
	f.Add(encoded)
	f.Fuzz(func(t *testing.T, encoded []byte) {
		template, _, err := readTemplate(encoded)
		if err == nil && (template.Allocatable.Cpu().Sign() <= 0 || len(template.Labels) > mostLabels) {
			t.Errorf("took %+v", template)
		}
	})
}

// A reading that fails leaves what was known, and the groups say since when.
func TestProviderAway(t *testing.T) {
	b := newBed(t, pool("lab://a"))
	before := b.read()[0]
	b.fake.Stop()
	if err := b.reader.Read(t.Context()); err == nil || !errors.Is(err, asg.ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
	groups, at, err := b.reader.Groups(nil)
	if len(groups) != 1 || groups[0].Desired != before.Desired || len(groups[0].Faults) != 1 || !strings.Contains(groups[0].Faults[0], "as it was at "+at.UTC().Format(time.TimeOnly)) || err == nil {
		t.Errorf("got %+v, %v", groups, err)
	}
	if groups[0].Held != "" {
		t.Errorf("held at once: %s", groups[0].Held)
	}
	b.later(asg.OldReading + time.Second)
	_ = b.reader.Read(t.Context()) // it fails as before
	if groups, _, _ := b.reader.Groups(nil); !strings.Contains(groups[0].Held, "as it was at") {
		t.Errorf("held: %q", groups[0].Held)
	}
	if err := b.fake.Serve(); err != nil {
		t.Fatal(err)
	}
	for b.reader.Read(t.Context()) != nil { // it connects again by itself
		if t.Context().Err() != nil {
			t.Fatal("it was not read again")
		}
	}
	if groups, _, err := b.reader.Groups(nil); err != nil || len(groups[0].Faults) != 0 {
		t.Errorf("got %+v, %v", groups, err)
	}
}

// Who leads again has read nothing, and decides by nothing that an earlier term read.
func TestAnotherTermBeginsAnew(t *testing.T) {
	b := newBed(t, pool("lab://a"))
	b.read()
	b.reader.Forget()
	if groups, at, err := b.reader.Groups(nil); len(groups) > 0 || !at.IsZero() || err != nil {
		t.Errorf("got %+v, read at %s, %v", groups, at, err)
	}
}

// Names that would break keys elsewhere come back as the ids that they were.
func TestNames(t *testing.T) {
	for _, id := range []string{"pool", "ns/pool", "a:b", "50%", "a%3Ab:%"} {
		if name := nameOf(id); strings.Contains(name, ":") || idOf(name) != id {
			t.Errorf("%q became %q, and that %q", id, name, idOf(name))
		}
	}
}

func TestGrows(t *testing.T) {
	b := newBed(t, pool("lab://a"))
	if err := b.verbs.SetDesired(t.Context(), "pool", 2, 3); !errors.Is(err, asg.ErrChanged) {
		t.Errorf("a size that was not expected: %v", err)
	}
	if err := b.verbs.SetDesired(t.Context(), "pool", 1, 6); !errors.Is(err, asg.ErrChanged) {
		t.Errorf("beyond the maximum: %v", err)
	}
	if err := b.verbs.SetDesired(t.Context(), "other", 1, 2); !errors.Is(err, asg.ErrChanged) {
		t.Errorf("another group: %v", err)
	}
	if err := b.verbs.SetDesired(t.Context(), "pool", 1, 3); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]fakegrpc.Call{{Name: "NodeGroupIncreaseSize", Group: "pool", Delta: 2}}, b.fake.Calls()); diff != "" {
		t.Error(diff)
	}
	if got := b.read()[0]; got.Desired != 3 || len(got.Instances) != 3 {
		t.Errorf("got %+v", got)
	}
}

// What is read before a change is asked for at once: a provider takes its time for each answer, and the
// action has its own.
func TestReadsAtOnceBeforeAChange(t *testing.T) {
	b := newBed(t, pool("lab://a"))
	var asked sync.WaitGroup
	asked.Add(3)
	b.fake.Break(fakegrpc.Faults{Lie: func(groups []fakegrpc.Group) []fakegrpc.Group {
		asked.Done()
		asked.Wait()
		return groups
	}})
	if err := b.verbs.SetDesired(t.Context(), "pool", 1, 3); err != nil {
		t.Error(err)
	}
}

// A call that had its effect and no answer is not repeated: neither at once, nor when its effect
// shows.
func TestGrowWithoutAnswer(t *testing.T) {
	b := newBed(t, pool("lab://a"))
	b.provider.timeout = 100 * time.Millisecond
	b.fake.Break(fakegrpc.Faults{Silent: map[string]bool{"NodeGroupIncreaseSize": true}})
	err := b.verbs.SetDesired(t.Context(), "pool", 1, 2)
	if !asg.Unheard(err) || errors.Is(err, asg.ErrRefused) {
		t.Fatalf("got %v", err)
	}
	b.provider.timeout = usualTimeout
	b.fake.Break(fakegrpc.Faults{})
	if err := b.verbs.SetDesired(t.Context(), "pool", 1, 2); !errors.Is(err, asg.ErrChanged) {
		t.Errorf("got %v", err)
	}
	if calls := b.fake.Calls(); len(calls) != 1 {
		t.Errorf("made %v", calls)
	}
	if err := b.verbs.SetDesired(t.Context(), "pool", 2, 3); err != nil {
		t.Errorf("its effect shows, and yet: %v", err)
	}
}

// While it does not show what such a call did, nothing is asked of the group; after a minute the
// call is taken for one that did nothing.
func TestEffectThatMayCome(t *testing.T) {
	b := newBed(t, pool("lab://a"))
	b.fake.Break(fakegrpc.Faults{Fail: map[string]error{"NodeGroupIncreaseSize": status.Error(codes.Unknown, "it went wrong")}})
	err := b.verbs.SetDesired(t.Context(), "pool", 1, 2)
	if !asg.Unheard(err) || !errors.Is(err, asg.ErrRefused) || !strings.Contains(err.Error(), "it went wrong") {
		t.Fatalf("got %v", err)
	}
	b.fake.Break(fakegrpc.Faults{})
	for _, err := range []error{b.verbs.SetDesired(t.Context(), "pool", 1, 2), b.verbs.Terminate(t.Context(), "pool", "lab://a", true)} {
		if !errors.Is(err, asg.ErrBusy) {
			t.Errorf("got %v", err)
		}
	}
	b.later(settle)
	if err := b.verbs.SetDesired(t.Context(), "pool", 1, 2); err != nil {
		t.Error(err)
	}
}

// An end of before that shows late is no answer to an increase: its group does not grow twice.
func TestAnotherEffectComes(t *testing.T) {
	b := newBed(t, pool("lab://a", "lab://b"))
	b.fake.Break(fakegrpc.Faults{Fail: map[string]error{"NodeGroupIncreaseSize": status.Error(codes.Unknown, "it went wrong")}})
	if err := b.verbs.SetDesired(t.Context(), "pool", 2, 3); !asg.Unheard(err) {
		t.Fatalf("got %v", err)
	}
	b.fake.Break(fakegrpc.Faults{})
	if err := b.machines.Delete("pool", "lab://b"); err != nil {
		t.Fatal(err)
	}
	if err := b.verbs.SetDesired(t.Context(), "pool", 1, 2); !errors.Is(err, asg.ErrBusy) {
		t.Errorf("got %v", err)
	}
	if err := b.machines.Increase("pool", 2); err != nil { // the lost one shows, and is more than what went
		t.Fatal(err)
	}
	if err := b.verbs.SetDesired(t.Context(), "pool", 3, 4); err != nil {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	for code, class := range map[codes.Code]error{codes.OutOfRange: asg.ErrRefused, codes.FailedPrecondition: asg.ErrRefused, codes.ResourceExhausted: asg.ErrThrottled, codes.Unauthenticated: asg.ErrCredentials} {
		b := newBed(t, pool("lab://a"))
		b.fake.Break(fakegrpc.Faults{Fail: map[string]error{"NodeGroupIncreaseSize": status.Error(code, "no")}})
		if err := b.verbs.SetDesired(t.Context(), "pool", 1, 2); !errors.Is(err, class) || asg.Unheard(err) {
			t.Errorf("%s: got %v", code, err)
		}
	}
}

func TestEnds(t *testing.T) {
	b := newBed(t, pool("lab://a", "lab://b", "lab://c"))
	b.verbs.Node = func(instance string) (fleet.Node, bool) {
		return fleet.Node{Name: "node-b", Labels: map[string]string{"x": "y"}}, instance == "lab://b"
	}
	if err := b.verbs.Terminate(t.Context(), "pool", "lab://b", false); !errors.Is(err, asg.ErrChanged) {
		t.Errorf("without decrement: %v", err)
	}
	if err := b.verbs.Terminate(t.Context(), "pool", "lab://x", true); !errors.Is(err, asg.ErrChanged) {
		t.Errorf("another machine: %v", err)
	}
	if err := b.verbs.Terminate(t.Context(), "pool", "lab://b", true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("node-b lab://b y", func() string {
		n := b.fake.Calls()[0].Nodes[0]
		return n.GetName() + " " + n.GetProviderID() + " " + n.GetLabels()["x"]
	}()); diff != "" {
		t.Error(diff)
	}
}

// A machine that the provider was told to end, and that it still shows as it was, is ending: it is
// not ended twice, and its group does not count it.
func TestEndThatDoesNotShow(t *testing.T) {
	b := newBed(t, pool("lab://a", "lab://b"))
	as := func([]fakegrpc.Group) []fakegrpc.Group {
		g := pool("lab://a", "lab://b")
		g.Target = 1 // which goes down at once
		return []fakegrpc.Group{g}
	}
	if err := b.verbs.Terminate(t.Context(), "pool", "lab://b", true); err != nil {
		t.Fatal(err)
	}
	b.fake.Break(fakegrpc.Faults{Lie: as})
	got := b.read()[0]
	if got.Held != "" || !got.Instances[1].Terminating() || got.Instances[0].Terminating() {
		t.Errorf("got %+v", got)
	}
	if err := b.verbs.Terminate(t.Context(), "pool", "lab://b", true); !errors.Is(err, asg.ErrChanged) {
		t.Errorf("got %v", err)
	}
	b.later(endsWithin + time.Second)
	if got := b.read()[0]; !strings.Contains(got.Held, "target size 1, and 2 instances") {
		t.Errorf("it never went, and the group is held for %q", got.Held)
	}
}

// Of several ends at the same moment none makes the group smaller than its minimum, also where the
// target size does not follow.
func TestEndsAtOnce(t *testing.T) {
	b := newBed(t, pool("lab://a", "lab://b", "lab://c", "lab://d"))
	b.fake.Break(fakegrpc.Faults{Lie: func(g []fakegrpc.Group) []fakegrpc.Group {
		return []fakegrpc.Group{pool("lab://a", "lab://b", "lab://c", "lab://d")}
	}})
	var ends sync.WaitGroup
	for _, id := range []string{"lab://a", "lab://b", "lab://c", "lab://d"} {
		ends.Go(func() { _ = b.verbs.Terminate(t.Context(), "pool", id, true) })
	}
	ends.Wait()
	if calls := b.fake.Calls(); len(calls) != 3 {
		t.Errorf("ended %d of 4, where 1 has to stay", len(calls))
	}
}

func TestLowers(t *testing.T) {
	g := pool("lab://a")
	g.Target = 4
	b := newBed(t, g)
	if err := b.verbs.Lower(t.Context(), "pool", 4, 0); !errors.Is(err, asg.ErrChanged) {
		t.Errorf("below what is there: %v", err)
	}
	if err := b.verbs.Lower(t.Context(), "pool", 4, 2); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]fakegrpc.Call{{Name: "NodeGroupDecreaseTargetSize", Group: "pool", Delta: -2}}, b.fake.Calls()); diff != "" {
		t.Error(diff)
	}
}

func TestMutualTLS(t *testing.T) {
	dir := t.TempDir()
	certificates, err := fakegrpc.MakeCertificates(dir)
	if err != nil {
		t.Fatal(err)
	}
	creds, err := certificates.Mutual()
	if err != nil {
		t.Fatal(err)
	}
	fake, err := fakegrpc.Start(fakegrpc.NewMemory(pool("lab://a")), creds)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Stop)
	file, err := fakegrpc.WriteConfig(dir, fake.Address(), certificates)
	if err != nil {
		t.Fatal(err)
	}
	config, err := ReadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t: t, log: &bytes.Buffer{}}
	b.dial(config)
	if got := b.read(); len(got) != 1 {
		t.Errorf("got %v", got)
	}
	// Without a certificate, with another authority's, and without encryption there is no answer.
	other := t.TempDir()
	strangers, err := fakegrpc.MakeCertificates(other)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Config{
		"no certificate":      {Address: fake.Address(), Cacert: certificates.Cacert},
		"another's":           {Address: fake.Address(), Cacert: certificates.Cacert, Cert: strangers.Cert, Key: strangers.Key},
		"another provider":    {Address: fake.Address(), Cacert: strangers.Cacert, Cert: certificates.Cert, Key: certificates.Key},
		"without encryption":  {Address: fake.Address()},
		"by a name it is not": {Address: strings.Replace(fake.Address(), "127.0.0.1", "localhost", 1), Cacert: certificates.Cacert, Cert: certificates.Cert, Key: certificates.Key},
	} {
		b := &bed{t: t, log: &bytes.Buffer{}}
		b.dial(c)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		if err := b.reader.Read(ctx); err == nil {
			t.Errorf("%s was let in", name)
		}
		cancel()
	}
}

func TestReadConfig(t *testing.T) {
	for text, want := range map[string]string{
		"address: provider:8086":                   "",
		"address: '[::1]:8086'\ngrpc_timeout: 20s": "",
		"address: provider":                        `address "provider": want host:port`,
		"address: a:1\nkey: k":                     "key and cert belong together",
		"address: a:1\nkey: k\ncert: c":            "cert needs cacert",
		"address: a:1\ngrpc_timeout: 0s":           "grpc_timeout 0s: want more than 0",
		"address: a:1\ngrpc_timeout: 1h":           "grpc_timeout 1h0m0s",
		"address: a:1\nadress: b:1":                `unknown field "adress"`,
		"- 1":                                      "want YAML with address",
	} {
		file := filepath.Join(t.TempDir(), "cloud-config")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadConfig(file)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file)) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if _, err := ReadConfig(""); err == nil || !strings.Contains(err.Error(), FlagConfig) {
		t.Errorf("got %v", err)
	}
	if _, err := Dial(Config{Address: "a:1", Cacert: "/nowhere"}, nil); err == nil || !strings.Contains(err.Error(), "cacert") {
		t.Errorf("got %v", err)
	}
}

// Whatever number a provider answers with, there are few words for it; and of an answer no more is kept than
// shows that it is too much.
func TestWhatAProviderSaysIsBounded(t *testing.T) {
	b := newBed(t, pool("lab://a"))
	seen := map[string]bool{}
	b.provider.record = func(c Call) { seen[c.Code] = true }
	for i := range 50 {
		b.fake.Break(fakegrpc.Faults{Fail: map[string]error{"Refresh": status.Error(codes.Code(1000+i), "x")}})
		if err := b.reader.Read(t.Context()); err == nil || strings.Contains(err.Error(), "Code(") {
			t.Fatalf("error %v", err)
		}
	}
	if len(seen) != 1 || !seen["Unknown"] {
		t.Errorf("codes %v", seen)
	}
	many := fakegrpc.Group{Name: "many", Max: 5, Instances: make([]*protocol.Instance, 10*mostMachines)}
	for i := range many.Instances {
		many.Instances[i] = &protocol.Instance{}
	}
	b = newBed(t, many)
	list, err := b.provider.instances(t.Context(), "many")
	if err != nil || len(list) != mostMachines+1 || cap(list) > 2*mostMachines {
		t.Errorf("%d instances are kept, in memory for %d, error %v", len(list), cap(list), err)
	}
}

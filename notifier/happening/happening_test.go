package happening

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
	"windlass.dev/windlass/scaler/plan/verdict"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// tale is a world that goes on, and what was made of it.
type tale struct {
	World
	state State
}

func newTale() *tale {
	t := &tale{World: World{Now: noon, Nodes: map[string]Node{}, Page: &statuspage.Page{Written: noon}}}
	t.look(0)
	return t
}

// look takes the world in, so much later, after a restart.
func (t *tale) look(later time.Duration) {
	t.Now = t.Now.Add(later)
	text, err := json.Marshal(Fold(t.state, t.World))
	if err != nil {
		panic(err)
	}
	t.state = State{}
	if err := json.Unmarshal(text, &t.state); err != nil {
		panic(err)
	}
}

// event is written now.
func (t *tale) event(writer, kind, object, reason string, f contract.Facts) *Event {
	t.Events = append(t.Events, Event{UID: fmt.Sprint("e", len(t.Events)), Writer: writer, At: t.Now, Reason: reason, Kind: kind, Object: object, Facts: f})
	return &t.Events[len(t.Events)-1]
}

func (t *tale) group(reason string, f contract.Facts) {
	t.event(contract.AppScaler, "ConfigMap", contract.ConfigMapStatus, reason, f)
}

func (t *tale) notice(node, reason, id string, kind contract.Kind) {
	t.event(contract.AppAgent, "Node", node, reason, contract.Facts{}).Notice = contract.Noticed{ID: id, Kind: kind}
}

// page is written now.
func (t *tale) page(p statuspage.Page) { p.Written = t.Now; t.Page = &p }

// line puts a group on it.
func (t *tale) line(l statuspage.GroupLine) {
	t.page(statuspage.Page{Groups: []statuspage.GroupLine{l}})
}

// told is what people would see, a line each.
func (t *tale) told() []string {
	var list []string
	for i := range t.state.Happenings {
		h := &t.state.Happenings[i]
		if h.Hidden {
			continue
		}
		text := fmt.Sprintf("%s %s %s", h.Kind, strings.TrimSpace(h.Group+" "+h.Node), h.Phase)
		if h.To > 0 {
			text += fmt.Sprintf(" %d→%d", h.From, h.To)
		}
		if len(h.Members) > 0 {
			tally := h.Tally()
			for _, p := range []Phase{Draining, Terminated, Cancelled, Gone} {
				if tally[p] > 0 {
					text += fmt.Sprintf(" %d %s", tally[p], p)
				}
			}
		}
		if h.Count > 1 {
			text += fmt.Sprintf(" ×%d", h.Count)
		}
		if h.Over() {
			text += " after " + h.Ended.Sub(h.Began).String()
		}
		list = append(list, text)
	}
	return list
}

// Each step is a restart, too.
func TestTales(t *testing.T) {
	spot := contract.Noticed{ID: "spot-1", Kind: contract.KindSpot}
	budget := &contract.Report{Answers: []string{"r"}, Kind: contract.KindRequest, Phase: contract.PhaseBlocked, BlockedBy: []string{"shop/api"}, Left: 2}
	for _, c := range []struct {
		name string
		play func(*tale)
		want []string
	}{
		{"what was before it began is old news", func(x *tale) {
			x.Events = append(x.Events, Event{UID: "old", Writer: contract.AppScaler, At: noon.Add(-time.Minute), Reason: contract.EventScaledUpGroup, Facts: contract.Facts{Group: "web", To: 1}})
			x.look(time.Minute)
		}, nil},
		{"launches of a group are one until their nodes are Ready", func(x *tale) {
			x.look(time.Minute)
			x.group(contract.EventScaledUpGroup, contract.Facts{Group: "web", From: 1, To: 3, Pods: 2})
			x.look(10 * time.Second)
			x.group(contract.EventScaledUpGroup, contract.Facts{Group: "web", From: 3, To: 4})
			x.line(statuspage.GroupLine{Name: "web", Desired: 4, Ready: 4}) // written in the second of the launch: of before
			x.look(10 * time.Second)
			x.line(statuspage.GroupLine{Name: "web", Desired: 4, Ready: 3})
			x.look(time.Minute)
			x.line(statuspage.GroupLine{Name: "web", Desired: 4, Ready: 4})
			x.look(time.Second)
		}, []string{"scale-up web ready 1→4 ×2 after 1m20s"}},
		{"nodes that do not come", func(x *tale) {
			x.group(contract.EventScaledUpGroup, contract.Facts{Group: "web", From: 1, To: 3})
			x.look(36 * time.Minute)
			x.line(statuspage.GroupLine{Name: "web", Desired: 3, Ready: 1})
			x.look(0)
		}, []string{"scale-up web overdue 1→3 after 36m0s"}},
		{"nodes that nobody sees come", func(x *tale) {
			x.group(contract.EventScaledUpGroup, contract.Facts{Group: "web", From: 1, To: 3})
			x.look(36 * time.Minute)
			x.page(statuspage.Page{Trouble: "the API server is away"})
			x.look(time.Minute)
			x.page(statuspage.Page{Omitted: 1})
			x.look(time.Minute)
			x.line(statuspage.GroupLine{Name: "web", Desired: 3, Ready: 3})
			x.look(0)
		}, []string{"scale-up web ready 1→3 after 38m0s"}},
		{"nodes that came while the scaler was away", func(x *tale) {
			x.group(contract.EventScaledUpGroup, contract.Facts{Group: "web", From: 1, To: 3})
			x.look(10 * time.Second)
			x.line(statuspage.GroupLine{Name: "web", Desired: 3, Ready: 1})
			x.look(36 * time.Minute)
			x.line(statuspage.GroupLine{Name: "web", Desired: 3, Ready: 3})
			x.look(0)
		}, []string{"scale-up web ready 1→3 after 36m10s"}},
		{"launches far apart of which nobody saw the end", func(x *tale) {
			x.group(contract.EventScaledUpGroup, contract.Facts{Group: "web", From: 1, To: 3})
			x.look(24 * time.Hour)
			x.group(contract.EventScaledUpGroup, contract.Facts{Group: "web", From: 3, To: 4})
			x.look(time.Minute)
			x.line(statuspage.GroupLine{Name: "web", Desired: 4, Ready: 4})
			x.look(0)
		}, []string{"scale-up web over 1→3 after 24h0m0s", "scale-up web ready 3→4 after 1m0s"}},
		{"a group that is lowered meanwhile", func(x *tale) {
			x.group(contract.EventScaledUpGroup, contract.Facts{Group: "web", From: 1, To: 3})
			x.look(time.Second)
			x.line(statuspage.GroupLine{Name: "web", Desired: 1, Ready: 1}) // and nothing changes any more
			x.look(2 * joins)
		}, []string{"scale-up web failed 1→1 after 1s"}},
		{"a page that goes by a reading of before the launch", func(x *tale) {
			x.group(contract.EventScaledUpGroup, contract.Facts{Group: "web", From: 1, To: 3})
			x.look(2 * time.Second)
			x.line(statuspage.GroupLine{Name: "web", Desired: 1, Ready: 1})
			x.look(10 * time.Second)
			x.line(statuspage.GroupLine{Name: "web", Desired: 3, Ready: 3})
			x.look(time.Second)
		}, []string{"scale-up web ready 1→3 after 12s"}},
		{"a drain that is undone as the reboot is done, though the metadata go on listing it", func(x *tale) {
			x.notice("a", contract.EventDrainStarted, "instance-reboot:i-a:e", contract.KindMaintenance)
			x.look(time.Second)
			x.Nodes["a"] = Node{Name: "a", Notices: contract.NoticedList{{ID: "instance-reboot:i-a:e", Kind: contract.KindMaintenance}}, Served: contract.ServedList{{ID: "instance-reboot:i-a:e", Fulfilled: true}}}
			x.event(contract.AppAgent, "Node", "a", contract.EventDrainUndone, contract.Facts{})
			x.look(time.Second)
		}, []string{"interruption a cancelled after 1s"}},
		{"a drain that is undone ends no notice that stands", func(x *tale) {
			x.notice("a", contract.EventDrainStarted, "r", contract.KindRequest)
			x.Nodes["a"] = Node{Name: "a", Notices: contract.NoticedList{spot}}
			x.look(time.Second)
			x.event(contract.AppAgent, "Node", "a", contract.EventDrainUndone, contract.Facts{})
			x.look(time.Second)
		}, []string{"interruption a cancelled after 1s", "interruption a noticed"}},
		{"a scale-down, whose Events come in any order", func(x *tale) {
			x.event(contract.AppScaler, "Node", "b", contract.EventTerminated, contract.Facts{Group: "web", ID: "scale-down:b:1"})
			x.event(contract.AppScaler, "Node", "a", contract.EventScaleDown, contract.Facts{Group: "web", ID: "scale-down:a:1"})
			x.Nodes["a"] = Node{Name: "a", Request: &contract.Request{ID: "scale-down:a:1", Kind: contract.KindScaleDown}}
			x.look(10 * time.Second)
			x.event(contract.AppScaler, "Node", "b", contract.EventScaleDown, contract.Facts{Group: "web", ID: "scale-down:b:1"})
			x.look(10 * time.Second)
			x.event(contract.AppScaler, "Node", "a", contract.EventScaleDownCancelled, contract.Facts{Group: "web", ID: "scale-down:a:1"})
			x.look(time.Second)
			x.look(joins)
		}, []string{"scale-down web terminated 1 terminated 1 cancelled after 20s"}},
		{"scale-downs whose nodes vanish, and of which no Event came", func(x *tale) {
			x.Nodes["a"] = Node{Name: "a", Request: &contract.Request{ID: "scale-down:a:1", Kind: contract.KindScaleDown, At: contract.At(noon)}}
			x.look(2 * time.Minute)
			delete(x.Nodes, "a")
			x.look(time.Second)
			x.look(vanishes)
			x.look(joins)
		}, []string{"scale-down  terminated 1 gone after 1m1s"}},
		{"a node that has just joined a scale-down has not vanished with others", func(x *tale) {
			x.event(contract.AppScaler, "Node", "a", contract.EventScaleDown, contract.Facts{Group: "web", ID: "scale-down:a:1"})
			x.look(time.Second)
			x.look(50 * time.Second)
			x.event(contract.AppScaler, "Node", "b", contract.EventScaleDown, contract.Facts{Group: "web", ID: "scale-down:b:1"})
			x.look(time.Second)
			x.look(10 * time.Second)
		}, []string{"scale-down web draining 1 draining 1 gone"}},
		{"a scale-down whose end an Event says late", func(x *tale) {
			x.event(contract.AppScaler, "Node", "a", contract.EventScaleDown, contract.Facts{Group: "web", ID: "scale-down:a:1"})
			x.look(time.Second)
			x.event(contract.AppScaler, "Node", "a", contract.EventScaleDownCancelled, contract.Facts{Group: "web", ID: "scale-down:a:1"})
			x.look(time.Minute)
			x.event(contract.AppScaler, "Node", "a", contract.EventTerminated, contract.Facts{Group: "web", ID: "scale-down:a:1"})
			x.look(time.Second)
		}, []string{"scale-down web terminated 1 terminated after 1s"}},
		{"an instance that never was a node is no scale-down", func(x *tale) {
			x.event(contract.AppScaler, "Node", "a", contract.EventTerminated, contract.Facts{Group: "web", ID: "never-1"})
			x.look(time.Second)
		}, nil},
		{"a termination by Auto Scaling is no scale-down, whoever told it as one", func(x *tale) {
			x.event(contract.AppScaler, "Node", "a", contract.EventScaleDown, contract.Facts{Group: "web", ID: contract.TerminateID("i-a")})
			x.look(time.Second)
			x.event(contract.AppScaler, "Node", "a", contract.EventScaleDownCancelled, contract.Facts{Group: "web", ID: contract.TerminateID("i-a")})
			x.event(contract.AppScaler, "Node", "b", contract.EventScaleDownCancelled, contract.Facts{Group: "web"})
			x.look(time.Second)
		}, nil},
		{"a notice, from the Event and from the Node", func(x *tale) {
			x.Nodes["a"] = Node{Name: "a", Notices: contract.NoticedList{spot}}
			x.look(time.Second)
			x.notice("a", contract.EventDrainStarted, "spot-1", contract.KindSpot)
			x.look(time.Second)
			delete(x.Nodes, "a")
			x.event(contract.AppAgent, "Node", "a", contract.EventDrained, contract.Facts{})
			x.look(time.Second)
			x.look(time.Hour)
		}, []string{"interruption a drained after 2s"}},
		{"a node that goes before it is drained, of which a late Event says better", func(x *tale) {
			x.notice("a", contract.EventDrainStarted, "spot-1", contract.KindSpot)
			x.look(time.Second)
			x.look(vanishes)
			x.event(contract.AppAgent, "Node", "a", contract.EventDrained, contract.Facts{}).At = x.Now.Add(-50 * time.Second)
			x.look(time.Second)
		}, []string{"interruption a drained after 11s"}},
		{"a notice that is taken back without a word", func(x *tale) {
			x.Nodes["a"] = Node{Name: "a", Notices: contract.NoticedList{spot}}
			x.look(time.Second)
			x.Nodes["a"] = Node{Name: "a"}
			x.look(time.Second)
			x.look(vanishes)
		}, []string{"interruption a cancelled after 1m2s"}},
		{"an agent's drain for a scale-down is told as that", func(x *tale) {
			x.notice("a", contract.EventDrainStarted, "scale-down:a:1", contract.KindScaleDown)
			x.Nodes["a"] = Node{Name: "a", Report: &contract.Report{Answers: []string{"scale-down:a:1"}, Kind: contract.KindScaleDown, Phase: contract.PhaseDraining}}
			x.look(time.Second)
		}, nil},
		{"that Auto Scaling terminates what the scaler told it to is no interruption", func(x *tale) {
			x.event(contract.AppScaler, "Node", "a", contract.EventScaleDown, contract.Facts{Group: "web", ID: "scale-down:a:1"})
			x.look(time.Second)
			x.notice("a", contract.EventNoticed, "asg-terminate:i-a", contract.KindASG)
			x.Nodes["b"] = Node{Name: "b", Terminating: "scale-down:b:1", Notices: contract.NoticedList{{ID: "asg-terminate:i-b", Kind: contract.KindASG}}}
			x.Nodes["c"] = Node{Name: "c", Notices: contract.NoticedList{{ID: "asg-terminate:i-c", Kind: contract.KindASG}}}
			x.look(time.Second)
		}, []string{"scale-down web draining 1 draining", "interruption c noticed"}},
		{"what is blocked for a moment is no news", func(x *tale) {
			x.Nodes["a"] = Node{Name: "a", Report: budget, Request: &contract.Request{ID: "r", Kind: contract.KindRequest}}
			x.look(time.Second)
			x.Nodes["a"] = Node{Name: "a", Request: &contract.Request{ID: "r", Kind: contract.KindRequest}}
			x.look(time.Second)
		}, []string{"interruption a draining"}},
		{"a blocked drain", func(x *tale) {
			x.Nodes["a"] = Node{Name: "a", Report: budget, Request: &contract.Request{ID: "r", Kind: contract.KindRequest}}
			x.look(time.Second)
			x.look(holds)
			x.Nodes["a"] = Node{Name: "a", Request: &contract.Request{ID: "r", Kind: contract.KindRequest}}
			x.look(time.Second)
			x.look(misses)
		}, []string{"interruption a draining", "drain-blocked a over after 1m1s"}},
		{"launches that fail in a row are one, until they have not for a while", func(x *tale) {
			until := contract.At(noon.Add(10 * time.Minute))
			x.group(contract.EventScaleUpFailed, contract.Facts{Group: "web", Cause: "no capacity", Failures: 1})
			x.look(5 * time.Minute)
			x.group(contract.EventScaleUpFailed, contract.Facts{Group: "web", Cause: "no capacity", Failures: 2, Until: until})
			x.look(time.Minute)
			x.look(quiet)
			x.look(10 * time.Minute)
		}, []string{"launch-failed web over ×2 after 46m0s"}},
		{"what cannot be decided is one fault, in whatever words", func(x *tale) {
			for i := range 4 {
				x.Page = &statuspage.Page{Written: x.Now, Trouble: strings.Repeat("x", i+1)}
				x.look(30 * time.Second)
			}
			if s := x.state.Happenings[0].Severity(); s != Critical {
				panic(s.String())
			}
		}, []string{"fault  lasting"}},
		{"a group at its maximum, and a fault whose numbers differ", func(x *tale) {
			for i := range 4 {
				x.Page = &statuspage.Page{Written: x.Now, Faults: []string{fmt.Sprintf("%d volumes unread", i)},
					Groups: []statuspage.GroupLine{{Name: "web", Max: 5, Reason: groupAtMax}}}
				x.look(30 * time.Second)
			}
			x.Page = &statuspage.Page{Written: x.Now}
			x.look(time.Second)
			x.look(misses)
		}, []string{"at-max web over 0→5 after 1m31s", "fault  over after 1m31s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newTale()
			c.play(x)
			if diff := cmp.Diff(c.want, x.told()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Of two groups at their maximum each has the pods that wait for it.
func TestWaiting(t *testing.T) {
	wait := func(group string, params map[string]any, pods ...string) statuspage.Pods {
		params["group"] = group
		return statuspage.Pods{Count: len(pods), Names: pods, Verdict: statuspage.Verdict{Reason: podGroupsUnavailable, Details: []statuspage.Detail{{Params: params}}}}
	}
	x := newTale()
	x.Waiting = WaitingFor(statuspage.Verdicts{Pods: []statuspage.Pods{
		wait("web", map[string]any{"max": 5.0}, "shop/a", "shop/b"), wait("batch", map[string]any{"max": 2.0}, "jobs/a"), wait("batch", map[string]any{"lack": "a taint"}, "shop/c"),
	}})
	page := statuspage.Page{Written: x.Now, Pods: []statuspage.PodLine{{Reason: podGroupsUnavailable, Count: 4, Pods: []string{"jobs/a", "shop/a", "shop/b", "shop/c"}}},
		Groups: []statuspage.GroupLine{{Name: "web", Max: 5, Reason: groupAtMax}, {Name: "batch", Max: 2, Reason: groupAtMax}}}
	if x.Page = &page; !SeveralAtMax(page) {
		t.Fatal("the page alone is believed")
	}
	x.look(time.Second)
	got := map[string]Waiting{}
	for _, h := range x.state.Happenings {
		got[h.Group] = Waiting{h.Pods, h.For}
		if want := namespaces(h.For); !cmp.Equal(want, h.Namespaces) {
			t.Errorf("%s: namespaces %v, want %v", h.Group, h.Namespaces, want)
		}
	}
	if diff := cmp.Diff(map[string]Waiting{"web": {2, []string{"shop/a", "shop/b"}}, "batch": {1, []string{"jobs/a"}}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What a Node shows still is not forgotten, however long ago it ended: it would begin anew.
func TestWhatStandsIsKept(t *testing.T) {
	x := newTale()
	x.Nodes["a"] = Node{Name: "a", Report: &contract.Report{Answers: []string{"r"}, Kind: contract.KindRequest, Phase: contract.PhaseDraining}, Request: &contract.Request{ID: "r", Kind: contract.KindRequest}}
	x.look(time.Second)
	x.Nodes["a"] = Node{Name: "a", Report: &contract.Report{Answers: []string{"r"}, Kind: contract.KindRequest, Phase: contract.PhaseDrained}, Request: &contract.Request{ID: "r", Kind: contract.KindRequest}}
	all := func(*Happening) bool { return true }
	for range 3 {
		x.look(25 * time.Hour)
		x.state = x.state.Without(all, x.World)
		if diff := cmp.Diff([]string{"interruption a drained after 0s"}, x.told()); diff != "" || x.state.Serial != 1 {
			t.Fatalf("%d began: %s", x.state.Serial, diff)
		}
	}
	delete(x.Nodes, "a")
	x.look(time.Second)
	if x.state = x.state.Without(all, x.World); len(x.state.Happenings) != 0 {
		t.Error("it is kept for ever")
	}
}

// The two reasons that are read of the page are the scaler's.
func TestReasonsAreTheScalers(t *testing.T) {
	if groupAtMax != verdict.GroupAtMax || podGroupsUnavailable != verdict.PodGroupsUnavailable {
		t.Errorf("the scaler says %s and %s", verdict.GroupAtMax, verdict.PodGroupsUnavailable)
	}
}

// In whatever order Events are listed, and however many looks they are divided into, the same
// things are told of.
func TestOrderDoesNotMatter(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 200 {
		x := newTale()
		for i := range 30 {
			at := x.Now.Add(time.Duration(r.IntN(240)) * time.Second)
			node := fmt.Sprint("n", r.IntN(8))
			reason := []string{contract.EventScaleDown, contract.EventTerminated, contract.EventScaledUpGroup, contract.EventDrainStarted, contract.EventDrained}[r.IntN(5)]
			writer := contract.AppScaler
			e := Event{UID: fmt.Sprint(i), Reason: reason, At: at, Kind: "Node", Object: node, Facts: contract.Facts{Group: "web", ID: "scale-down:" + node, From: i, To: i + 1}}
			if reason == contract.EventDrainStarted || reason == contract.EventDrained {
				writer, e.Notice = contract.AppAgent, contract.Noticed{ID: "spot-" + node, Kind: contract.KindSpot}
			}
			e.Writer = writer
			x.Events = append(x.Events, e)
		}
		all := x.Events
		x.Now, x.Nodes = x.Now.Add(4*time.Minute), nil
		x.look(0)
		want := identities(x.state)

		y := newTale()
		y.Nodes = nil
		y.Now = x.Now
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for i := 0; i < len(all); {
			i = min(len(all), i+1+r.IntN(10))
			y.Events = all[:i]
			y.look(0)
		}
		if diff := cmp.Diff(want, identities(y.state)); diff != "" {
			t.Fatalf("(-at once +bit by bit):\n%s", diff)
		}
	}
}

// identities of what a state tells of, but for how bursts are divided.
func identities(s State) []string {
	var list []string
	launches := 0
	for _, h := range s.Happenings {
		switch h.Kind {
		case ScaleUp:
			launches += h.Count
		case ScaleDown:
			for key, p := range h.Members {
				list = append(list, key+" "+string(p))
			}
		case Interruption:
			list = append(list, h.Node+" "+h.NoticeID)
		}
	}
	slices.Sort(list)
	return append(list, fmt.Sprint("launches ", launches))
}

// However much happens, the state has its bounds, and Fold leaves the one that it is given as it
// was.
// What lasts is not said to be over because it cannot be seen for a while.
func TestWhatLastsIsNotOver(t *testing.T) {
	many := func(n int) (list []string) {
		for i := range n {
			list = append(list, "fault "+strings.Repeat("x", i+1))
		}
		return list
	}
	full := statuspage.GroupLine{Name: "web", Max: 3, Reason: groupAtMax, Faults: []string{"its hook is odd"}}
	over := func(x *tale) (texts []string) {
		for _, h := range x.state.Happenings {
			if h.Over() {
				texts = append(texts, string(h.Kind)+" "+h.Subject)
			}
		}
		return texts
	}
	for what, play := range map[string]func(x *tale){
		"nothing can be decided, and the page has no more": func(x *tale) {
			x.page(statuspage.Page{Groups: []statuspage.GroupLine{full}, Faults: []string{"volumes may not be listed"}})
			x.look(0)
			x.look(holds)
			x.page(statuspage.Page{Trouble: "the API server is away"})
			for range 10 {
				x.look(time.Minute)
			}
		},
		"the page has no room for its group": func(x *tale) {
			x.page(statuspage.Page{Groups: []statuspage.GroupLine{full}})
			x.look(0)
			x.look(holds)
			x.page(statuspage.Page{Omitted: 5})
			for range 10 {
				x.look(time.Minute)
			}
		},
		"the page has no room for more faults": func(x *tale) {
			x.page(statuspage.Page{Faults: many(3)})
			x.look(0)
			x.look(holds)
			x.page(statuspage.Page{Faults: many(20)[20-statuspage.MostFaults:], Omitted: 10})
			for range 10 {
				x.look(time.Minute)
			}
		},
		"it lasts for ten days": func(x *tale) {
			x.page(statuspage.Page{Groups: []statuspage.GroupLine{full}})
			x.Nodes["n"] = Node{Name: "n", Report: &contract.Report{Phase: contract.PhaseBlocked, Kind: contract.KindRequest}, Notices: contract.NoticedList{{ID: "request:x", Kind: contract.KindRequest}}}
			for range 10 * 24 {
				x.look(time.Hour)
			}
		},
		"it was not seen for a moment before a long gap, and for one after it": func(x *tale) {
			x.page(statuspage.Page{Groups: []statuspage.GroupLine{full}})
			x.look(0)
			x.look(holds)
			x.page(statuspage.Page{Groups: []statuspage.GroupLine{{Name: "web", Max: 3, Reason: "Steady"}}})
			x.look(time.Second)
			x.Now = x.Now.Add(20 * time.Minute)
			x.state = x.state.Resume()
			x.look(0)
		},
	} {
		x := newTale()
		play(x)
		if texts := over(x); len(texts) > 0 || len(x.state.Happenings) == 0 {
			t.Errorf("%s: over are %q of %d", what, texts, len(x.state.Happenings))
		}
	}
}

func TestBounds(t *testing.T) {
	x := newTale()
	for i := range 20_000 {
		node := fmt.Sprint("node-", i)
		x.notice(node, contract.EventDrainStarted, "spot-"+node, contract.KindSpot)
	}
	before, err := json.Marshal(x.state)
	if err != nil {
		t.Fatal(err)
	}
	after := Fold(x.state, x.World)
	if again, _ := json.Marshal(x.state); string(again) != string(before) {
		t.Error("the state that it was given has changed")
	}
	if n := len(after.Happenings); n != mostHappenings || after.Totals.Shed != 20_000-mostHappenings {
		t.Errorf("%d happenings, %d shed", n, after.Totals.Shed)
	}
	if n := len(after.Cursors[contract.AppAgent].Taken); n > mostTaken {
		t.Errorf("%d Events are remembered", n)
	}
	if less, some := after.Shed(100, func(string) bool { return false }); !some || len(less.Happenings) != mostHappenings-100 {
		t.Errorf("%d are left", len(less.Happenings))
	}
}

// What is not ours, or cannot be read, is nothing.
func TestWhatIsReadOfObjects(t *testing.T) {
	if _, ours := EventOf(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}, Source: corev1.EventSource{Component: "kubelet"}, InvolvedObject: corev1.ObjectReference{Kind: "Node"}}, "ours"); ours {
		t.Error("a kubelet's Event is taken for ours")
	}
	e, ours := EventOf(&corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", UID: "u", CreationTimestamp: metav1.NewTime(noon), Annotations: map[string]string{
			contract.AnnotationEventFacts: "{", contract.AnnotationEventDeadline: "soon", contract.AnnotationEventKind: "spot", contract.AnnotationEventID: "i"}},
		Source: corev1.EventSource{Component: contract.AppAgent}, Reason: contract.EventNoticed, InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "n"},
	}, "ours")
	want := Event{UID: "u", Writer: contract.AppAgent, At: noon, Reason: contract.EventNoticed, Kind: "Node", Object: "n", Notice: contract.Noticed{ID: "i", Kind: contract.KindSpot}}
	if diff := cmp.Diff(want, e); diff != "" || !ours {
		t.Error(diff)
	}
	agents := func(reason string) (Event, bool) {
		return EventOf(&corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", UID: "u", CreationTimestamp: metav1.NewTime(noon), Annotations: map[string]string{contract.AnnotationEventFacts: `{"group":"payments","cause":"log in at evil.example"}`}},
			Source:     corev1.EventSource{Component: contract.AppAgent}, Reason: reason, InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "n"},
		}, "ours")
	}
	if e, ours := agents(contract.EventScaleUpFailed); ours {
		t.Errorf("an agent is heard about a group: %+v", e)
	}
	if e, ours := agents(contract.EventBadRequest); !ours || e.Facts.Group != "" {
		t.Errorf("of an agent's own Event: %+v, %v", e, ours)
	}
	n := NodeOf(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{
		contract.AnnotationDrainRequest: "{", contract.AnnotationDrainReport: "x", contract.AnnotationNotices: "["}}})
	if diff := cmp.Diff(Node{Name: "n"}, n); diff != "" {
		t.Error(diff)
	}
}

// Whoever writes Events may write anything there: what is kept of one is bounded, and of kinds
// that nobody knows there is one.
func TestForgedEventsAreBounded(t *testing.T) {
	long := strings.Repeat("<", 110_000)
	name := strings.Repeat("x", 1000)
	x := newTale()
	for i := range 10 {
		e, _ := EventOf(&corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", UID: types.UID(fmt.Sprint(i)), CreationTimestamp: metav1.NewTime(x.Now), Annotations: map[string]string{
				contract.AnnotationEventKind: fmt.Sprint(long, i), contract.AnnotationEventID: fmt.Sprint(i, long), contract.AnnotationEventSource: long, contract.AnnotationEventInstance: long}},
			Source: corev1.EventSource{Component: contract.AppAgent}, Reason: contract.EventNoticed, InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: long},
		}, "ours")
		x.Events = append(x.Events, e)
	}
	facts, _ := EventOf(&corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", UID: "f", CreationTimestamp: metav1.NewTime(x.Now), Annotations: map[string]string{
			contract.AnnotationEventFacts: contract.Facts{Group: name, Zone: name, For: []string{name}, Namespaces: slices.Repeat([]string{"ns"}, 30)}.String()}},
		Source: corev1.EventSource{Component: contract.AppScaler}, Reason: contract.EventScaledUpGroup, InvolvedObject: corev1.ObjectReference{Kind: "Node"},
	}, "ours")
	if f := facts.Facts; f.Group == "" || len(f.Group) > mostName || len(f.Zone) > mostName || len(f.For[0]) > mostName || len(f.Namespaces) > mostNames {
		t.Errorf("facts %d, %d, %d, %d", len(f.Group), len(f.Zone), len(f.For[0]), len(f.Namespaces))
	}
	x.look(time.Second)
	if diff := cmp.Diff(map[string]int{"unknown": 10}, x.state.Totals.Notices); diff != "" {
		t.Errorf("%.200s", diff)
	}
	for _, h := range x.state.Happenings {
		if text, err := json.Marshal(h); err != nil || len(text) > 20<<10 {
			t.Errorf("a happening has %d bytes, %v", len(text), err)
		}
	}
}

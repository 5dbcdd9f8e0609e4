package screen_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"windlass.dev/windlass/e2e/demo/screen"
	"windlass.dev/windlass/e2e/demo/story"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/plan/verdict"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// TestTales tells a world what happens in it, line by line, and shows what a
// viewer sees of it. Directives: tell, captions, log (what
// changed since the last log), summary. See teller.tell for the lines.
func TestTales(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := &teller{t: t, story: story.New(noon), now: noon, groups: map[string]*story.Group{}}
		var logged story.State
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "tell":
				for line := range strings.Lines(d.Input) {
					w.tell(strings.TrimSpace(line))
				}
				return "ok"
			case "captions":
				return strings.Join(screen.Captions(w.state()), "\n")
			case "log":
				after := w.state()
				lines := screen.Changes(logged, after)
				logged = after
				return strings.Join(lines, "\n")
			case "summary":
				return printed(screen.Summary(w.story.Summary(w.now)))
			}
			t.Fatalf("unknown directive %s", d.Cmd)
			return ""
		})
	})
}

func printed(lines []screen.Line) string {
	var out strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&out, "|%s\n", l)
	}
	return out.String()
}

type teller struct {
	t      *testing.T
	story  *story.Story
	now    time.Time
	act    story.Act
	groups map[string]*story.Group
}

func (w *teller) state() story.State { return w.story.State(w.now, w.act) }

// words are the key=value pairs and bare words of a line.
type words map[string]string

func (w words) has(key string) bool { _, ok := w[key]; return ok }

func (w words) number(key string) int {
	n, _ := strconv.Atoi(w[key])
	return n
}

func parse(fields []string) words {
	out := words{}
	for _, f := range fields {
		key, value, _ := strings.Cut(f, "=")
		out[key] = strings.ReplaceAll(value, "_", " ")
	}
	return out
}

// tell carries out one line, such as
//
//	+3s                                                    time goes on
//	act 2 of=5 title=A_burst awaited=all_run
//	group web min=1 desired=2 max=6
//	instance 7 group=web state=InService up hook=windlass  node ip-10-0-0-7
//	end 7                                                  the instance is gone
//	node 7 ready unneeded cordoned terminating draining=spot phase=Draining deadline=90s message=2_pods_to_go
//	pod shop-1 on=7 running ready evicted until=3s because=DeletionByPodGC
//	gone shop-1
//	workload shop 3
//	budget shop 2
//	event scaler pod shop-1 TriggeredScaleUp message
//	call SetDesiredCapacity group=web detail=desired_4 grows error=…
//	verdict pod shop/shop-1 TriggersScaleUp message
func (w *teller) tell(line string) {
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return
	}
	if d, err := time.ParseDuration(fields[0]); err == nil {
		w.now = w.now.Add(d)
		return
	}
	name, rest := fields[1], parse(fields[2:])
	switch fields[0] {
	case "act":
		w.act = story.Act{Number: parse([]string{"n=" + name}).number("n"), Of: rest.number("of"), Title: rest["title"], About: rest["about"]}
		if rest.has("awaited") {
			w.act.Awaited = strings.Split(rest["awaited"], ",")
		}
	case "group":
		w.groups[name] = &story.Group{Name: name, Min: rest.number("min"), Desired: rest.number("desired"), Max: rest.number("max"), Instances: w.instances(name)}
		w.tellGroups()
	case "instance":
		w.instance(name, rest)
	case "end":
		for _, g := range w.groups {
			g.Instances = slices.DeleteFunc(g.Instances, func(i story.Instance) bool { return i.ID == "i-"+name })
		}
		w.tellGroups()
	case "node":
		w.node(name, rest)
	case "pod":
		w.pod(name, rest)
	case "gone":
		w.story.PodGone(name, w.now)
	case "workload":
		w.story.WorkloadSeen(story.Workload{Name: name, Replicas: parse([]string{"n=" + fields[2]}).number("n")})
	case "budget":
		w.story.BudgetSeen(story.Budget{Workload: name, Desired: parse([]string{"n=" + fields[2]}).number("n")})
	case "event":
		w.story.EventSeen(story.Event{Source: name, Kind: fields[2], Subject: fields[3], Reason: fields[4], Message: strings.Join(fields[5:], " ")}, w.now)
	case "call":
		w.story.CallSeen(story.Call{At: w.now, Operation: name, Group: rest["group"], Instance: rest["instance"], Detail: rest["detail"], Grows: rest.has("grows"), Error: rest["error"]})
	case "verdict":
		w.story.VerdictsSeen([]story.Verdict{{Of: verdict.SubjectKind(name), Name: fields[2], Reason: verdict.Reason(fields[3]), Message: strings.Join(fields[4:], " ")}}, w.now)
	default:
		w.t.Fatalf("cannot tell %q", line)
	}
}

func (w *teller) instances(group string) []story.Instance {
	if g := w.groups[group]; g != nil {
		return g.Instances
	}
	return nil
}

func (w *teller) tellGroups() {
	var groups []story.Group
	for _, name := range slices.Sorted(maps.Keys(w.groups)) {
		g := *w.groups[name]
		g.Instances = slices.Clone(g.Instances)
		groups = append(groups, g)
	}
	w.story.GroupsSeen(groups)
}

func nodeName(number string) string { return "ip-10-0-0-" + number + ".eu-west-1.compute.internal" }

func (w *teller) instance(number string, is words) {
	i := story.Instance{ID: "i-" + number, Zone: "eu-west-1a", Type: "m5.large", Node: nodeName(number), State: is["state"], Up: is.has("up")}
	if is.has("hook") {
		i.Hooks = []string{is["hook"]}
	}
	for name, g := range w.groups {
		if at := slices.IndexFunc(g.Instances, func(old story.Instance) bool { return old.ID == i.ID }); at >= 0 {
			g.Instances[at] = i
		} else if name == is["group"] {
			g.Instances = append(g.Instances, i)
		}
	}
	w.tellGroups()
}

func (w *teller) node(number string, is words) {
	n := story.Node{
		Name: nodeName(number), Instance: "i-" + number, Zone: "eu-west-1a", Type: "m5.large", Ready: is.has("ready"),
		Unschedulable: is.has("cordoned"), Terminating: is.has("terminating"), Unneeded: is.has("unneeded"), Draining: contract.Kind(is["draining"]),
	}
	if is.has("phase") {
		n.Report = &contract.Report{Phase: contract.Phase(is["phase"]), Kind: n.Draining, Message: is["message"]}
		if d, err := time.ParseDuration(is["deadline"]); err == nil {
			n.Report.Deadline = contract.At(noon.Add(d))
		}
	}
	w.story.NodeSeen(n, w.now)
}

func (w *teller) pod(name string, is words) {
	workload, _, _ := strings.Cut(name, "-")
	p := story.Pod{
		Namespace: "demo", Name: name, UID: name, Workload: workload, Running: is.has("running"), Ready: is.has("ready"),
		Disrupted: is["because"],
	}
	if is.has("on") {
		p.Node = nodeName(is["on"])
	}
	if is.has("evicted") {
		p.Disrupted = "EvictionByEvictionAPI"
	}
	if d, err := time.ParseDuration(is["until"]); err == nil {
		p.Leaving, p.Until = true, w.now.Add(d)
	}
	w.story.PodSeen(p, w.now)
}

// TestColours: a line without colours has no escape sequence, and a foreign
// text cannot bring one in.
func TestColours(t *testing.T) {
	line := screen.Line{{Text: "bad", Tone: screen.Bad}, {Text: " news"}}
	if got, want := line.Coloured(), "\x1b[31mbad\x1b[0m news"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := line.String(), "bad news"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s := story.New(noon)
	s.EventSeen(story.Event{Source: "agent", Kind: "node", Subject: "n", Reason: "Drained", Message: "done\x1b[2J\nmore"}, noon)
	for _, l := range screen.Changes(story.State{}, s.State(noon, story.Act{})) {
		if strings.ContainsAny(l, "\x1b\n") {
			t.Errorf("the log has control characters: %q", l)
		}
	}
}

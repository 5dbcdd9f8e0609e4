package top_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/cockroachdb/datadriven"
	"k8s.io/component-helpers/resource"
	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/cli/top"
	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/statuspage"
)

// TestScreens plays people in front of clusters that are written down in testdata/screens:
//
//	world                  the cluster, as view.World; again, and it is another from then on
//	options sort= filter=  what the view begins with, before the first world
//	caption                lines above all else
//	keys                   what is pressed, one after the other; "text" is typed
//	screen width= height=  what is seen, without colours
//	colours width= height= the same with colours, whose codes begin with ␛
//	written                what was done since the last time
//
// TestScreens holds that no line is wider than the screen, and that there are no more than it has.
func TestScreens(t *testing.T) {
	datadriven.Walk(t, "testdata/screens", func(t *testing.T, path string) {
		u := &user{t: t}
		u.begin(top.Options{})
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "options":
				o := top.Options{}
				d.MaybeScanArgs(t, "sort", &o.Sort)
				d.MaybeScanArgs(t, "filter", &o.Filter)
				u.begin(o)
			case "world":
				var w view.World
				if err := yaml.UnmarshalStrict([]byte(d.Input), &w); err != nil {
					t.Fatalf("%s: %v", d.Pos, err)
				}
				u.see(w)
			case "caption":
				u.tell(top.Caption(strings.Split(d.Input, "\n")))
			case "keys":
				for _, k := range strings.Fields(d.Input) {
					u.press(k)
				}
			case "screen", "colours":
				width, height := 80, 24
				d.MaybeScanArgs(t, "width", &width)
				d.MaybeScanArgs(t, "height", &height)
				return u.screen(width, height, d.Cmd == "colours")
			case "written":
				return u.hands.done()
			default:
				t.Fatalf("%s: unknown command", d.Pos)
			}
			return ""
		})
	})
}

// user sits in front of a view.
type user struct {
	t     reporter
	model tea.Model
	world view.World
	hands *recorder
	quit  bool
}

func (u *user) begin(o top.Options) {
	u.hands = &recorder{}
	o.Hands = u.hands
	o.Why = func(s view.Subject) (view.Why, error) {
		if !u.world.Exists(s) {
			return view.Why{}, fmt.Errorf("there is no %s any more", s)
		}
		return view.NewWhy(u.world, s), nil
	}
	model, err := top.New(o)
	if err != nil {
		u.t.Fatal(err)
	}
	u.model = model
	u.tell(tea.WindowSizeMsg{Width: 80, Height: 24})
}

// tell sends a message, and all that come of it; the clock stands.
func (u *user) tell(msg tea.Msg) {
	model, cmd := u.model.Update(msg)
	u.model = model
	if _, clock := msg.(top.Tick); cmd == nil || clock {
		return
	}
	switch next := cmd().(type) {
	case nil:
	case tea.QuitMsg:
		u.quit = true
	default:
		u.tell(next)
	}
}

func (u *user) see(w view.World) {
	u.world = w
	u.tell(top.Tick(w.Now))
	u.tell(top.Changed(shown(w)))
}

// special are the keys that are no letters.
var special = map[string]rune{"up": tea.KeyUp, "down": tea.KeyDown, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd, "enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "backspace": tea.KeyBackspace}

func (u *user) press(k string) {
	if text, typed := strings.CutPrefix(k, `"`); typed {
		for _, r := range strings.TrimSuffix(text, `"`) {
			u.tell(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
		return
	}
	if k == "space" {
		u.tell(tea.KeyPressMsg{Code: tea.KeySpace, Text: " "})
		return
	}
	if code, is := special[k]; is {
		u.tell(tea.KeyPressMsg{Code: code})
		return
	}
	u.tell(tea.KeyPressMsg{Code: []rune(k)[0], Text: k})
}

func (u *user) screen(width, height int, colours bool) string {
	u.t.Helper()
	u.tell(tea.WindowSizeMsg{Width: width, Height: height})
	content := u.model.View().Content
	held(u.t, content, width, height)
	var b bytes.Buffer
	w := colorprofile.Writer{Forward: &b, Profile: colorprofile.NoTTY}
	if colours {
		w.Profile = colorprofile.ANSI
	}
	if _, err := w.WriteString(content); err != nil {
		u.t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(b.String()) {
		out.WriteString("|" + strings.TrimRight(strings.ReplaceAll(line, "\x1b", "␛"), " \n") + "\n")
	}
	return out.String()
}

// held says whether a screen has its size.
func held(t reporter, content string, width, height int) {
	lines := strings.Split(content, "\n")
	if len(lines) > height {
		t.Errorf("%d lines on a screen of %d", len(lines), height)
	}
	for _, line := range lines {
		if n := ansi.StringWidth(line); n > width {
			t.Errorf("%d characters on a screen of %d: %q", n, width, line)
		}
	}
}

// shown makes of a world what a feed tells.
func shown(w view.World) top.World {
	loads, pending := map[string]view.Load{}, []string{}
	for i := range w.Pods {
		p := &w.Pods[i]
		if p.Spec.NodeName == "" {
			pending = append(pending, p.Namespace+"/"+p.Name)
			continue
		}
		asked := resource.PodRequests(p, resource.PodResourcesOptions{})
		load := loads[p.Spec.NodeName]
		loads[p.Spec.NodeName] = view.Load{CPU: load.CPU + asked.Cpu().MilliValue(), Memory: load.Memory + asked.Memory().Value(), Pods: load.Pods + 1}
	}
	out := top.World{Pending: view.NewPendingLines(w.Verdicts, pending), Groups: view.Groups(w), Faults: view.Faults(w)}
	for i := range w.Nodes {
		var verdict *statuspage.Node
		for j := range w.Verdicts.Nodes {
			if w.Verdicts.Nodes[j].Name == w.Nodes[i].Name {
				verdict = &w.Verdicts.Nodes[j]
			}
		}
		line := view.NewNodeLine(&w.Nodes[i], verdict, loads[w.Nodes[i].Name])
		out.Lines = append(out.Lines, &line)
	}
	for i := range w.Events {
		out.Recent = append(out.Recent, view.EntryOf(&w.Events[i], nil))
	}
	return out
}

// recorder does nothing but write down what it was asked for.
type recorder struct {
	calls []string
	err   error
}

func (r *recorder) done() string {
	all := strings.Join(r.calls, "\n")
	r.calls = nil
	return all
}

func (r *recorder) do(what, node string) (string, error) {
	r.calls = append(r.calls, what+" "+node)
	return node + ": " + what, r.err
}

func (r *recorder) Preview(node string) (view.Previews, error) {
	if r.err != nil {
		return view.Previews{}, r.err
	}
	return view.Previews{Nodes: []view.Preview{{Node: node, Pods: []view.PreviewPod{{Pod: "shop/api-1", Outcome: drainable.Leave}}}}}, nil
}

func (r *recorder) Drain(node string) (string, error) { return r.do("drain", node) }
func (r *recorder) Hold(node string) (string, error)  { return r.do("hold", node) }
func (r *recorder) Undo(node string) (string, error)  { return r.do("undo", node) }

// reporter is a test or a law.
type reporter interface {
	Helper()
	Errorf(string, ...any)
	Fatal(...any)
}

package top_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"windlass.dev/windlass/cli/top"
	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// cluster has so many nodes, of which some drain.
func cluster(nodes int) top.World {
	var w top.World
	for i := range nodes {
		l := view.NodeLine{
			Name: fmt.Sprintf("ip-10-%d-%d-%d.eu-west-1.compute.internal", i/65536, i/256%256, i%256), Group: fmt.Sprintf("group-%d", i%12), Zone: "eu-west-1" + string(rune('a'+i%3)), Type: "m5.large",
			Created: noon.Add(-time.Duration(i) * time.Minute), CPU: float64(i%100) / 99, Memory: float64(i%37) / 36, Pods: i % 30, PricePerHour: 0.096, Spot: i%3 == 0, Stage: view.Ready, Reason: "Needed",
		}
		if i%50 == 7 {
			l.Stage, l.Drain = view.Draining, view.Drain{Node: l.Name, Kind: contract.KindSpot, Phase: contract.PhaseDraining, Left: i % 9}
		}
		w.Lines = append(w.Lines, &l)
	}
	return w
}

// selected is the row with the mark.
func selected(content string) string {
	for line := range strings.Lines(ansi.Strip(content)) {
		if rest, marked := strings.CutPrefix(line, "> "); marked {
			return strings.Fields(rest)[0]
		}
	}
	return ""
}

// TestSelectionStays: it stays on its node when that is elsewhere, wherever nodes come, go and
// change, and is seen.
func TestSelectionStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := &user{t: t}
		u.begin(top.Options{Sort: rapid.SampledFrom(top.Sorts()).Draw(t, "sort")})
		w := cluster(rapid.IntRange(1, 60).Draw(t, "nodes"))
		u.tell(top.Changed(w))
		for range rapid.IntRange(1, 70).Draw(t, "downs") {
			u.press(rapid.SampledFrom([]string{"down", "down", "up", "pgdown", "end"}).Draw(t, "key"))
		}
		was := selected(u.model.View().Content)
		for range 5 {
			next := top.World{}
			for _, old := range w.Lines {
				l := *old
				if view.ShortName(l.Name) != was && rapid.IntRange(0, 5).Draw(t, "gone") == 0 {
					continue
				}
				l.CPU, l.Pods = rapid.Float64Range(0, 1.5).Draw(t, "cpu"), rapid.IntRange(0, 99).Draw(t, "pods")
				l.Stage = rapid.SampledFrom(view.Stages).Draw(t, "stage")
				next.Lines = append(next.Lines, &l)
			}
			u.tell(top.Changed(next))
			if is := selected(u.model.View().Content); is != was {
				t.Fatalf("%q was selected, and now %q", was, is)
			}
			if rapid.Bool().Draw(t, "sorted") {
				u.press(rapid.SampledFrom([]string{"s", "r"}).Draw(t, "order"))
			}
		}
	})
}

// TestFirstUntilAKey: while nodes come at the start, the first one is selected.
func TestFirstUntilAKey(t *testing.T) {
	u := &user{t: t}
	u.begin(top.Options{})
	w := cluster(9)
	u.tell(top.Changed(top.World{Lines: w.Lines[5:]}))
	u.tell(top.Changed(w))
	if is := selected(u.model.View().Content); is != "ip-10-0-0-0" {
		t.Errorf("%q is selected", is)
	}
}

// TestNothingIsWider: whatever the cluster has in it and whatever is pressed, the screen has its
// size, and nothing in it commands the terminal but colours.
func TestNothingIsWider(t *testing.T) {
	colour := strings.NewReplacer("\x1b[m", "", "\x1b[1m", "", "\x1b[2m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringN(0, 40, 200), rapid.SampledFrom([]string{"", "a\x1b]0;pwned\x07\nFAKE\u009b2J\u202e", "日本語のノード", "👩‍👩‍👧‍👦 家族", "\tx\r\n", "\x1b[31mred", "e\u0301\u0301"}))
		drawn := func(name string) string { return text.Draw(t, name) }
		number := rapid.IntRange(-1, 2_000_000_000)
		w := top.World{Problem: drawn("problem")}
		for i := range rapid.IntRange(0, 8).Draw(t, "nodes") {
			name := drawn("name") + fmt.Sprint(i)
			w.Lines = append(w.Lines, &view.NodeLine{
				Name: name, Group: drawn("group"), Zone: drawn("zone"), Type: drawn("type"), Created: noon.Add(-time.Duration(number.Draw(t, "age")) * time.Second),
				CPU: rapid.Float64().Draw(t, "cpu"), Memory: rapid.Float64Range(-1, 3).Draw(t, "memory"), Pods: number.Draw(t, "pods"), PricePerHour: rapid.Float64Range(0, 1e6).Draw(t, "price"),
				Spot: rapid.Bool().Draw(t, "spot"), Stage: rapid.SampledFrom(view.Stages).Draw(t, "stage"), Reason: statuspage.Reason(drawn("reason")), Hold: drawn("hold"), Requested: rapid.Bool().Draw(t, "requested"),
				Drain: view.Drain{Node: rapid.SampledFrom([]string{"", name}).Draw(t, "drains"), Left: number.Draw(t, "left"), BlockedBy: []string{drawn("blocker")}, Kind: contract.Kind(drawn("kind"))},
			})
		}
		for range rapid.IntRange(0, 9).Draw(t, "pending") {
			w.Pending = append(w.Pending, view.PendingLine{Count: number.Draw(t, "count"), Example: drawn("pod"), Reason: statuspage.Reason(drawn("reason")), Message: drawn("message")})
		}
		for range rapid.IntRange(0, 3).Draw(t, "others") {
			w.Groups = append(w.Groups, view.Group{Name: drawn("group"), Max: number.Draw(t, "max"), Reason: statuspage.Reason(drawn("reason"))})
			w.Recent = append(w.Recent, view.Entry{At: noon, Event: drawn("event"), Object: drawn("object"), Text: drawn("text")})
			w.Faults = append(w.Faults, view.Fault{Of: drawn("of"), Text: drawn("fault")})
		}
		u := &user{t: t}
		u.begin(top.Options{})
		u.hands.err = rapid.SampledFrom([]error{nil, errors.New(drawn("error"))}).Draw(t, "fails")
		u.world.Verdicts.Nodes = statuspage.List[statuspage.Node]{{Name: drawn("subject"), Verdict: statuspage.Verdict{Details: []statuspage.Detail{{Text: drawn("detail")}}}}}
		u.tell(top.Tick(noon))
		u.tell(top.Caption(rapid.SliceOfN(text, 0, 12).Draw(t, "captions")))
		u.tell(top.Changed(w))
		for range rapid.IntRange(0, 25).Draw(t, "steps") {
			switch k := rapid.SampledFrom([]string{"up", "down", "pgup", "pgdown", "home", "end", "enter", "esc", "tab", "s", "r", "m", "d", "u", "h", "y", "n", "?", "/", `"` + drawn("typed"), "size"}).Draw(t, "key"); k {
			case "size":
				u.tell(tea.WindowSizeMsg{Width: rapid.IntRange(0, 200).Draw(t, "width"), Height: rapid.IntRange(0, 60).Draw(t, "height")})
			default:
				u.press(k)
			}
			width, height := rapid.IntRange(1, 180).Draw(t, "width"), rapid.IntRange(1, 50).Draw(t, "height")
			u.tell(tea.WindowSizeMsg{Width: width, Height: height})
			content := u.model.View().Content
			held(t, content, width, height)
			for _, r := range strings.ReplaceAll(colour.Replace(content), "\n", "") {
				if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
					t.Fatalf("%U is on the screen: %q", r, content)
				}
			}
		}
	})
}

// TestNothingIsWrittenBeforeYes, whatever else is pressed.
func TestNothingIsWrittenBeforeYes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := &user{t: t}
		u.begin(top.Options{})
		w := cluster(3)
		w.Lines[1].Hold, w.Lines[2].Requested = contract.AnnotationHold, true
		u.tell(top.Changed(w))
		for range rapid.IntRange(0, 30).Draw(t, "keys") {
			u.press(rapid.SampledFrom([]string{"up", "down", "enter", "esc", "tab", "s", "m", "d", "u", "h", "n", "?", "x", "/"}).Draw(t, "key"))
		}
		if done := u.hands.done(); done != "" {
			t.Fatalf("nobody said yes, and it did: %s", done)
		}
	})
}

// TestYesIsForWhatWasAsked, also when rows have moved meanwhile.
func TestYesIsForWhatWasAsked(t *testing.T) {
	u := &user{t: t}
	u.begin(top.Options{Sort: "pods"})
	w := cluster(5)
	u.tell(top.Changed(w))
	u.press("home")
	asked := selected(u.model.View().Content)
	u.press("d")
	moved := cluster(5)
	for i := range moved.Lines {
		moved.Lines[i].Pods = 50 - moved.Lines[i].Pods
	}
	u.tell(top.Changed(moved))
	u.press("y")
	if done := view.ShortName(u.hands.done()); done != "drain "+asked {
		t.Errorf("%q, and asked was about %q", done, asked)
	}
}

// TestErrorsAreSaid in a line, and the view goes on.
func TestErrorsAreSaid(t *testing.T) {
	u := &user{t: t}
	u.begin(top.Options{})
	w := cluster(3)
	w.Problem = "nodes: connection refused"
	u.tell(top.Changed(w))
	if got := ansi.Strip(u.model.View().Content); !strings.Contains(got, "error: nodes: connection refused") {
		t.Errorf("no word of what is not known:\n%s", got)
	}
	u.hands.err = errors.New("nodes is forbidden")
	for _, keys := range []string{"d", "h y"} {
		for _, k := range strings.Fields(keys) {
			u.press(k)
		}
		if got := ansi.Strip(u.model.View().Content); !strings.Contains(got, "error: nodes is forbidden") {
			t.Errorf("%s: no word of the error:\n%s", keys, got)
		}
	}
}

// TestOnlyLooking: without hands nothing is asked.
func TestOnlyLooking(t *testing.T) {
	model, err := top.New(top.Options{})
	if err != nil {
		t.Fatal(err)
	}
	u := &user{t: t, model: model, hands: &recorder{}}
	u.tell(tea.WindowSizeMsg{Width: 80, Height: 24})
	u.tell(top.Changed(cluster(3)))
	for _, k := range []string{"d", "u", "h"} {
		u.press(k)
		if got := ansi.Strip(u.model.View().Content); !strings.Contains(got, "here one can only look") {
			t.Errorf("%s:\n%s", k, got)
		}
	}
	if _, err := top.New(top.Options{Sort: "beauty"}); err == nil || !strings.Contains(err.Error(), "want one of name, group") {
		t.Errorf("error %v", err)
	}
}

// BenchmarkTop is a view of 5,000 nodes, 200 of which drain.
func BenchmarkTop(b *testing.B) {
	for _, sort := range []string{"name", "cpu"} {
		u := &user{t: b}
		u.begin(top.Options{Sort: sort})
		w := cluster(5000)
		u.tell(tea.WindowSizeMsg{Width: 120, Height: 40})
		u.tell(top.Changed(w))
		b.Run("change/"+sort, func(b *testing.B) {
			for b.Loop() {
				u.tell(top.Changed(w))
			}
		})
		b.Run("key/"+sort, func(b *testing.B) {
			for b.Loop() {
				u.press("down")
			}
		})
		b.Run("frame/"+sort, func(b *testing.B) {
			for b.Loop() {
				u.model.View()
			}
		})
	}
}

// TestLateAnswersAskNothing: a preview that comes after people went on opens no question, which
// their next y would answer.
func TestLateAnswersAskNothing(t *testing.T) {
	for _, keys := range []string{"down", "down d", "?", "/ \"x", "enter"} {
		u := &user{t: t}
		u.begin(top.Options{})
		u.tell(top.Changed(cluster(3)))
		_, preview := u.model.Update(tea.KeyPressMsg{Code: 'd', Text: "d"})
		late := preview()
		for _, k := range strings.Fields(keys) {
			u.press(k)
		}
		before := ansi.Strip(u.model.View().Content)
		u.tell(late)
		if after := ansi.Strip(u.model.View().Content); after != before {
			t.Errorf("after %s a late answer came up:\n%s", keys, after)
		}
	}
}

// TestProblemIsSeen: that the API server is away is seen whatever was said of something else, and
// what was said leaves its line after some seconds.
func TestProblemIsSeen(t *testing.T) {
	u := &user{t: t}
	u.begin(top.Options{})
	w := cluster(3)
	u.tell(top.Tick(noon))
	u.tell(top.Changed(w))
	for _, k := range []string{"d", "n"} {
		u.press(k)
	}
	w.Problem = "nodes: connection refused"
	u.tell(top.Changed(w))
	if head, _, _ := strings.Cut(ansi.Strip(u.model.View().Content), "\n"); !strings.Contains(head, "error") {
		t.Errorf("the head does not say that something is wrong: %q", head)
	}
	for i := range 20 {
		u.tell(top.Tick(noon.Add(time.Duration(i) * time.Second)))
	}
	if got := ansi.Strip(u.model.View().Content); !strings.Contains(got, "error: nodes: connection refused") || strings.Contains(got, "nothing was done") {
		t.Errorf("after 20 s without a key:\n%s", got)
	}
}

// TestStageFilter: a stage is typed as it is shown, from its beginning on.
func TestStageFilter(t *testing.T) {
	var w top.World
	for i, stage := range view.Stages {
		w.Lines = append(w.Lines, &view.NodeLine{Name: fmt.Sprintf("n%02d", i), Stage: stage})
	}
	for _, stage := range view.Stages {
		u := &user{t: t}
		u.begin(top.Options{Filter: "stage=" + string(stage)})
		u.tell(top.Changed(w))
		if got := ansi.Strip(u.model.View().Content); !strings.Contains(got, "1 of 12 nodes") || !strings.Contains(got, " "+string(stage)) {
			t.Errorf("stage=%s shows\n%s", stage, got)
		}
	}
}

// TestPendingSelectionStays: why is asked of the pods that were selected, wherever they stand now.
func TestPendingSelectionStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := &user{t: t}
		u.begin(top.Options{})
		w := cluster(2)
		for i := range rapid.IntRange(1, 9).Draw(t, "pending") {
			w.Pending = append(w.Pending, view.PendingLine{Count: 1, Example: fmt.Sprintf("shop/p-%d", i)})
		}
		u.tell(top.Changed(w))
		u.press("tab")
		for range rapid.IntRange(0, 9).Draw(t, "downs") {
			u.press("down")
		}
		was := selected(u.model.View().Content)
		for range 3 {
			w.Pending = rapid.Permutation(w.Pending).Draw(t, "sorted")
			u.tell(top.Changed(w))
			if is := selected(u.model.View().Content); is != was {
				t.Fatalf("%q was selected, and now %q", was, is)
			}
		}
	})
}

// TestMessages: what a narrow screen cuts is read in full in a pane.
func TestMessages(t *testing.T) {
	long := func(of string) string { return of + strings.Repeat(" is longer than that", 9) + " and ends" }
	u := &user{t: t}
	u.begin(top.Options{})
	w := cluster(2)
	w.Problem = long("problem")
	w.Faults = []view.Fault{{Of: "cluster", Text: long("fault")}, {Of: "scaler", Text: long("second"), Do: long("remedy")}}
	w.Groups = []view.Group{{Name: "web", Reason: "HookMissing", Message: long("group")}}
	u.tell(top.Changed(w))
	u.hands.err = errors.New(long("refused"))
	u.press("d")
	u.tell(tea.WindowSizeMsg{Width: 80, Height: 50})
	u.press("m")
	got := strings.Join(strings.Fields(ansi.Strip(u.model.View().Content)), " ")
	for _, of := range []string{"problem", "fault", "second", "remedy", "group", "refused"} {
		if !strings.Contains(got, long(of)) {
			t.Errorf("no %s in\n%s", of, u.model.View().Content)
		}
	}
	u.press("esc")
	if got := ansi.Strip(u.model.View().Content); !strings.Contains(got, "PENDING PODS") {
		t.Errorf("esc leads to\n%s", got)
	}
}

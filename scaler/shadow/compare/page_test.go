package compare

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/harmless"
	"windlass.dev/windlass/scaler/shadow/record"
)

// anyName is what groups, nodes and pods may be called, and what Events may say.
var anyName = rapid.OneOf(rapid.SampledFrom([]string{"", "web", "n1", "a/1", "</script><b>", "</title><img src=x onerror=alert(1)>", `"><i a="`, "&lt;", "]]>", "<!--", "日本", "\x1b[31mred", "a\nb\x00", strings.Repeat("x", 5000)}), rapid.StringMatching(`[a-z0-9<>&"'/-]{0,30}`))

// drawAny is a record of which others choose all, at whatever date.
func drawAny(t *rapid.T) record.Record {
	r := record.Record{At: noon.Add(time.Duration(rapid.OneOf(rapid.Int64Range(-7200, 7200), rapid.Int64Range(-1e10, 1e10)).Draw(t, "at")) * time.Second)}
	number := rapid.IntRange(-3, 1<<40)
	switch rapid.IntRange(0, 6).Draw(t, "kind") {
	case 0:
		r.Sample = &record.Sample{Pending: number.Draw(t, "pending")}
		for range rapid.IntRange(0, 12).Draw(t, "groups") {
			r.Sample.Groups = append(r.Sample.Groups, record.GroupSample{Group: anyName.Draw(t, "group"), World: record.Size{Nodes: number.Draw(t, "nodes"), DollarsPerHour: rapid.Float64().Draw(t, "dollars")}, Windlass: record.Size{Nodes: 1}})
		}
	case 1, 2:
		r.Seen = &record.Seen{By: rapid.SampledFrom([]string{record.ByAutoscaler, record.ByUnknown, record.ByClaim, record.ByAutoScaling, "else"}).Draw(t, "by"), Kind: rapid.SampledFrom([]string{record.ScaleUp, record.ScaleDown, record.Tainted, record.NodeGone, record.NodeCame, record.Failed, record.Unhelped, record.DesiredChanged}).Draw(t, "kind"),
			Group: anyName.Draw(t, "group"), Node: anyName.Draw(t, "node"), Instance: anyName.Draw(t, "instance"), From: number.Draw(t, "from"), To: number.Draw(t, "to"), Pods: []string{anyName.Draw(t, "pod")}, Why: anyName.Draw(t, "why")}
	case 3, 4:
		r.Decided = &record.Decided{Kind: rapid.SampledFrom([]string{record.Grow, record.RequestDrain, record.CancelDrain, record.Terminate, "mark"}).Draw(t, "kind"),
			Group: anyName.Draw(t, "group"), Node: anyName.Draw(t, "node"), From: number.Draw(t, "from"), To: number.Draw(t, "to"), Pods: []string{anyName.Draw(t, "pod")}, Why: anyName.Draw(t, "why")}
	case 5:
		r.Diverged = &record.Diverged{Node: anyName.Draw(t, "node"), Assumed: anyName.Draw(t, "assumed"), Is: anyName.Draw(t, "is")}
	case 6:
		r.Bound = &record.Bound{Pod: anyName.Draw(t, "pod"), Side: rapid.SampledFrom([]record.Side{record.World, record.Windlass}).Draw(t, "side"), PendingSince: r.At.Add(-time.Duration(rapid.Int64Range(-1e6, 1e6).Draw(t, "waited")) * time.Second), Node: anyName.Draw(t, "node")}
	}
	return r.Normal()
}

// TestHostile: whatever stands in a log and beside it, what is printed is bounded, a page is
// harmless and nothing in it has a place that is none.
func TestHostile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := Input{Log: record.Book{Records: rapid.SliceOfN(rapid.Custom(drawAny), 0, 40).Draw(t, "log"), Faults: []string{anyName.Draw(t, "fault")}}, Direct: rapid.SliceOfN(rapid.Custom(drawAny), 0, 10).Draw(t, "direct")}
		if rapid.Bool().Draw(t, "span") {
			in.From = noon.Add(-time.Hour)
			in.To = noon.Add(time.Duration(rapid.IntRange(-120, 120).Draw(t, "to")) * time.Minute)
		}
		c := Of(in)
		page := c.Page()
		if _, _, err := harmless.Read(page); err != nil {
			t.Fatal(err)
		}
		var table strings.Builder
		if err := c.Table(&table); err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(c); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsFunc(strings.ReplaceAll(table.String(), "\n", ""), unicode.IsControl) {
			t.Fatalf("it commands the terminal: %q", table.String())
		}
		for _, text := range []string{page, table.String()} {
			if strings.Contains(text, "NaN") || strings.Contains(text, "+Inf") || len(text) > 2<<20 {
				t.Fatalf("%d bytes: %.300s", len(text), text)
			}
		}
	})
}

// TestWaiting: a pod that is pending to the end is so on both sides, unless Windlass has served it.
func TestWaiting(t *testing.T) {
	bound := func(second int, pod string, side record.Side) record.Record {
		return at(second, record.Record{Bound: &record.Bound{Pod: pod, Side: side, PendingSince: noon.Add(time.Minute), Node: "n"}})
	}
	var log []record.Record
	for minute, pending := range []int{0, 3, 3, 3, 2, 2} {
		log = append(log, at(60*minute, record.Record{Sample: &record.Sample{Pending: pending}}))
	}
	// One is served by both, one by Windlass alone, one by neither.
	log = append(log, bound(90, "a/1", record.Windlass), bound(200, "a/1", record.World), bound(150, "a/2", record.Windlass))
	c := Of(Input{Log: record.Book{Records: log}})
	if diff := cmp.Diff([]int{0, 3, 2, 1, 1, 1}, append(c.waiting(), 1)[:6]); diff != "" || len(c.held) < 5 {
		t.Error(diff)
	}
}

// TestServedOnce: a pod that is recorded as served again, by a process that did not know, was served when
// it was recorded first.
func TestServedOnce(t *testing.T) {
	bound := func(second int, since time.Time) record.Record {
		return at(second, record.Record{Bound: &record.Bound{Pod: "a/1", Side: record.Windlass, PendingSince: since, Node: "n"}})
	}
	log := []record.Record{bound(30, noon), bound(600, noon), bound(700, noon.Add(650*time.Second))}
	c := Of(Input{Log: record.Book{Records: log}})
	if p := c.Pending.Windlass; p.Pods != 2 || p.Max != Duration(50*time.Second) || len(c.queued.Windlass) != 2 {
		t.Errorf("%+v, pending at %v", p, c.queued.Windlass)
	}
	if p := Of(Input{Log: record.Book{Records: log}, From: noon.Add(time.Minute)}).Pending.Windlass; p.Pods != 1 {
		t.Errorf("without its first record: %+v", p)
	}
}

// TestSpanIsNobodysChoice: the time that is compared is that of samples and of what is believed, until
// now, whatever dates tenants give their Events.
func TestSpanIsNobodysChoice(t *testing.T) {
	claim := func(second int) record.Record {
		return seen(second, record.Seen{By: record.ByClaim, Kind: record.Unhelped, Pods: []string{"a/1"}})
	}
	const year = 365 * 24 * 3600
	log := []record.Record{claim(-year), at(0, record.Record{Sample: &record.Sample{}}), at(60, record.Record{Sample: &record.Sample{}}), claim(2 * year)}
	believed := seen(year, record.Seen{By: record.ByAutoscaler, Kind: record.Failed, Group: "web"})
	c := Of(Input{Log: record.Book{Records: log}, Direct: []record.Record{claim(-2 * year), claim(year)}})
	if want := noon.Add(60*time.Second + time.Millisecond); !c.From.Equal(noon) || !c.To.Equal(want) {
		t.Errorf("%s to %s, want %s to %s", c.From, c.To, noon, want)
	}
	now := noon.Add(time.Hour)
	if c := Of(Input{Log: record.Book{Records: log}, Direct: []record.Record{believed}, Now: now}); !c.From.Equal(noon) || !c.To.Equal(now) {
		t.Errorf("with a date to come: %s to %s, want %s to %s", c.From, c.To, noon, now)
	}
}

// TestResultWithoutPods: pending times are held against each other only where both sides served pods.
func TestResultWithoutPods(t *testing.T) {
	served := func(side record.Side) record.Record {
		return at(90, record.Record{Bound: &record.Bound{Pod: "a/1", Side: side, PendingSince: noon, Node: "n"}})
	}
	sample := at(0, record.Record{Sample: &record.Sample{}})
	for _, c := range []struct {
		want string
		log  []record.Record
	}{
		{"; its pods would have been pending for 1m30s at the median, as they were.", []record.Record{sample, served(record.World), served(record.Windlass)}},
		{"; Windlass would have served 0 pending pods, and the world served 1.", []record.Record{sample, served(record.World)}},
		{"; Windlass would have served 1 pending pod, and the world served 0.", []record.Record{sample, served(record.Windlass)}},
	} {
		c2 := Of(Input{Log: record.Book{Records: c.log}})
		if got := c2.Result(); !strings.HasSuffix(got, c.want) {
			t.Errorf("%q, want its end %q", got, c.want)
		}
	}
}

// TestListsWithoutLog: what the world did counts in the span alone, and what is not listed is counted.
func TestListsWithoutLog(t *testing.T) {
	var direct []record.Record
	for i := range 40 {
		direct = append(direct, seen(3600*i, record.Seen{By: record.ByAutoscaler, Kind: record.ScaleUp, Group: "web", From: i, To: i + 1}))
	}
	of := func(hours int) string {
		c := Of(Input{Direct: direct, From: noon, To: noon.Add(time.Duration(hours) * time.Hour)})
		var b strings.Builder
		if err := c.Table(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got := of(2); !strings.Contains(got, "has 2 scale-ups and 0 scale-downs") {
		t.Errorf("of two hours: %s", got)
	}
	if got := of(35); strings.Count(got, "grew web") != 30 || !strings.Contains(got, "5 more") {
		t.Errorf("of 35: %s", got)
	}
}

// TestMany: as much as a log and an hour of Events can hold is compared soon, and listed within
// bounds.
func TestMany(t *testing.T) {
	var in Input
	for i := range 10_000 {
		second, group, node := i, fmt.Sprint("g", i%3), fmt.Sprint("n", i)
		in.Log.Records = append(in.Log.Records,
			seen(second, record.Seen{By: record.ByAutoscaler, Kind: record.ScaleUp, Group: group, From: i, To: i + 1, Pods: []string{fmt.Sprint("a/", i)}}),
			decides(second, record.Decided{Kind: record.Grow, Group: group, From: i, To: i + 1, Pods: []string{fmt.Sprint("a/", i+1)}}),
			seen(second, record.Seen{By: record.ByAutoscaler, Kind: record.Tainted, Node: node}),
			decides(second, record.Decided{Kind: record.RequestDrain, Node: node + "x"}),
			at(second, record.Record{Bound: &record.Bound{Pod: fmt.Sprint("a/", i), Side: record.Windlass, PendingSince: noon, Node: "n"}}))
		if second%60 == 0 {
			in.Log.Records = append(in.Log.Records, at(second, record.Record{Sample: &record.Sample{Groups: []record.GroupSample{{Group: group}}}}))
		}
	}
	c := Of(in)
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if page := c.Page(); len(c.Divergences) != mostListed || len(page) > 8<<20 || len(text) > 8<<20 {
		t.Errorf("%d divergences, a page of %d bytes, %d bytes of JSON", len(c.Divergences), len(page), len(text))
	}
}

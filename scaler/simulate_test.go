package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/simulate/report"
)

// simulates runs the command and returns what it prints.
func simulates(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), append([]string{"simulate"}, args...), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func written(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A policy that never scales down costs more than the default, beside the same bound; the
// figures are the same in each form, and the page is whole.
func TestSimulateCompares(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	never, price := written(t, "never.yaml", "scale-down-enabled: false\n"), written(t, "price.yaml", "expander: price\nstartup-taint: [a, b]\n")
	args := []string{"--days=0.3", "--pods=40", "--compare", never, price}
	var got report.Report
	if err := json.Unmarshal([]byte(simulates(t, append(args, "-o", "json", "--html", page)...)), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Runs) != 2 || got.Runs[0].Name != "never" || got.Runs[1].Name != "price" {
		t.Fatalf("runs: %+v", got.Runs)
	}
	a, b := got.Runs[0], got.Runs[1]
	if a.ScaleDowns != 0 || b.ScaleDowns == 0 || a.Dollars <= b.Dollars || a.Bound != b.Bound || b.OverBound < 1 {
		t.Errorf("without scale-down $%v and %d scale-downs, with it $%v and %d, bounds $%v and $%v", a.Dollars, a.ScaleDowns, b.Dollars, b.ScaleDowns, a.Bound, b.Bound)
	}
	table := simulates(t, args...)
	for _, want := range []string{"never", "price", "bill ÷ bound", "on demand, Linux, us-east-1, as AWS published them on 2026-07-20"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
	checkPage(t, page)
}

// checkPage looks for what people want to know of a page: what was played, and everything that
// was promised of each run. That it is whole and harmless is a law of package report.
func checkPage(t *testing.T, name string) {
	t.Helper()
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for want, times := range map[string]int{
		"generated, 0.3 days, 40 pods, seed 1": 2, "; seed 1<": 1, "on demand, Linux, us-east-1, as AWS published them on 2026-07-20": 1,
		"--scale-down-enabled=false": 1, "--expander=price --startup-taint=a --startup-taint=b": 1,
		"dollars so far": 3, "dollars an hour": 3, "nodes that are paid for, by instance type": 2, "pending pods, the most at once in each 1m": 2, "evictions in each 1m": 2,
		">bound $": 3, ">packed anew $": 3, ">scale-up<": 2, ">scale-down<": 1, ">$0<": 6, "bill by group": 2, `class="chart"`: 14,
	} {
		if got := strings.Count(text, want); got != times {
			t.Errorf("the page has %q %d times, want %d", want, got, times)
		}
	}
	for _, mark := range strings.Split(text, "<a href=")[1:] {
		if title, _, _ := strings.Cut(mark, "</title>"); !regexp.MustCompile(`<title>Mon \d\d:\d\d:\d\d (grow|drain|terminate|cancel) .*\n(pod|node) [^ ]+: [A-Z]\w+: `).MatchString(title) {
			t.Errorf("a mark shows %s; want a decision with its verdict", title)
		}
	}
	if len(text) > 1<<20 {
		t.Errorf("the page has %d bytes", len(text))
	}
}

// A saved snapshot goes on: its groups and prices, its nodes and pods.
func TestSimulateSnapshot(t *testing.T) {
	w := scenario.NewWorld()
	if err := w.Apply(`group web min=1 desired=3 type=m5.large
node web-1..3 group=web
pod app-1..6 on=web-1 cpu=250m owner=ReplicaSet/app
pod job-1..3 on=web-2 cpu=500m owner=Job/build
pod more-1..2 waiting cpu=500m owner=ReplicaSet/more
pod agent-1 on=web-1 cpu=10m owner=DaemonSet/agent`); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := fleet.Write(&text, w.Snapshot); err != nil {
		t.Fatal(err)
	}
	var got report.Report
	if err := json.Unmarshal([]byte(simulates(t, "--days=0.5", "-f", written(t, "snapshot.yaml", text.String()), "-o=json")), &got); err != nil {
		t.Fatal(err)
	}
	if r := got.Runs[0]; r.NodeHours < 24 || r.NodeHours > 60 || len(r.Bills) != 1 || r.Bills[0].Price != 0.096 || r.ScaleDowns == 0 || r.Waiting > 0 {
		t.Errorf("half a day of two to five nodes: %+v", r)
	}
	if want := "those of the snapshot; where it has none, on demand, Linux, us-east-1, as AWS published them on 2026-07-20"; got.Prices != want {
		t.Errorf("prices are %q, want %q", got.Prices, want)
	}
	if got.Start != w.Now || got.Seconds != int64(12*time.Hour/time.Second) {
		t.Errorf("it starts at %v and lasts %d s", got.Start, got.Seconds)
	}
}

// Replicas of a saved snapshot follow the hours of the day: a day has more pods than there were,
// since some end at night and others come in the morning.
func TestSimulateSnapshotSwings(t *testing.T) {
	w := scenario.NewWorld()
	if err := w.Apply(`group web min=1 desired=3 type=m5.large
node web-1..3 group=web
pod app-1..12 on=web-1 cpu=100m owner=ReplicaSet/app`); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := fleet.Write(&text, w.Snapshot); err != nil {
		t.Fatal(err)
	}
	var got report.Report
	if err := json.Unmarshal([]byte(simulates(t, "--days=1", "--swing=0.9", "-f", written(t, "snapshot.yaml", text.String()), "-o=json")), &got); err != nil {
		t.Fatal(err)
	}
	if r := got.Runs[0]; got.Pods <= 12 || r.PodHours < 24 || r.PodHours >= 12*24 {
		t.Errorf("twelve replicas that swing come to %d pods and %v pod-hours in a day", got.Pods, r.PodHours)
	}
}

// Nodes of no group cost nothing here: the bound does not count what they may hold, which is less
// where pods of the groups may not go there.
func TestSimulateNodesOfNoGroup(t *testing.T) {
	for taints, want := range map[string]struct{ least, most float64 }{"": {0, 0}, " taints=dedicated=db:NoSchedule": {0.01, 1}} {
		w := scenario.NewWorld()
		if err := w.Apply(`group web min=1 desired=1 type=m5.large
node web-1 group=web
node base cpu=16 mem=64Gi` + taints + `
pod db-1..10 on=base cpu=1 owner=StatefulSet/db tolerates=dedicated
pod app-1 on=web-1 cpu=500m owner=ReplicaSet/app`); err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := fleet.Write(&text, w.Snapshot); err != nil {
			t.Fatal(err)
		}
		var got report.Report
		if err := json.Unmarshal([]byte(simulates(t, "--days=0.5", "-f", written(t, "snapshot.yaml", text.String()), "-o=json")), &got); err != nil {
			t.Fatal(err)
		}
		if r := got.Runs[0]; r.Bound < want.least || r.Bound > want.most || r.Repack > r.Dollars+1e-9 || r.Repack == 0 {
			t.Errorf("%q: a bill of $%v, a bound of $%v and packed anew for $%v: want a bound of $%v to $%v, and the one pod of the group packed", taints, r.Dollars, r.Bound, r.Repack, want.least, want.most)
		}
	}
}

// A slice of a trace is played.
func TestSimulateTrace(t *testing.T) {
	file := written(t, "pods.csv", "name,cpu_milli,memory_mib,creation_time,deletion_time\na,4000,8192,0,900000\nb,4000,8192,86500,90000\nc,400000,8192,86500,90000\n")
	var got report.Report
	if err := json.Unmarshal([]byte(simulates(t, "--trace", file, "--days=1-2", "--divide=4", "-o=json")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Pods != 2 || got.LeftOut != 1 || got.Runs[0].Launches == 0 || got.Runs[0].OverBound < 1 {
		t.Errorf("%d pods, %d left out, %+v", got.Pods, got.LeftOut, got.Runs[0])
	}
}

func TestSimulateWrongArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"now"}, `"now" is no flag`},
		{[]string{"--output=xml"}, "--output=xml: want table or json"},
		{[]string{"--expander=roulette"}, `--expander names "roulette"`},
		{[]string{"--days=1-2"}, "--days=1-2: want a number"},
		{[]string{"--days=-1"}, "want up to 366 days"},
		{[]string{"--trace=a.csv", "--snapshot=b.yaml"}, "--snapshot and --trace are two worlds"},
		{[]string{"--trace=/no/such/file", "--days=1-2"}, "/no/such/file"},
		{[]string{"--trace=x", "--trace-format=swf"}, "--trace-format=swf: want openb or dlrm"},
		{[]string{"--world=/no/such/file"}, "/no/such/file"},
		{[]string{"--compare=/no/such/file"}, "/no/such/file"},
		{[]string{"--compare", written(t, "bad.yaml", "colour: red"), "--days=1"}, "colour"},
		{[]string{"--compare", written(t, "good.yaml", "expander: price"), "--expander=price"}, "--expander beside --compare: write it into each file"},
	} {
		err := run(t.Context(), append([]string{"simulate"}, c.args...), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.args, err, c.want)
		}
	}
}

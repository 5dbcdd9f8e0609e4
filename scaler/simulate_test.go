package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/shadow/record"
	"windlass.dev/windlass/scaler/simulate/report"
	"windlass.dev/windlass/scaler/simulate/trace"
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

// reported is the report of a simulation.
func reported(t *testing.T, args ...string) (got report.Report) {
	t.Helper()
	if err := json.Unmarshal([]byte(simulates(t, append([]string{"-o=json"}, args...)...)), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// saved is a file with a snapshot of a world.
func saved(t *testing.T, w *scenario.World) string {
	t.Helper()
	var text bytes.Buffer
	if err := fleet.Write(&text, w.Snapshot); err != nil {
		t.Fatal(err)
	}
	return written(t, "snapshot.yaml", text.String())
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
	got := reported(t, append(args, "--html", page)...)
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

// Files are compared in the order in which they are named, before and behind --compare.
func TestCompareOrder(t *testing.T) {
	var files []any
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		files = append(files, written(t, name+".yaml", "expander: price\n"))
	}
	for _, form := range []string{"%s --compare %s %s --compare=%s %s", "--compare %s,%s %s --compare=%s,%s", "--compare=%s -- %s %s %s %s"} {
		args := strings.Fields(fmt.Sprintf(form, files...))
		var names []string
		for _, r := range reported(t, append([]string{"--days=0.01", "--pods=9"}, args...)...).Runs {
			names = append(names, r.Name)
		}
		if got := strings.Join(names, ""); got != "abcde" {
			t.Errorf("%s: %s", form, got)
		}
	}
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
		">bound $": 3, ">packed anew $": 3, ">scale-up<": 2, ">scale-down<": 1, ">$0<": 3, ">$0.0<": 3, "bill by group": 2, `class="chart"`: 14,
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
	got := reported(t, "--days=0.5", "-f", saved(t, w))
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
	got := reported(t, "--days=1", "--swing=0.9", "-f", saved(t, w))
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
		got := reported(t, "--days=0.5", "-f", saved(t, w))
		if r := got.Runs[0]; r.Bound < want.least || r.Bound > want.most || r.Repack > r.Dollars+1e-9 || r.Repack == 0 {
			t.Errorf("%q: a bill of $%v, a bound of $%v and packed anew for $%v: want a bound of $%v to $%v, and the one pod of the group packed", taints, r.Dollars, r.Bound, r.Repack, want.least, want.most)
		}
	}
}

// A history is played on the groups of a snapshot.
func TestSimulateHistory(t *testing.T) {
	w := scenario.NewWorld()
	if err := w.Apply(`group web min=0 desired=1 type=m5.large
node web-1 group=web
pod app-1 on=web-1 cpu=250m owner=ReplicaSet/app-1`); err != nil {
		t.Fatal(err)
	}
	pods := written(t, "pods.csv", `namespace,name,owner,cpu,memory,created,ended
default,app-a,ReplicaSet/app-0,1500m,1Gi,2026-03-01T00:00:00Z,2026-03-02T00:00:00Z
default,app-b,ReplicaSet/app-0,1500m,1Gi,2026-03-01T06:00:00Z,2026-03-01T12:00:00Z
default,large,Job/large-1,100,1Gi,2026-03-01T06:00:00Z,2026-03-01T12:00:00Z
`)
	args := []string{"--trace", pods, "--trace-format=pods", "--window=12h", "--until=2026-03-01T18:00:00Z", "-f", saved(t, w)}
	got := reported(t, args...)
	if got.Pods != 2 || got.LeftOut != 1 || got.Seconds != 12*3600 || !got.Start.Equal(time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)) {
		t.Errorf("%d pods, %d left out, %d s from %s", got.Pods, got.LeftOut, got.Seconds, got.Start)
	}
	if r := got.Runs[0]; r.Launches != 1 || len(r.Bills) != 1 || r.NodeHours < 18 || r.NodeHours > 19 || r.ScaleDowns != 1 {
		t.Errorf("a node for 12 hours and another for six: %+v", r)
	}
}

// The log of a dry run is played on the groups that it has, and what it does not hold is said.
func TestSimulateLog(t *testing.T) {
	start := time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)
	log, _ := record.Resume(nil)
	add := func(after time.Duration, r record.Record) {
		if r.At = start.Add(after); log.Append(r, r.At) != nil {
			t.Fatal("not kept")
		}
	}
	of := func(l record.Life) []record.PodsOf {
		return []record.PodsOf{{Namespace: "shop", Kind: "ReplicaSet", Owner: "web-1", MilliCPU: 1500, Memory: 1 << 30, Pods: []record.Life{l}}}
	}
	add(0, record.Record{Pods: &record.Pods{List: true, Count: 1, Of: of(record.Life{Name: "a", Created: start.Unix() - 60})}})
	add(0, record.Record{Groups: &record.Groups{Of: []record.Shape{{Group: "ours", Type: "m5.large", Zones: []string{"a"}, Max: 9, MilliCPU: 1930, Memory: 7 << 30, Pods: 29, DollarsPerHour: 0.5}}}})
	add(6*time.Hour, record.Record{Sample: &record.Sample{}})
	add(6*time.Hour, record.Record{Pods: &record.Pods{Of: of(record.Life{Name: "b", Created: start.Unix() + 5*3600, Ended: start.Unix() + 6*3600})}})
	add(12*time.Hour, record.Record{Sample: &record.Sample{}})
	chunks, err := log.Unwritten()
	if err != nil {
		t.Fatal(err)
	}
	object := chunks[0].ConfigMap()
	object.Kind, object.APIVersion = "ConfigMap", "v1"
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	file := written(t, "log.json", string(text))
	got := reported(t, "--log", file)
	if r := got.Runs[0]; got.Pods != 2 || got.Seconds != 12*3600 || len(r.Bills) != 1 || r.Bills[0].Price != 0.5 || r.Launches != 2 {
		t.Errorf("%d pods, %d s, %+v", got.Pods, got.Seconds, r)
	}
	if want := []string{"2026-03-01 06:00 to 2026-03-01 12:00: no pods that came and ended then are known", "2026-03-01 12:00 to 2026-03-01 18:00: no pods that came and ended then are known"}; !slices.Equal(got.Lacks, want) {
		t.Errorf("it lacks %q, want %q", got.Lacks, want)
	}
	if table := simulates(t, "--log", file); !strings.Contains(table, "\nnot known: 2026-03-01 06:00 to") || !strings.Contains(table, "prices: those of the shadow's log") {
		t.Errorf("the table:\n%s", table)
	}
}

// What docs/simulate.md has people collect is a history.
func TestSimulateRecordsOfKubectl(t *testing.T) {
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("there is no jq here")
	}
	page, err := os.ReadFile("../docs/simulate.md")
	if err != nil {
		t.Fatal(err)
	}
	const kubectl = "kubectl get pods -A -o json"
	_, script, found := strings.Cut(string(page), "    "+kubectl)
	script, _, ends := strings.Cut(script, " >> pods.csv\n")
	if !found || !ends {
		t.Fatal("the page has no such command")
	}
	list := written(t, "pods.json", `{"items":[
		{"metadata":{"namespace":"shop","name":"web-5d9c-a","creationTimestamp":"2026-01-20T10:00:00Z","ownerReferences":[{"kind":"X","name":"y"},{"kind":"ReplicaSet","name":"web-5d9c","controller":true}]},
			"spec":{"containers":[{"resources":{"requests":{"cpu":"500m","memory":"1Gi"}}},{"resources":{"requests":{"cpu":"1"}}},{}]},"status":{"phase":"Running","containerStatuses":[{"state":{"terminated":{"finishedAt":"2026-01-20T10:30:00Z"}}}]}},
		{"metadata":{"namespace":"ci","name":"build-1-x","creationTimestamp":"2026-01-20T11:00:00Z","ownerReferences":[{"kind":"Job","name":"build-1","controller":true}]},
			"spec":{"containers":[{}]},"status":{"phase":"Succeeded","containerStatuses":[{"state":{"terminated":{"finishedAt":"2026-01-20T11:05:00Z"}}}]}},
		{"metadata":{"namespace":"ci","name":"refused","creationTimestamp":"2026-01-20T11:00:00Z"},"spec":{"containers":[{}]},"status":{"phase":"Failed","startTime":"2026-01-20T11:01:00Z"}}]}`)
	out, err := exec.Command("sh", "-c", "cat "+list+script).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for i, want := range []string{
		`"namespace","name","owner","cpu","memory","created","ended","seen"`,
		`"shop","web-5d9c-a","ReplicaSet/web-5d9c","500m+1","1Gi","2026-01-20T10:00:00Z",,"`,
		`"ci","build-1-x","Job/build-1","","","2026-01-20T11:00:00Z","2026-01-20T11:05:00Z","`,
		`"ci","refused",,"","","2026-01-20T11:00:00Z","2026-01-20T11:01:00Z","`,
	} {
		if len(lines) != 4 || !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d of\n%swant %s", i+1, out, want)
		}
	}
	if _, err := trace.ReadPods(bytes.NewReader(append(out, out...))); err != nil {
		t.Error(err)
	}
}

// A sweep has all combinations, by dollars, the best of them marked; the page draws them.
func TestSimulateSweep(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	file := written(t, "sweep.yaml", "scale-down-enabled: [true, false]\nscale_down_unneeded_time: [2m, 30m]\nexpander: price\nexpendable-pods-priority-cutoff: -2000000\nignore-taint: [[a, b]]\n")
	args := []string{"--days=0.3", "--pods=40", "--sweep", file}
	got := reported(t, append(args, "--html", page)...)
	var names []string
	last := 0.0
	for _, r := range got.Runs {
		names = append(names, r.Name)
		if r.Dollars < last || r.Swept["scale-down-enabled"] == "false" && r.ScaleDowns > 0 {
			t.Errorf("%s costs $%v after $%v, with %d scale-downs", r.Name, r.Dollars, last, r.ScaleDowns)
		}
		last = r.Dollars
	}
	slices.Sort(names)
	want := []string{
		"scale-down-enabled=false scale-down-unneeded-time=2m", "scale-down-enabled=false scale-down-unneeded-time=30m",
		"scale-down-enabled=true scale-down-unneeded-time=2m", "scale-down-enabled=true scale-down-unneeded-time=30m",
	}
	if diff := cmp.Diff(want, names); diff != "" || !got.Runs[0].Unbeaten {
		t.Errorf("the cheapest is marked: %v; combinations (-want +got):\n%s", got.Runs[0].Unbeaten, diff)
	}
	table := simulates(t, args...)
	if strings.Count(table, "\n*") < 1 || !strings.Contains(table, "scale-down-unneeded-time") || strings.Contains(table, "startup-taint") {
		t.Errorf("the table:\n%s", table)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	charted := 0
	for _, r := range got.Runs {
		if !strings.Contains(string(text), r.Name+"\n") {
			t.Errorf("the page has no dot of %s", r.Name)
		}
		if r.Unbeaten {
			charted++
		}
	}
	if n := strings.Count(string(text), "--expander=price --expendable-pods-priority-cutoff=-2000000 --scale-down-enabled="); n != charted || !strings.Contains(string(text), "--startup-taint=a --startup-taint=b") {
		t.Errorf("the page has charts of %d runs with all their flags, want %d", n, charted)
	}
}

// TestSweepLaw: each combination of values is there once, and has them.
func TestSweepLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		minutes := rapid.IntRange(1, 9).Draw(t, "unneeded times")
		nodes := rapid.IntRange(1, 9).Draw(t, "most nodes")
		choices := map[string][]any{"expander": {"price"}}
		for i := range minutes {
			choices["scale-down-unneeded-time"] = append(choices["scale-down-unneeded-time"], fmt.Sprintf("%dm", i+1))
		}
		for i := range nodes {
			choices["max-nodes-total"] = append(choices["max-nodes-total"], float64(i+1))
		}
		got, err := combined(choices)
		if n := minutes * nodes; n == 1 || n > mostCombinations {
			if err == nil {
				t.Fatalf("%d combinations are played", n)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, v := range got {
			key := fmt.Sprint(v.Policy.UnneededTime, v.Policy.MaxNodes)
			if seen[key] || seen[v.Name] || v.Policy.Expander != "price" {
				t.Fatalf("%s is there twice, or chooses by %s", key, v.Policy.Expander)
			}
			seen[key], seen[v.Name] = true, true
		}
		if len(got) != minutes*nodes {
			t.Fatalf("%d combinations of %d and %d values", len(got), minutes, nodes)
		}
	})
}

func TestWrongSweeps(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "want several values of a flag",
		"expander: price":                      "want several values of a flag",
		"expander: []":                         "--expander: want at least one value",
		"expander: [price, price]":             "--expander: the value price is there twice",
		"expander: [price, null]":              "expander: want a value",
		"expander: [price, {a: b}]":            "expander: want a value",
		"colour: [red, blue]":                  "combination colour=red: no such flag -colour",
		"- expander":                           "cannot unmarshal array",
		"expander: [price, roulette]":          `combination expander=roulette: --expander names "roulette"`,
		"expander: [price]\nexpander: [price]": "already set",
		"startup-taint: [a, b]\nignore-taint: [c, d]":                                     "--startup-taint is there under two names",
		"max-nodes-total: [1,2,3,4,5,6,7,8,9]\nok-total-unready-count: [1,2,3,4,5,6,7,8]": "more than 64 combinations",
	} {
		if _, err := readSweep(written(t, "sweep.yaml", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A slice of a trace is played.
func TestSimulateTrace(t *testing.T) {
	file := written(t, "pods.csv", "name,cpu_milli,memory_mib,creation_time,deletion_time\na,4000,8192,0,900000\nb,4000,8192,86500,90000\nc,400000,8192,86500,90000\n")
	got := reported(t, "--trace", file, "--days=1-2", "--divide=4")
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
		{[]string{"--trace=x", "--trace-format=swf", "--days=1-2"}, "--trace-format=swf: want one of openb, dlrm, pods"},
		{[]string{"--trace=x", "--prometheus=http://127.0.0.1:1"}, "--prometheus and --trace are two histories"},
		{[]string{"--prometheus=127.0.0.1:9090"}, "--prometheus: want a URL such as http://127.0.0.1:9090"},
		{[]string{"--prometheus=http://127.0.0.1:1", "--days=3"}, "--days is for other inputs: want --window"},
		{[]string{"--prometheus=http://127.0.0.1:1", "--window=week"}, "--window=week: want a time such as 7d"},
		{[]string{"--prometheus=http://127.0.0.1:1", "--window=400d"}, "366 days at the most"},
		{[]string{"--prometheus=http://127.0.0.1:1", "--until=noon"}, "--until=noon: want a moment"},
		{[]string{"--prometheus=http://127.0.0.1:1", "--prometheus-header=secret"}, "--prometheus-header=sec…: want NAME=VALUE"},
		{[]string{"--prometheus=http://127.0.0.1:1", "--prometheus-header=Authorization: Bearer c2VjcmV0="}, "--prometheus-header=Aut…: want NAME=VALUE"},
		{[]string{"--prometheus=http://127.0.0.1:1"}, "asking for kube_pod_status_phase"},
		{[]string{"--log=x", "--shadow"}, "--shadow reads the log in the cluster, and --log files"},
		{[]string{"--log=x", "--trace=y"}, "is a history of its own"},
		{[]string{"--log", written(t, "none.yaml", "kind: ConfigMap\n")}, "there is no log of a dry run"},
		{[]string{"--window=3d"}, "--window is for a history: want --prometheus"},
		{[]string{"--trace=x", "--trace-format=pods", "--prometheus-match=a"}, "--prometheus-match is for a history"},
		{[]string{"--trace=x", "--trace-format=pods", "--prometheus-match=a"}, "want --prometheus"},
		{[]string{"--trace-format=pods"}, "--trace-format is for a file of pods: want --trace"},
		{[]string{"--prometheus=http://127.0.0.1:1", "--trace-format=pods"}, "--trace-format is for a file of pods"},
		{[]string{"--trace=x", "--pods=9"}, "--pods is for pods that are generated"},
		{[]string{"--snapshot=x", "--pods=9"}, "--pods is for pods that are generated"},
		{[]string{"--prometheus=http://127.0.0.1:1", "--pods=9"}, "--pods is for pods that are generated"},
		{[]string{"--swing=0.1"}, "--swing is for pods of a snapshot that go on: want --snapshot"},
		{[]string{"--snapshot=x", "--trace=y", "--trace-format=pods", "--swing=0.1"}, "--swing is for pods of a snapshot that go on"},
		{[]string{"--snapshot=x", "--prometheus=http://127.0.0.1:1", "--swing=0.1"}, "--swing is for pods of a snapshot that go on"},
		{[]string{"--divide=2"}, "--divide is for pods that were there: want --trace, --prometheus, --log or --shadow"},
		{[]string{"--snapshot=x", "--ramp=1h"}, "--ramp is for pods that were there"},
		{[]string{"--sample=2"}, "--sample is for pods that were there"},
		{[]string{"--trace=x", "--phase=1"}, "--phase is which of the services that --sample divides: want --sample"},
		{[]string{"--spot-prices=history"}, "--spot-prices asks EC2, which a simulation does not"},
		{[]string{"--spot-price-factor=0.5"}, "--spot-price-factor is for groups of a snapshot: want --snapshot"},
		{[]string{"--trace=x", "--price-file", written(t, "prices", "us-east-1 m5.large 0.1\n")}, "--price-file is for groups of a snapshot"},
		{[]string{"--trace=/no/such/file", "--trace-format=pods"}, "--trace: open /no/such/file"},
		{[]string{"--trace", written(t, "pods.csv", "a,b\n"), "--trace-format=pods"}, "pods.csv: there is no column namespace"},
		{[]string{"--sweep=/no/such/file"}, "--sweep=/no/such/file: open"},
		{[]string{"--sweep=x", "--compare=y"}, "--sweep and --compare are two comparisons"},
		{[]string{"--sweep=x", "--expander=price"}, "--expander beside --sweep"},
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

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/docs/section"
	"windlass.dev/windlass/e2e/harmless"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/shadow/compare"
	"windlass.dev/windlass/scaler/shadow/record"
)

// The fixture is a morning of a small cluster: what a Cluster Autoscaler and Auto Scaling left
// behind, in the forms in which kubectl and aws print it, and what a shadow beside them logged.
// Among the Events are some that a tenant wrote, and one without a date.
const fixture = "testdata/compare/"

// shadowLog is the fixture's log as kubectl get configmap -o yaml prints it.
func shadowLog(t *testing.T) string {
	t.Helper()
	file, err := os.Open(fixture + "records.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	log, _ := record.Resume(nil)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var r record.Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if err := log.Append(r, r.At); err != nil {
			t.Fatal(err)
		}
	}
	chunks, err := log.Unwritten()
	if err != nil {
		t.Fatal(err)
	}
	list := corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"}}
	for _, c := range chunks {
		list.Items = append(list.Items, *c.ConfigMap())
	}
	text, err := yaml.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "log.yaml")
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// compares runs the command and returns what it prints.
func compares(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), append([]string{"compare"}, args...), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestCompare: the fixture as people, programs and browsers get it.
func TestCompare(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	all := []string{"--log", shadowLog(t), "--events", fixture + "events.yaml", "--events", fixture + "status.yaml", "--activities", fixture + "activities.json"}
	section.HoldFile(t, fixture+"table.txt", compares(t, append(all, "--html", page)...))
	section.HoldFile(t, fixture+"comparison.json", compares(t, append(all, "-o", "json")...))
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if got := compares(t, append(all, "-o", "html")...); got != string(html) {
		t.Error("-o html and --html are two pages")
	}
	if _, text, err := harmless.Read(string(html)); err != nil || !strings.Contains(text, "First divergence") {
		t.Errorf("the page: %v", err)
	}
	// Without a log nothing is claimed of Windlass.
	section.HoldFile(t, fixture+"world.txt", compares(t, all[2:]...))
}

// TestCompareReadsTheCluster: what stands in the cluster says the same as the files that kubectl makes
// of it.
func TestCompareReadsTheCluster(t *testing.T) {
	var files readings
	if err := files.readFiles([]string{shadowLog(t), fixture + "events.yaml", fixture + "status.yaml"}, "kube-system"); err != nil {
		t.Fatal(err)
	}
	var objects []runtime.Object
	for _, c := range files.chunks {
		object := c.ConfigMap()
		object.Namespace = "ours"
		objects = append(objects, object)
	}
	for name, into := range map[string]runtime.Object{"events.yaml": &corev1.EventList{}, "status.yaml": &corev1.ConfigMap{}} {
		text, err := os.ReadFile(fixture + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, into)
	}
	var live readings
	if err := live.read(t.Context(), fake.NewClientset(objects...), "ours", "kube-system"); err != nil {
		t.Fatal(err)
	}
	of := func(r readings) string {
		text, err := json.Marshal(compare.Of(compare.Input{Log: record.Read(r.chunks), Direct: r.direct}))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if diff := cmp.Diff(of(files), of(live)); diff != "" || len(live.chunks) != 1 || len(live.direct) < 10 {
		t.Errorf("%d chunks, %d records (-files +cluster):\n%s", len(live.chunks), len(live.direct), diff)
	}
	client := fake.NewClientset()
	client.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("events"), "", nil)
	})
	if err := new(readings).read(t.Context(), client, "ours", "kube-system"); err == nil || !strings.Contains(err.Error(), "listing Events of Cluster Autoscaler") {
		t.Errorf("without the right to list Events: %v", err)
	}
}

// TestCompareReadsEnoughEvents: of Events without end some are read, what is believed before all others, and
// the comparison says so.
func TestCompareReadsEnoughEvents(t *testing.T) {
	client := fake.NewClientset()
	var asked []string
	client.PrependReactor("list", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
		asked = append(asked, a.GetNamespace())
		list := &corev1.EventList{Items: make([]corev1.Event, 500)}
		if a.GetNamespace() == metav1.NamespaceAll {
			list.Continue = "more"
		}
		return true, list, nil
	})
	var r readings
	if err := r.read(t.Context(), client, "ours", "kube-system"); err != nil {
		t.Fatal(err)
	}
	got := compare.Of(compare.Input{Missing: r.missing}).Missing
	if want := "Events of all namespaces beyond the first 50000"; !slices.Contains(got, want) || len(asked) < 3 || asked[0] != metav1.NamespaceDefault || asked[1] != "kube-system" {
		t.Errorf("missing %q, want %q; asked for %q", got, want, asked[:min(3, len(asked))])
	}
}

// TestCompareReadsTheirStatus: of the config maps with a status, that which a Cluster Autoscaler has
// written last.
func TestCompareReadsTheirStatus(t *testing.T) {
	const text, other = "time: 2026-03-02 12:00:00 +0000 UTC\nnodeGroups: [{name: web}]", "2026-03-02 11:00:00 +0000 UTC"
	for _, c := range []struct {
		name        string
		annotations map[string]string
		read        bool
	}{
		{contract.ConfigMapClusterAutoscalerStatus, nil, true},
		{"another-name", map[string]string{contract.AnnotationStatusWritten: other, contract.AnnotationLastUpdated: "2026-03-02 12:00:00 +0000 UTC"}, true},
		{contract.ConfigMapClusterAutoscalerStatus, map[string]string{contract.AnnotationStatusWritten: other, contract.AnnotationLastUpdated: other}, false},
		{contract.ConfigMapStatus, nil, false},
	} {
		var r readings
		r.configMap(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.name, Annotations: c.annotations}, Data: map[string]string{contract.ClusterAutoscalerStatusKey: text}})
		if len(r.direct) > 0 != c.read {
			t.Errorf("%s, %v: %d records", c.name, c.annotations, len(r.direct))
		}
	}
}

// TestCompareSpan: a part of the time, by its ends or by its length.
func TestCompareSpan(t *testing.T) {
	log := shadowLog(t)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"Mon 2026-03-02 09:00:00 to Mon 2026-03-02 10:00:00", []string{"--from=2026-03-02T09:00:00Z", "--to=2026-03-02T10:00:00Z"}},
		{"Mon 2026-03-02 09:00:00 to Mon 2026-03-02 10:00:00", []string{"--since=1h", "--to=2026-03-02T10:00:00Z"}},
		{"Mon 2026-03-02 11:00:00 to Mon 2026-03-02 12:00:00", []string{"--since=1h"}},
		{"Mon 2026-03-02 00:00:00 to Mon 2026-03-02 12:00:00", []string{"--from=2026-03-02"}},
	} {
		got := compares(t, append([]string{"--log", log}, c.args...)...)
		if line := strings.Split(got, "\n")[1]; !strings.HasPrefix(line, c.want) {
			t.Errorf("%s: %s, want %s", c.args, line, c.want)
		}
	}
}

// TestCompareRefuses: bad input gets an error that names the culprit and the remedy.
func TestCompareRefuses(t *testing.T) {
	write := func(text string) string {
		name := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--output=yaml: want table, json or html", []string{"-o=yaml"}},
		{"--since=soon: want a time such as 7d or 12h", []string{"--since=soon"}},
		{"--since and --from are two beginnings", []string{"--since=1h", "--from=2026-03-02"}},
		{"--from=noon: want a moment as 2026-01-31", []string{"--from=noon"}},
		{"--to=2026-03-01 is before --from=2026-03-02", []string{"--from=2026-03-02", "--to=2026-03-01"}},
		{"--scale-up-window=0s: want a time such as 5m", []string{"--scale-up-window=0s"}},
		{"no such file", []string{"--log=/nowhere"}},
		{"want config maps or Events, as kubectl get -o yaml prints them", []string{"--events", write("kind: Pod\n")}},
		{"want config maps or Events", []string{"--events", write("no yaml at all")}},
		{"item 1: ", []string{"--events", write("kind: List\nitems: [{kind: Event}, {kind: Pod}]\n")}},
		{"want what aws autoscaling describe-scaling-activities prints", []string{"--activities", write("<html>")}},
	} {
		err := run(t.Context(), append([]string{"compare"}, c.args...), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.args, err, c.want)
		}
	}
}

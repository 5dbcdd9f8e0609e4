package prometheus

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"pgregory.net/rapid"

	"windlass.dev/windlass/manifests/monitoring"
	"windlass.dev/windlass/scaler/simulate/trace"
)

// scraped is how many seconds scrapes are apart.
const scraped = 30

// begin is the moment 0 of the stories.
var begin = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// told is a pod as kube-state-metrics shows it. Moments are seconds since begin; finished is 0
// for pods that run until they are deleted, deleted 0 for those that stay.
type told struct {
	namespace, name, uid, kind, owner string
	milli, memory                     float64
	created, finished, deleted        int64
	// restarted is when a container of it ended that was started again.
	restarted int64
}

// shown are the series of pods until some seconds after begin. Labels go on top of them.
func shown(pods []told, until int64, more ...string) monitoring.Memory {
	all := map[string]*promql.Series{}
	for _, p := range pods {
		who := append([]string{"namespace", p.namespace, "pod", p.name, "uid", p.uid}, more...)
		add := func(name string, value func(at int64) float64, pairs ...string) {
			metric := labels.FromStrings(append(append(pairs, who...), labels.MetricName, name)...)
			s := all[metric.String()]
			if s == nil {
				s = &promql.Series{Metric: metric}
				all[metric.String()] = s
			}
			for at := int64(7); at <= until; at += scraped {
				if at < p.created || p.deleted != 0 && at >= p.deleted || value(at) < 0 {
					continue
				}
				s.Floats = append(s.Floats, promql.FPoint{T: (begin.Unix() + at) * 1000, F: value(at)})
			}
		}
		always := func(value float64) func(int64) float64 { return func(int64) float64 { return value } }
		finished := func(at int64) bool { return p.finished != 0 && at >= p.finished }
		add(seriesCreated, always(float64(begin.Unix()+p.created)))
		add(seriesCompletion, func(at int64) float64 {
			switch {
			case finished(at):
				return float64(begin.Unix() + p.finished)
			case p.restarted != 0 && at >= p.restarted:
				return float64(begin.Unix() + p.restarted)
			}
			return -1 // it is not there
		})
		for _, phase := range []string{"Pending", "Running", "Succeeded", "Failed", "Unknown"} {
			add(seriesPhase, func(at int64) float64 {
				if phase == "Running" && !finished(at) || phase == "Succeeded" && finished(at) {
					return 1
				}
				return 0
			}, "phase", phase)
		}
		add(seriesOwner, always(1), "owner_kind", p.kind, "owner_name", p.owner, "owner_is_controller", strconv.FormatBool(p.kind != ""))
		add(seriesRequests, always(p.milli/1000-0.1), "container", "main", "resource", "cpu", "unit", "core", "node", "n1")
		add(seriesRequests, always(0.1), "container", "side", "resource", "cpu", "unit", "core", "node", "n1")
		add(seriesRequests, always(p.memory), "container", "main", "resource", "memory", "unit", "byte", "node", "n1")
		add(seriesRequests, always(1), "container", "main", "resource", "pods", "unit", "integer", "node", "n1")
	}
	out := monitoring.Memory{}
	for name, s := range all {
		out[name] = promql.NewStorageSeries(*s)
	}
	return out
}

// server speaks the API of Prometheus, with its own engine, and counts the questions by path.
type server struct {
	*httptest.Server
	data storage.Queryable
	// first answers instead where it is not nil and returns true.
	first func(http.ResponseWriter, *http.Request) bool
	asked map[string]int
	ends  []string
}

func serve(t interface{ Cleanup(func()) }, data storage.Queryable) *server {
	s := &server{data: data, asked: map[string]int{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked[r.URL.Path]++
	if s.first != nil && s.first(w, r) {
		return
	}
	moment := func(name string) time.Time {
		seconds, _ := strconv.ParseFloat(r.FormValue(name), 64)
		return time.UnixMilli(int64(seconds * 1000))
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 5e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})
	var query promql.Query
	var err error
	switch r.URL.Path {
	case "/api/v1/query_range":
		step, _ := strconv.ParseFloat(r.FormValue("step"), 64)
		s.ends = append(s.ends, r.FormValue("end"))
		query, err = engine.NewRangeQuery(r.Context(), s.data, nil, r.FormValue("query"), moment("start"), moment("end"), time.Duration(step)*time.Second)
	case "/api/v1/query":
		query, err = engine.NewInstantQuery(r.Context(), s.data, nil, r.FormValue("query"), moment("time"))
	default:
		http.NotFound(w, r)
		return
	}
	answer := func(status int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
	if err != nil {
		answer(http.StatusBadRequest, map[string]any{"status": "error", "errorType": "bad_data", "error": err.Error()})
		return
	}
	defer query.Close()
	result := query.Exec(r.Context())
	if result.Err != nil {
		answer(http.StatusUnprocessableEntity, map[string]any{"status": "error", "errorType": "execution", "error": result.Err.Error()})
		return
	}
	var value any = result.Value
	if result.Value.Type() == parser.ValueTypeMatrix && len(result.Value.(promql.Matrix)) == 0 {
		value = []string{}
	}
	answer(http.StatusOK, map[string]any{"status": "success", "data": map[string]any{"resultType": result.Value.Type(), "result": value}})
}

// drawn are the pods of a window: owner, requests, from, to.
func drawn(t trace.Trace) []string {
	var lines []string
	for _, p := range t.Pods {
		w := t.Workloads[p.Workload]
		requests := w.Spec.Containers[0].Resources.Requests
		ends := fmt.Sprint(p.Ends)
		if p.Ends == trace.Never {
			ends = "never"
		}
		lines = append(lines, fmt.Sprintf("%s/%s/%s %s %s %d-%s", w.Namespace, w.Kind, w.Name, requests.Cpu(), requests.Memory(), p.Arrive, ends))
	}
	slices.Sort(lines)
	return lines
}

func read(t *testing.T, s Source, until time.Duration) (trace.Trace, error) {
	t.Helper()
	h, err := Read(t.Context(), s, begin, begin.Add(until))
	if err != nil {
		return trace.Trace{}, err
	}
	return h.Trace("", trace.Window{Length: until, Slice: trace.Slice{Divide: 1}}, nil)
}

// story has what happens to pods in five hours.
var story = []told{
	{"shop", "web-5d9c-aaaaa", "u1", "ReplicaSet", "web-5d9c", 500, 1 << 30, -5000, 0, 0, 6000},
	{"shop", "web-5d9c-bbbbb", "u2", "ReplicaSet", "web-5d9c", 500, 1 << 30, 100, 0, 10000, 0},
	{"shop", "db-0", "u3", "StatefulSet", "db", 1000, 2 << 30, 0, 0, 3600, 0},
	{"shop", "db-0", "u4", "StatefulSet", "db", 1000, 4 << 30, 3605, 0, 0, 0}, // made again, and larger
	{"ci", "build-1-x", "u5", "Job", "build-1", 2000, 1 << 30, 4000, 4321, 0, 0},
	{"ci", "build-2-x", "u6", "Job", "build-2", 2000, 1 << 30, 8000, 8015, 9000, 0}, // between two scrapes
	{"ci", "lone", "u7", "", "", 250, 1 << 20, 200, 0, 300, 0},
	{"ci", "old", "u8", "Job", "old", 250, 1 << 20, -9000, -8000, 0, 0}, // over before
	{"kube-system", "proxy-x", "u9", "DaemonSet", "proxy", 100, 1 << 20, 0, 0, 0, 0},
	{"kube-system", "etcd-n1", "u10", "Node", "n1", 100, 1 << 20, 0, 0, 0, 0},
}

// TestStory: parts of two hours make one history. Ends of Jobs are known to the second, those of
// deleted pods to the minute.
func TestStory(t *testing.T) {
	s := serve(t, shown(story, 5*3600))
	got, err := read(t, Source{URL: s.URL}, 5*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"ci//lone 250m 1Mi 200-300",
		"ci/Job/build-1 2 1Gi 4000-4321",
		"ci/Job/build-2 2 1Gi 8000-8015",
		"shop/ReplicaSet/web-5d9c 500m 1Gi 0-never",
		"shop/ReplicaSet/web-5d9c 500m 1Gi 100-10020",
		"shop/StatefulSet/db 1 2Gi 0-3600",
		"shop/StatefulSet/db 1 4Gi 3605-never",
	}
	if diff := gocmp.Diff(want, drawn(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !got.Start.Equal(begin) || got.Seconds != 5*3600 {
		t.Errorf("it starts at %v and lasts %d s", got.Start, got.Seconds)
	}
	at := func(hours int64) string { return fmt.Sprint(begin.Unix() + hours*3600) }
	if diff := gocmp.Diff([]string{at(2), at(4), at(5)}, s.ends); diff != "" || s.asked["/api/v1/query"] != 12 {
		t.Errorf("questions %v, ends of parts (-want +got):\n%s", s.asked, diff)
	}
}

// TestOtherLabels: without uid a pod that is made again is another all the same; labels that
// stand below exported_ count; replicas of kube-state-metrics serve a pod several times; and
// another cluster's pods are left out.
func TestOtherLabels(t *testing.T) {
	var bare, other []told
	for _, p := range story[2:5] {
		p.uid = ""
		bare = append(bare, p)
		p.name, p.owner = "other-"+p.name, "other-"+p.owner
		other = append(other, p)
	}
	data := monitoring.Memory{}
	for _, part := range []monitoring.Memory{shown(bare, 2*3600, "instance", "a", "cluster", "prod"), shown(bare, 2*3600, "instance", "b", "cluster", "prod"), shown(other, 2*3600, "cluster", "test")} {
		for name, series := range part {
			data[name] = series
		}
	}
	got, err := read(t, Source{URL: serve(t, data).URL, Match: `cluster="prod"`}, 2*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ci/Job/build-1 2 1Gi 4000-4321", "shop/StatefulSet/db 1 4Gi 0-3600", "shop/StatefulSet/db 1 4Gi 3605-never"}
	if diff := gocmp.Diff(want, drawn(got)); diff != "" {
		t.Errorf("without uid, two replicas (-want +got):\n%s", diff)
	}

	renamed := monitoring.Memory{}
	for name, series := range shown(story[:1], 3600) {
		var s promql.Series
		b := labels.NewBuilder(series.Labels())
		for _, label := range []string{"namespace", "pod", "container", "uid"} {
			if value := series.Labels().Get(label); value != "" {
				b.Set("exported_"+label, value).Set(label, "kube-state-metrics")
			}
		}
		s.Metric = b.Del("uid", "exported_uid").Labels()
		for points := series.Iterator(nil); points.Next() != 0; {
			at, value := points.At()
			s.Floats = append(s.Floats, promql.FPoint{T: at, F: value})
		}
		renamed[name] = promql.NewStorageSeries(s)
	}
	got, err = read(t, Source{URL: serve(t, renamed).URL}, time.Hour)
	if diff := gocmp.Diff([]string{"shop/ReplicaSet/web-5d9c 500m 1Gi 0-never"}, drawn(got)); err != nil || diff != "" {
		t.Errorf("exported labels: %v (-want +got):\n%s", err, diff)
	}
}

// TestRetention: a time that Prometheus has nothing of is no time without pods.
func TestRetention(t *testing.T) {
	s := serve(t, shown(story[:1], 3600))
	h, err := Read(t.Context(), Source{URL: s.URL}, begin.Add(-24*time.Hour), begin.Add(2*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.Trace("pods", trace.Window{Length: 48 * time.Hour, Slice: trace.Slice{Divide: 1}}, nil)
	if err != nil || !got.Start.Equal(begin) || got.Seconds != 3600 || !strings.Contains(got.Name, "2026-03-02 10:00 to 2026-03-02 11:00") {
		t.Errorf("%q starts at %v and lasts %d s, %v", got.Name, got.Start, got.Seconds, err)
	}
	if diff := gocmp.Diff([]string{"shop/ReplicaSet/web-5d9c 500m 1Gi 0-never"}, drawn(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLives: whatever pods there were, their history has each of them, its creation to the
// second and its end to the minute, or a scrape more.
func TestLives(t *testing.T) {
	const seconds = 9000
	rapid.Check(t, func(t *rapid.T) {
		var pods []told
		for i := range rapid.IntRange(1, 3).Draw(t, "names") {
			at := int64(rapid.IntRange(-4000, seconds).Draw(t, "first"))
			uids := rapid.Bool().Draw(t, "uids")
			for n := range rapid.IntRange(1, 4).Draw(t, "times") {
				p := told{namespace: "n", name: fmt.Sprintf("pod-%d", i), kind: "StatefulSet", owner: fmt.Sprintf("set-%d", i), milli: 500, memory: 1 << 30, created: at}
				if uids {
					p.uid = fmt.Sprintf("u-%d-%d", i, n)
				}
				p.deleted = at + int64(rapid.IntRange(200, 9000).Draw(t, "lasts"))
				if p.deleted == 0 { // which would be never
					p.deleted++
				}
				pods = append(pods, p)
				at = p.deleted + int64(rapid.IntRange(1, 3000).Draw(t, "after"))
			}
		}
		// One that is always there has scrapes cover the whole time.
		pods = append(pods, told{namespace: "n", name: "always", uid: "u", kind: "ReplicaSet", owner: "rs", milli: 500, memory: 1 << 30, created: -100})
		recorder := &cleanups{}
		defer recorder.run()
		h, err := Read(t.Context(), Source{URL: serve(recorder, shown(pods, seconds)).URL}, begin, begin.Add(seconds*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		got, err := h.Trace("", trace.Window{Length: time.Hour * 24, Slice: trace.Slice{Divide: 1}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]int64{}
		for _, p := range got.Pods {
			found[fmt.Sprintf("%s at %d", got.Workloads[p.Workload].Name, p.Arrive)] = p.Ends
		}
		for _, p := range pods {
			if p.deleted < 0 {
				continue // over before
			}
			key := fmt.Sprintf("%s at %d", p.owner, max(0, p.created))
			ends, has := found[key]
			delete(found, key)
			switch {
			case p.deleted != 0 && p.deleted <= scraped+60 || p.created > seconds-scraped:
				// It may be over before the first scrape, or begin after the last.
			case !has:
				t.Fatalf("%s is missing, which ends at %d; there are %v", key, p.deleted, found)
			case p.deleted == 0 || p.deleted > seconds:
				if ends != trace.Never {
					t.Fatalf("%s ends at %d, want never", key, ends)
				}
			case ends == trace.Never && p.deleted > seconds-400: // not seen for a little while
			case ends < p.deleted-scraped-60 || ends > p.deleted+60:
				t.Fatalf("%s ends at %d, want %d", key, ends, p.deleted)
			}
		}
		if len(found) > 0 {
			t.Fatalf("there was never any %v", found)
		}
	})
}

// cleanups are those of one check of a law.
type cleanups struct{ all []func() }

func (c *cleanups) Cleanup(f func()) { c.all = append(c.all, f) }

func (c *cleanups) run() {
	for _, f := range c.all {
		f()
	}
}

// TestTroubles: each has an error that names what is wrong and what to do.
func TestTroubles(t *testing.T) {
	without := func(series string) storage.Queryable {
		data := shown(story, 3600)
		for name, s := range data {
			if s.Labels().Get(labels.MetricName) == series {
				delete(data, name)
			}
		}
		return data
	}
	says := func(status int, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
			return true
		}
	}
	folder := t.TempDir()
	empty, token := filepath.Join(folder, "empty"), filepath.Join(folder, "token")
	if err := errors.Join(os.WriteFile(empty, []byte("\n"), 0o600), os.WriteFile(token, []byte("secret-token"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		data  storage.Queryable
		first func(http.ResponseWriter, *http.Request) bool
		of    Source
		want  []string
	}{
		{name: "no kube-state-metrics", data: monitoring.Memory{}, want: []string{"no series kube_pod_created between 2026-03-02T10:00:00Z", "is kube-state-metrics scraped"}},
		{name: "matchers that match nothing", data: shown(story, 3600), of: Source{Match: `cluster="x"`}, want: []string{"no series kube_pod_created", `{cluster="x"}`}},
		{name: "no phases", data: without(seriesPhase), want: []string{"no series kube_pod_status_phase", "--metric-allowlist"}},
		{name: "no owners", data: without(seriesOwner), want: []string{"no series kube_pod_owner"}},
		{name: "no requests", data: without(seriesRequests), want: []string{"no series kube_pod_container_resource_requests"}},
		{name: "malformed matchers", data: shown(nil, 0), of: Source{Match: "cluster=prod"}, want: []string{"asking for kube_pod_status_phase", "--prometheus-match"}},
		{name: "503", first: says(503, "upstream\n connect error"), want: []string{"reading the pods of 2026-03-02T10:00:00Z", "503", "upstream connect error", "is it up"}},
		{name: "401", first: says(401, ""), want: []string{"401", "--prometheus-token-file"}},
		{name: "404", first: says(404, "page not found"), want: []string{"404", "is this the URL of a Prometheus"}},
		{name: "too many samples", first: says(422, `{"status":"error","errorType":"execution","error":"query processing would load too many samples into memory in query execution"}`), want: []string{"too many samples", "--query.max-samples"}},
		{name: "a page", first: says(200, "<html>log in</html>"), want: []string{"asking for kube_pod_status_phase", "invalid character"}},
		{name: "half an answer", first: says(200, `{"status":"success","warnings":["a store is away"],"data":{"resultType":"matrix","result":[]}}`), want: []string{"may lack something: a store is away"}},
		{name: "another type", first: says(200, `{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}`), want: []string{"the answer is a scalar, want a matrix"}},
		{name: "no data", first: says(200, `{"status":"success"}`), want: []string{"the answer has no data, want a matrix"}},
		{name: "a failure that is none", first: says(200, `{"status":"error","errorType":"timeout","error":"query timed out"}`), want: []string{"query timed out", "is it up"}},
		{name: "points that are none", first: says(200, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"2"],[3,"four"]]}]}}`), want: []string{`the answer has [3,"four"], want a moment with a value`}},
		{name: "an answer that ends", first: says(200, `{"status":"success","data":{"resultType":"matrix","result":[`), want: []string{"asking for kube_pod_status_phase", "EOF"}},
		{name: "a huge series", first: says(200, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"pod":"`+strings.Repeat("x", 3<<20)+`"}}]}}`), want: []string{"a series of the answer has more than 1 MiB"}},
		{name: "nobody there", of: Source{URL: "http://secret-user:secret-password@127.0.0.1:1"}, want: []string{"from http://127.0.0.1:1: ", "connection refused"}},
		{name: "a huge answer", data: shown(story, 3600), of: Source{most: 1000}, want: []string{"the answer has more than", "--prometheus-match"}},
		{name: "a redirect", first: func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "http://127.0.0.2/login?state=secret", http.StatusFound)
			return true
		}, want: []string{"redirects to http://127.0.0.2/login"}},
		{name: "no token", of: Source{TokenFile: empty}, want: []string{"--prometheus-token-file", "want one bearer token"}},
		{name: "no file", of: Source{TokenFile: filepath.Join(folder, "none")}, want: []string{"--prometheus-token-file", "no such file"}},
		{name: "no URL", of: Source{URL: "user:secret@host"}, want: []string{"--prometheus: want a URL such as"}},
		{name: "a URL with more", of: Source{URL: "http://127.0.0.1:1?token=secret"}, want: []string{"--prometheus: want a URL such as"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.data)
			s.first = c.first
			if c.of.URL == "" {
				c.of.URL = strings.Replace(s.URL, "//", "//secret-user:secret-password@", 1)
			}
			c.of.TokenFile = cmp.Or(c.of.TokenFile, token)
			c.of.Header = http.Header{"X-Key": {"secret-key"}}
			_, err := read(t, c.of, time.Hour)
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q", err, want)
				}
			}
			if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), base64.StdEncoding.EncodeToString([]byte("secret-user:secret-password")))) {
				t.Errorf("it shows a secret: %v", err)
			}
		})
	}
}

// TestCredentials: the token and headers go with each request.
func TestCredentials(t *testing.T) {
	s := serve(t, shown(story, 3600))
	s.first = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer opaque" && r.Header.Get("X-Scope-Orgid") == "prod" {
			return false
		}
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("opaque\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := read(t, Source{URL: s.URL + "/", TokenFile: token, Header: http.Header{"X-Scope-Orgid": {"prod"}}}, time.Hour)
	if err != nil || len(got.Pods) == 0 {
		t.Errorf("%d pods, %v", len(got.Pods), err)
	}
}

// TestAnswersAreStreams: an answer takes no more memory than a few of its series.
func TestAnswersAreStreams(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const most = 24 << 20
	var before, after uint64
	s := serve(t, shown(story, 3600))
	s.first = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/query_range" {
			return false
		}
		before = heap()
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"matrix","result":[`))
		series := fmt.Sprintf(`{"metric":{"namespace":"shop","pod":"web","uid":"u"},"values":[%s]},`, strings.Repeat(fmt.Sprintf(`[%d,"%d"],`, begin.Unix()+60, begin.Unix()), 119)+fmt.Sprintf(`[%d,"%d"]`, begin.Unix()+120, begin.Unix()))
		for sent := 0; sent < most; sent += len(series) {
			if _, err := w.Write([]byte(series)); err != nil {
				t.Error(err)
			}
		}
		after = heap()
		_, _ = w.Write([]byte(strings.TrimSuffix(series, ",") + `]}}`))
		return true
	}
	if _, err := read(t, Source{URL: s.URL}, time.Hour); err != nil {
		t.Fatal(err)
	}
	if after > before+most/4 {
		t.Errorf("an answer of %d MiB takes %d MiB", most>>20, (after-before)>>20)
	}
}

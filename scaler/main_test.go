package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/pkg/kube/lease"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

func TestWrongArguments(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(broken, []byte("groups: [{nmae: web}]\nnow: 2026-08-01T12:00:00Z\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{[]string{"run", "--foo"}, []string{"unknown flag: --foo", "windlass-scaler run --help"}},
		{[]string{"walk"}, []string{`unknown command "walk"`}},
		{[]string{"run", "now"}, []string{`unknown command "now"`}},
		{[]string{"run"}, []string{"no groups", "--nodes=min:max:name"}},
		{[]string{"run", "--nodes=web"}, []string{"--nodes=web", "min:max:name"}},
		{[]string{"run", "--nodes=0:5:web", "--expander=roulette", "--scale-down-unneeded-time=-1s"},
			[]string{`--expander names "roulette"`, "--scale-down-unneeded-time is -1s"}},
		{[]string{"run", "--nodes=0:5:web", "--scale-down-unneeded-time=soon"}, []string{"scale-down-unneeded-time", `"soon"`}},
		{[]string{"run", "--nodes=0:5:web", "--headroom=pods=1,cpu=1e-999999999"}, []string{"--headroom", "cpu=1e-999999999: want a quantity"}},
		{[]string{"run", "--nodes=0:5:web", "--log-level=loud"}, []string{`log level "loud"`}},
		{[]string{"run", "--nodes=0:5:web", "--namespace="}, []string{"--namespace is empty"}},
		{[]string{"run", "--nodes=0:5:web", "--kubeconfig=/no/such/file"}, []string{"/no/such/file"}},
		{[]string{"plan", "--output=xml"}, []string{"--output=xml", "table"}},
		{[]string{"plan", "-f", "/no/such/file"}, []string{"/no/such/file"}},
		{[]string{"plan", "-f", broken}, []string{broken, "nmae"}},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			err := run(t.Context(), tc.args, io.Discard, io.Discard)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not contain %q", err, want)
				}
			}
		})
	}
}

// What people run finds its cluster as kubectl does; what acts is told which.
func TestKubeconfigOfUser(t *testing.T) {
	file := written(t, "of-user", "{")
	t.Setenv("KUBECONFIG", file)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if err := run(t.Context(), []string{"plan", "--nodes=0:5:web"}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("plan: %v, want one that names %s", err, file)
	}
	if err := run(t.Context(), []string{"run", "--nodes=0:5:web", "--metrics-address="}, io.Discard, io.Discard); !errors.Is(err, kube.ErrNoCluster) {
		t.Errorf("run: %v, want %v", err, kube.ErrNoCluster)
	}
}

// A program that cannot sign its calls says so and ends.
func TestNoCredentials(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
	} {
		t.Setenv(name, value)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	err := run(ctx, []string{"run", "--nodes=0:5:web", "--metrics-address=", "--kubeconfig=" + kubeconfig(t, "https://127.0.0.1:1")}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "no valid AWS credentials") {
		t.Errorf("error %v", err)
	}
}

func kubeconfig(t testing.TB, server string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],` +
		`"clusters":[{"name":"c","cluster":{"server":"` + server + `"}}],"users":[{"name":"u","user":{"token":"t"}}]}`
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Cluster Autoscaler's spelling of flags is understood.
func TestFlagsOfClusterAutoscaler(t *testing.T) {
	var s settings
	cmd := runCommand(io.Discard)
	if err := cmd.ParseFlags([]string{"--scale_down_unneeded_time=3m", "--address=127.0.0.1:9"}); err != nil {
		t.Error(err)
	}
	flags := cmd.Flags()
	if got := flags.Lookup("scale-down-unneeded-time").Value.String(); got != "3m0s" {
		t.Errorf("unneeded time %s of %+v", got, s)
	}
	if got := flags.Lookup("metrics-address").Value.String(); got != "127.0.0.1:9" {
		t.Errorf("address %s", got)
	}
}

// waitingWorld has a pod that gets a node, one that no node group fits, a group at its
// maximum and a node of no group.
func waitingWorld(t *testing.T) string {
	t.Helper()
	text := `
now: 2026-08-01T12:00:00Z
faults: ["it may not list resourceslices: pods with devices wait"]
groups:
- name: web
  min: 0
  max: 5
  desired: 0
  zones: [eu-west-1a]
  shapes:
  - {zone: eu-west-1a, instanceType: m5.large, allocatable: {cpu: 1930m, memory: 6903Mi, pods: "29"}}
- name: gpu
  min: 0
  max: 0
  desired: 0
  zones: [eu-west-1a]
  shapes:
  - {zone: eu-west-1a, instanceType: p4d.24xlarge, allocatable: {cpu: 95690m, memory: 1100Gi, pods: "737"}, taints: [{key: dedicated, value: gpu, effect: NoSchedule}]}
nodes:
- {name: old, uid: n1, ready: true, allocatable: {cpu: 500m, memory: 1Gi, pods: "10"}}
pods:
- {namespace: default, name: small, uid: u1, scheduling: Unschedulable, phase: Pending, spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}
- {namespace: default, name: big, uid: u2, scheduling: Unschedulable, phase: Pending, spec: {containers: [{name: c, resources: {requests: {cpu: "64"}}}]}}
`
	name := filepath.Join(t.TempDir(), "snapshot.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// The plan of a saved snapshot is the same on every machine, in every form, and
// a snapshot that is saved again gives it again.
func TestPlanOfASnapshot(t *testing.T) {
	file := waitingWorld(t)
	saved := filepath.Join(t.TempDir(), "again.yaml")
	var table, again, asJSON, asYAML bytes.Buffer
	for _, call := range []struct {
		out  *bytes.Buffer
		args []string
	}{
		{&table, []string{"plan", "-f", file, "--snapshot-out", saved}},
		{&again, []string{"plan", "-f", saved}},
		{&asJSON, []string{"plan", "-f", file, "-o", "json"}},
		{&asYAML, []string{"plan", "-f", file, "-o", "yaml"}},
	} {
		if err := run(t.Context(), call.args, call.out, io.Discard); err != nil {
			t.Fatalf("%v: %v", call.args, err)
		}
	}
	const want = `fault: it may not list resourceslices: pods with devices wait
grow web 0→1 for default/small

GROUP  REASON       WHY
gpu    HookMissing  0 desired of 0 to 0
                    no hook windlass holds its terminations, so a drain has only 1m0s: add one
web    ScalingUp    it grows 0→1
                    no hook windlass holds its terminations, so a drain has only 1m0s: add one

POD            REASON           WHY
default/big    NoNodeGroupFits  gpu: taint dedicated=gpu:NoSchedule not tolerated
                                web: needs 64 cpu, m5.large has 1.93
default/small  TriggersScaleUp  group web grows 0→1 for it

NODE  REASON         WHY
old   NotInAnyGroup  its instance is in no group of this scaler
`
	if diff := cmp.Diff(want, table.String()); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
	if table.String() != again.String() {
		t.Errorf("the saved snapshot gives another plan:\n%s\n%s", table.String(), again.String())
	}
	var fromJSON, fromYAML map[string]any
	if err := json.Unmarshal(asJSON.Bytes(), &fromJSON); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(asYAML.Bytes(), &fromYAML); err != nil {
		t.Fatal(err)
	}
	for form, p := range map[string]map[string]any{"json": fromJSON, "yaml": fromYAML} {
		actions, verdicts, faults := p["actions"].([]any), p["verdicts"].([]any), p["faults"].([]any)
		if len(actions) != 1 || actions[0].(map[string]any)["kind"] != "grow" || len(verdicts) != 5 || len(faults) != 1 {
			t.Errorf("%s: %v", form, p)
		}
	}
}

// Verdicts name every pod of the cluster. They have a listener of their own on 127.0.0.1, and
// neither a mesh's source addresses nor a web page's name of it is served.
func TestVerdictsAreServedToThisHostAlone(t *testing.T) {
	sc := newScaler(settings{}, fake.NewClientset(), nil, nil, awsCloud{&asg.Account{}}, newMetrics(), slog.New(slog.NewTextHandler(io.Discard, nil)))
	sc.tell(evaluation{snapshot: fleet.Snapshot{Now: time.Unix(1, 0)}, plan: plan.Plan{Verdicts: []*verdict.Verdict{{Of: verdict.OfPod, Name: "default/a"}}}})
	for _, c := range []struct {
		about, from, host string
		want              int
	}{
		{"kubectl port-forward", "127.0.0.1:9", "localhost:8086", http.StatusOK},
		{"by its address", "127.0.0.1:9", "127.0.0.1", http.StatusOK},
		{"Istio's sidecar", "127.0.0.6:9", "localhost:8086", http.StatusForbidden},
		{"another pod", "10.0.0.1:9", "localhost:8086", http.StatusForbidden},
		{"a web page that rebinds its name", "127.0.0.1:9", "evil.example:8086", http.StatusForbidden},
	} {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.RemoteAddr, request.Host = c.from, c.host
		response := httptest.NewRecorder()
		sc.verdictsHandler().ServeHTTP(response, request)
		if response.Code != c.want || strings.Contains(response.Body.String(), "default/a") != (c.want == http.StatusOK) {
			t.Errorf("%s: %d %s", c.about, response.Code, response.Body)
		}
	}
	for path, want := range map[string]int{"/metrics": http.StatusOK, "/livez": http.StatusOK, "/verdicts": http.StatusNotFound} {
		response := httptest.NewRecorder()
		sc.handler().ServeHTTP(response, httptest.NewRequest(http.MethodGet, path, nil))
		if response.Code != want {
			t.Errorf("%s: %d, want %d", path, response.Code, want)
		}
	}
}

// The listener is on loopback and nowhere else, and a port that is taken stops nothing.
func TestVerdictsListenOnLoopback(t *testing.T) {
	var log bytes.Buffer
	sc := newScaler(settings{}, fake.NewClientset(), nil, nil, awsCloud{&asg.Account{}}, newMetrics(), slog.New(slog.NewTextHandler(&log, nil)))
	if l := sc.listenForVerdicts(); l != nil {
		t.Fatalf("without a port it listens on %s", l.Addr())
	}
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := taken.Addr().(*net.TCPAddr).Port
	sc.settings.verdictsPort = uint16(port)
	if l := sc.listenForVerdicts(); l != nil || !strings.Contains(log.String(), "--verdicts-port") {
		t.Errorf("with a port that is taken: %v, %s", l, log.String())
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	l := sc.listenForVerdicts()
	if l == nil {
		t.Fatal(log.String())
	}
	defer l.Close()
	if got := l.Addr().(*net.TCPAddr); !got.IP.Equal(net.IPv4(127, 0, 0, 1)) || got.Port != port {
		t.Errorf("listens on %s", got)
	}
}

// An API server that is away is waited for, and health says so.
func TestAPIServerUnreachable(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
	} {
		t.Setenv(name, value)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	reader, logs := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(t.Context(), []string{"run", "--nodes=0:5:web", "--leader-elect=false", "--metrics-address=" + address,
			"--kubeconfig=" + kubeconfig(t, "http://127.0.0.1:1")}, io.Discard, logs)
		_ = logs.Close()
		ended <- err
	}()
	seen := awaitLine(t, reader, "persisted state not read", "connection refused")
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	response, err := http.Get("http://" + address + "/healthz")
	if err != nil {
		t.Fatalf("health: %v after\n%s", err, seen)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(body), "connection refused") {
		t.Errorf("health: %d %s %v", response.StatusCode, body, err)
	}
	select {
	case err := <-ended:
		t.Errorf("ended: %v", err)
	default:
	}
}

// While the API server answers nothing it is asked less and less often: every
// watch and our lease.
func TestAPIServerIsNotFlooded(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
	} {
		t.Setenv(name, value)
	}
	var mu sync.Mutex
	asked := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked[r.URL.Path+" "+r.URL.Query().Get("fieldSelector")]++ // each name is a watch of its own
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	const patience = 3 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := run(ctx, []string{"run", "--nodes=0:5:web", "--metrics-address=", "--kubeconfig=" + kubeconfig(t, server.URL)}, io.Discard, io.Discard); err != nil {
		t.Errorf("it ended by itself: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(asked) < 6 {
		t.Errorf("only %v was asked for", asked)
	}
	for path, times := range asked {
		// After 0.2, 0.4, 0.8, 1.6 s; twice that where a watch is tried and then a list.
		if times > 12 {
			t.Errorf("%s was asked for %d times in %s", path, times, patience)
		}
	}
}

// Each fault of a group is logged when it begins, and once that all are over;
// that there are no groups at all, too.
func TestTroublesAreToldOnce(t *testing.T) {
	var log bytes.Buffer
	tr := troubles{logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}))}
	with := func(faults ...string) []fleet.Group {
		return []fleet.Group{{Name: "web", Faults: faults}, {Name: "batch"}}
	}
	for _, groups := range [][]fleet.Group{nil, nil, with("a"), with("a"), with("a", "b"), with("b"), with(), with(), nil} {
		tr.tell(groups, "no tags")
	}
	want := `msg="no groups" err="no tags"
msg="group has a fault" group=web fault=a
msg="group has a fault" group=web fault=b
msg="group has no faults any more" group=web
msg="no groups" err="no tags"
`
	if diff := cmp.Diff(want, log.String()); diff != "" {
		t.Error(diff)
	}
}

// Where the tags find no group the status page says which tags.
func TestPageWithoutGroups(t *testing.T) {
	selection, err := asg.ParseSelection(nil, []string{"asg:tag=owner=me"})
	if err != nil {
		t.Fatal(err)
	}
	sc := newScaler(settings{selection: selection}, fake.NewClientset(), nil, nil, awsCloud{&asg.Account{Region: "eu-west-1"}}, newMetrics(), slog.New(slog.DiscardHandler))
	if got := sc.status(evaluation{}).Page.Trouble; !strings.Contains(got, "in eu-west-1") || !strings.Contains(got, "owner=me") {
		t.Errorf("trouble %q", got)
	}
	if got := sc.status(evaluation{snapshot: fleet.Snapshot{Groups: []fleet.Group{{Name: "web"}}}}).Page.Trouble; got != "" {
		t.Errorf("trouble %q though there is a group", got)
	}
}

// Cluster Autoscaler's status is written in its words, never beside a live one, and taken
// away where the process ends; who loses the lease leaves it to the next.
func TestCASStatus(t *testing.T) {
	here := settings{namespace: "us", writeCASStatus: true, casStatusName: contract.ConfigMapClusterAutoscalerStatus, policy: policy.DefaultPolicy()}
	web := fleet.Snapshot{Now: time.Unix(1, 0), Groups: []fleet.Group{{Name: "web"}}}
	for _, c := range []struct {
		name     string
		settings settings
		plan     plan.Plan
		end      error // nil where the process ends
		written  bool
		left     bool
	}{
		{"written", here, plan.Plan{}, nil, true, false},
		{"lease lost", here, plan.Plan{}, lease.ErrLost, true, true},
		{"other autoscaler", here, plan.Plan{Stopped: true}, nil, false, false},
		{"not wanted", settings{}, plan.Plan{}, nil, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				sc := newScaler(c.settings, client, nil, nil, awsCloud{&asg.Account{}}, newMetrics(), slog.New(slog.DiscardHandler))
				ctx, end := context.WithCancelCause(t.Context())
				defer end(nil)
				if sc.casBoard != nil {
					go sc.casBoard.Run(ctx)
				}
				sc.tell(evaluation{snapshot: web, plan: c.plan})
				sc.turned(nil)
				synctest.Wait()
				stands := func() bool {
					object, err := client.CoreV1().ConfigMaps("us").Get(t.Context(), contract.ConfigMapClusterAutoscalerStatus, metav1.GetOptions{})
					return err == nil && strings.Contains(object.Data["status"], "name: web")
				}
				if got := stands(); got != c.written {
					t.Errorf("written: %v", got)
				}
				end(c.end)
				if sc.casBoard != nil {
					sc.removeCASStatus(ctx)
				}
				if got := stands(); got != c.left {
					t.Errorf("left: %v", got)
				}
			})
		})
	}
}

// awaitLine reads logs until a line has all the words.
func awaitLine(t *testing.T, logs io.Reader, words ...string) string {
	t.Helper()
	var seen strings.Builder
	buffer := make([]byte, 4096)
	for {
		n, err := logs.Read(buffer)
		seen.Write(buffer[:n])
		for line := range strings.SplitSeq(seen.String(), "\n") {
			all := true
			for _, w := range words {
				all = all && strings.Contains(line, w)
			}
			if all {
				return seen.String()
			}
		}
		if err != nil {
			t.Fatalf("the log ended with %v:\n%s", err, seen.String())
		}
	}
}

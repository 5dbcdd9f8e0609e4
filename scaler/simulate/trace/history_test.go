package trace

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

const pods = `name,namespace,colour,owner,cpu,memory,created,ended
web-5d9c-a,shop,red,ReplicaSet/web-5d9c,500m+100m,1Gi,2026-03-01T00:00:00Z,
web-5d9c-b,shop,red,ReplicaSet/web-5d9c,0.6,1073741824,2026-03-02T12:00:00+02:00,2026-03-02T12:00:00Z
lone,shop,,,,,1772445600.9,1772445660
proxy-x,kube-system,,DaemonSet/proxy,100m,64Mi,2026-03-01T00:00:00Z,
etcd-n1,kube-system,,Node/n1,100m,64Mi,2026-03-01T00:00:00Z,
name,namespace,colour,owner,cpu,memory,created,ended
web-5d9c-a,shop,red,ReplicaSet/web-5d9c,600m,1Gi,2026-03-01T00:00:00Z,2026-03-02T11:00:00Z
db-0,shop,,StatefulSet/db,1,4Gi,2026-03-02T11:30:00Z,
`

func played(t *testing.T, text string, w Window, s *fleet.Snapshot) Trace {
	t.Helper()
	h, err := ReadPods(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	w.Divide = max(1, w.Divide)
	got, err := h.Trace("pods", w, s)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestPods: columns have any order, a pod that is told of twice is one, and one without an end
// stays. Pods of nodes are left out.
func TestPods(t *testing.T) {
	got := played(t, pods, Window{Length: 4 * time.Hour}, nil)
	want := []string{"web-5d9c 600m 1Gi 0-10800", "lone 0 0 7200-7260", "web-5d9c 600m 1Gi 7200-14400", "db 1 4Gi 12600-never"}
	if diff := cmp.Diff(want, drawn(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(got.Workloads) != 3 || got.Name != "pods, 2026-03-02 08:00 to 2026-03-02 12:00 UTC" || got.Seconds != 4*3600 {
		t.Errorf("%d workloads in %q, %d s", len(got.Workloads), got.Name, got.Seconds)
	}
	until := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	got = played(t, pods, Window{Length: time.Hour, Until: until, Slice: Slice{Divide: 2}}, nil)
	if diff := cmp.Diff([]string{"web-5d9c 300m 512Mi 0-10800"}, drawn(got)); diff != "" {
		t.Errorf("an hour, divided by 2 (-want +got):\n%s", diff)
	}
	got = played(t, pods, Window{Length: 48 * time.Hour}, nil)
	if got.Seconds != 36*3600 {
		t.Errorf("it lasts %d s, want from the first moment on", got.Seconds)
	}
}

// TestSeen: of pods that are recorded now and again, those that are missing later have ended,
// and nothing is known of the time before.
func TestSeen(t *testing.T) {
	text := `namespace,name,owner,cpu,memory,created,ended,seen
n,a,,1,1Gi,1000,,10000
n,b,,1,1Gi,2000,,10000
n,b,,1,1Gi,2000,,13600
n,c,,1,1Gi,12000,12500,13600
`
	want := []string{"b 1 1Gi 0-never", "c 1 1Gi 2000-2500"}
	if diff := cmp.Diff(want, drawn(played(t, text, Window{Length: day * time.Second}, nil))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBadPods(t *testing.T) {
	const head = "namespace,name,owner,cpu,memory,created,ended,seen\n"
	for text, want := range map[string]string{
		"":                           "reading the head",
		"namespace,name,owner,cpu\n": "there is no column memory",
		"namespace,name,name,owner,cpu,memory,created\n": "two columns name",
		head + "n,,,1,1Gi,1000,,":                        `line 2: namespace is "n" and name "": want both`,
		head + "n,a,web,1,1Gi,1000,,":                    `line 2: owner is "web": want a kind and a name`,
		head + "n,a,/web,1,1Gi,1000,,":                   `owner is "/web"`,
		head + "n,a,,many,1Gi,1000,,":                    `cpu is "many": want a quantity`,
		head + "n,a,,-1,1Gi,1000,,":                      `cpu is "-1": want 0 to 100k`,
		head + "n,a,,1+-1,1Gi,1000,,":                    `cpu is "1+-1": want 0`,
		head + "n,a,,1,1Ei,1000,,":                       `memory is "1Ei": want 0 to 1Pi`,
		head + "n,a,,1,1e999999999,1000,,":               `memory is "1e999999999"`,
		head + "n,a,,1e-999999999,1,1000,,":              `cpu is "1e-999999999"`,
		head + "n,a,,1,1Gi,,,":                           `created is "": want a moment`,
		head + "n,a,,1,1Gi,yesterday,,":                  `created is "yesterday": want a time as`,
		head + "n,a,,1,1Gi,1772445600000,,":              `created is "1772445600000": want`,
		head + "n,a,,1,1Gi,NaN,,":                        `created is "NaN"`,
		head + "n,a,,1,1Gi,-5,,":                         `created is "-5"`,
		head + "n,a,,1,1Gi,0001-01-01T00:00:00Z,,":       `created is "0001`,
		head + "n,a,,1,1Gi,1000,900,":                    `ended is "900", which is before created`,
		head + "n,a,,1,1Gi,1000,,soon":                   `seen is "soon"`,
		head + "n,a,,1,1Gi,1000,,\nn,b,,1,1Gi,soon,,\n":  "line 3: created",
		head + "n,a,,1,1Gi,1000\n":                       "wrong number of fields",
		head + "n,a,,x,y,z,,":                            `memory is "y"`,
	} {
		_, err := ReadPods(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	h, err := ReadPods(strings.NewReader(head))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Trace("", Window{Length: time.Hour, Slice: Slice{Divide: 1}}, nil); err == nil || !strings.Contains(err.Error(), "has no pods") {
		t.Errorf("a history without pods: %v", err)
	}
	if h, err = ReadPods(strings.NewReader(head + "n,a,,1,1Gi,1000,,2000\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Trace("", Window{Length: time.Hour, Slice: Slice{Divide: 1}}, nil); err == nil || !strings.Contains(err.Error(), "all records are of one moment, 1970-01-01 00:33") {
		t.Errorf("a history of one moment: %v", err)
	}
	if h, err = ReadPods(strings.NewReader("\ufeff" + pods)); err != nil {
		t.Errorf("a file of a spreadsheet: %v", err)
	}
	_, err = h.Trace("", Window{Length: time.Hour, Until: time.Unix(1000, 0), Slice: Slice{Divide: 1}}, nil)
	if err == nil || !strings.Contains(err.Error(), "no pod is known before 1970-01-01 00:16: the history is that of 2026-03-01 00:00 to 2026-03-02 12:00") {
		t.Errorf("a window before the history: %v", err)
	}
}

// TestHistoryLaw: in a window each pod that lives in it is there for just the time that it does.
func TestHistoryLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type span struct{ from, to int64 }
		var all []span
		var text strings.Builder
		text.WriteString("namespace,name,owner,cpu,memory,created,ended\n")
		for i := range rapid.IntRange(1, 20).Draw(t, "pods") {
			s := span{from: int64(rapid.IntRange(1, 5000).Draw(t, "from"))}
			s.to = s.from + int64(rapid.IntRange(0, 3000).Draw(t, "lasts"))
			all = append(all, s)
			fmt.Fprintf(&text, "n,pod-%d,ReplicaSet/rs-%d,100m,1Mi,%d,%d\n", i, i%3, s.from, s.to)
		}
		h, err := ReadPods(strings.NewReader(text.String()))
		if err != nil {
			t.Fatal(err)
		}
		until := int64(rapid.IntRange(1, 9000).Draw(t, "until"))
		length := int64(rapid.IntRange(1, 9000).Draw(t, "length"))
		first, last := all[0].from, int64(0)
		for _, s := range all {
			first, last = min(first, s.from), max(last, s.to)
		}
		to := min(last, until)
		from := max(first, to-length)
		got, err := h.Trace("", Window{Length: time.Duration(length) * time.Second, Until: time.Unix(until, 0), Slice: Slice{Divide: 1}}, nil)
		if from >= to {
			if err == nil {
				t.Fatalf("there is a trace of %d to %d", from, to)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		var want, found []span
		for _, s := range all {
			if s.to > from && s.from < to && s.to > s.from {
				want = append(want, span{max(0, s.from-from), s.to - from})
			}
		}
		for _, p := range got.Pods {
			found = append(found, span{p.Arrive, p.Ends})
		}
		order := func(a, b span) int { return int((a.from-b.from)*1_000_000 + a.to - b.to) }
		slices.SortFunc(want, order)
		slices.SortFunc(found, order)
		if !slices.Equal(want, found) || got.Seconds != to-from || got.Start.Unix() != from {
			t.Fatalf("from %d, %d s: %v, want %v", got.Start.Unix(), got.Seconds, found, want)
		}
	})
}

// TestBesideSnapshot: what pods need beside cpu and memory is what the snapshot's pods of their
// owner, or of one that follows it, need; its nodes take pods, and nothing is under way.
func TestBesideSnapshot(t *testing.T) {
	now := time.Date(2026, 3, 9, 0, 0, 0, 0, time.UTC)
	pod := func(name, kind, owner, pool, cpu, memory string) *fleet.Pod {
		p := &fleet.Pod{Namespace: "shop", Name: name, Labels: map[string]string{"app": owner}, Node: "n1", Spec: &corev1.PodSpec{
			NodeSelector: map[string]string{"pool": pool},
			Containers: []corev1.Container{
				{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory), "example.com/gpu": resource.MustParse("1")}}},
				{Name: "side", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}}},
			},
		}}
		if kind != "" {
			p.Owner = &metav1.OwnerReference{Kind: kind, Name: owner, UID: "of-" + "the-snapshot"}
		}
		return p
	}
	old := pod("web-7fff-x", "ReplicaSet", "web-7fff", "old", "500m", "1Gi")
	old.Phase = fleet.PodSucceeded
	s := &fleet.Snapshot{
		Now: now,
		Groups: []fleet.Group{{Name: "web", Max: 9, Desired: 5, Failures: []fleet.Failure{{At: now}}, Instances: []fleet.Instance{
			{ID: "i-1", State: fleet.InService}, {ID: "i-2", State: fleet.InService}, {ID: "i-3", State: fleet.TerminatingWait}, {ID: "i-4", State: fleet.Pending},
		}}},
		Nodes: []fleet.Node{
			{Name: "n1", ProviderID: "aws:///a/i-1", Ready: true, Created: now.Add(-time.Hour), Taints: []corev1.Taint{{Key: contract.Prefix + "x"}, {Key: "theirs"}}, Annotations: map[string]string{contract.AnnotationDrainRequest: "x", "theirs": "y"}},
			{Name: "n2", ProviderID: "aws:///a/i-2"},
			{Name: "n3", ProviderID: "aws:///a/i-3", Ready: true, Unschedulable: true},
			{Name: "n4", ProviderID: "aws:///a/i-4", Ready: true},
		},
		Pods: []*fleet.Pod{
			old, pod("web-9abc-x", "ReplicaSet", "web-9abc", "web", "500m", "1Gi"),
			pod("db-0", "StatefulSet", "db", "db-0", "900m", "4Gi"), pod("db-1", "StatefulSet", "db", "db-1", "900m", "4Gi"),
			pod("proxy-1", "DaemonSet", "proxy", "", "0", "0"),
		},
		State: fleet.State{}, Outages: []fleet.Outage{{}},
	}
	text := `namespace,name,owner,cpu,memory,created,ended
shop,web-5d9c-a,ReplicaSet/web-5d9c,600m,1Gi,1000,5000
shop,web-9abc-a,ReplicaSet/web-9abc,600m,2Gi,1000,5000
shop,web-9abc-b,ReplicaSet/web-9abc,600m,2Gi,1000,5000
shop,db-1,StatefulSet/db,1,4Gi,1000,5000
shop,db-7,StatefulSet/db,1,4Gi,1000,5000
shop,other,,1,4Gi,1000,5000
`
	got := played(t, text, Window{Length: time.Hour}, s)
	var lines []string
	for _, w := range got.Workloads {
		requests := w.Spec.Containers[0].Resources.Requests
		gpu := requests["example.com/gpu"]
		uid := ""
		if w.Controller != nil {
			uid = string(w.Controller.UID)
		}
		lines = append(lines, fmt.Sprintf("%s pool=%s cpu=%s memory=%s gpu=%s containers=%d %s", w.Name, w.Spec.NodeSelector["pool"], requests.Cpu(), requests.Memory(), &gpu, len(w.Spec.Containers), uid))
	}
	slices.Sort(lines)
	want := []string{
		"db pool=db-0 cpu=900m memory=4Gi gpu=1 containers=2 of-the-snapshot",
		"db pool=db-1 cpu=900m memory=4Gi gpu=1 containers=2 of-the-snapshot",
		"other pool= cpu=1 memory=4Gi gpu=0 containers=1 ",
		"web-5d9c pool=web cpu=500m memory=1Gi gpu=1 containers=2 ",
		"web-9abc pool=web cpu=600m memory=2Gi gpu=1 containers=2 of-the-snapshot",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("workloads (-want +got):\n%s", diff)
	}
	c := got.Snapshot
	if len(c.Nodes) != 1 || len(c.Nodes[0].Taints) != 1 || len(c.Nodes[0].Annotations) != 1 || c.Nodes[0].Created != got.Start.Add(-time.Hour) {
		t.Errorf("nodes: %+v", c.Nodes)
	}
	if g := c.Groups[0]; len(g.Instances) != 1 || g.Desired != 1 || len(g.Failures) > 0 || len(c.Outages) > 0 || len(c.Pods) != 1 || c.Pods[0].Name != "proxy-1" {
		t.Errorf("group %+v, pods %v", g, c.Pods)
	}
	if len(s.Nodes) != 4 || len(s.Nodes[0].Taints) != 2 || len(s.Groups[0].Instances) != 4 || len(s.Nodes[0].Annotations) != 2 {
		t.Errorf("the snapshot itself has changed: %+v", s)
	}
}

package render

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/notifier/delivery"
	"windlass.dev/windlass/notifier/happening"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// begun is a happening that lasts, over one that has ended after a while.
func begun(h happening.Happening) happening.Happening { h.Began, h.Revision = noon, 1; return h }

func over(h happening.Happening) happening.Happening {
	h = begun(h)
	h.Ended = noon.Add(90 * time.Second)
	return h
}

// What people read.
func TestWords(t *testing.T) {
	members := map[string]happening.Phase{"a": happening.Terminated, "b": happening.Cancelled}
	for _, c := range []struct {
		of   []happening.Happening
		want string
	}{
		{[]happening.Happening{begun(happening.Happening{Kind: happening.ScaleUp, Phase: happening.Launching, Group: "web", From: 1, To: 3, Zone: "a", Pods: 2, For: []string{"shop/x", "shop/y"}})},
			"Scaling up: web\ngroup web grows 1→3\nZone: a\nPods: 2: shop/x, shop/y\nCluster: blue\nNodes: 7"},
		{[]happening.Happening{over(happening.Happening{Kind: happening.ScaleUp, Phase: happening.Ready, Group: "web", From: 1, To: 3, Count: 2})},
			"Scaled up: web\ngroup web grew 1→3, and all nodes are Ready after 1m30s\nTimes: 2\nCluster: blue\nNodes: 7"},
		{[]happening.Happening{over(happening.Happening{Kind: happening.ScaleUp, Phase: happening.Overdue, Group: "web", From: 1, To: 3})},
			"Nodes are not Ready in time: web\ngroup web grew 1→3, and after 1m30s some nodes are not Ready\nCluster: blue\nNodes: 7"},
		{[]happening.Happening{over(happening.Happening{Kind: happening.ScaleDown, Phase: happening.Terminated, Group: "web", Members: members, Names: []string{"n1", "n2"}, Saved: 0.5})},
			"Scaled down: web\n2 nodes of group web: 1 terminated, 1 cancelled, in 1m30s\nNames: 2: n1, n2\nSaved: 0.50 $ an hour\nCluster: blue\nNodes: 7"},
		{[]happening.Happening{begun(happening.Happening{Kind: happening.Interruption, Phase: happening.Draining, Node: "n1", Notice: "spot", Instance: "i-1", Deadline: noon.Add(2 * time.Minute)})},
			"Node drains: n1\nnotice: spot\nNotice: spot\nInstance: i-1\nDeadline: 2026-08-01T12:02:00Z\nCluster: blue\nNodes: 7"},
		{[]happening.Happening{begun(happening.Happening{Kind: happening.DrainBlocked, Phase: happening.Lasting, Node: "n1", BlockedBy: []string{"shop/api"}, For: []string{"ReplicaSet shop/api-6f7"}, Text: "2 pods left"})},
			"Drain blocked: n1\n2 pods left\nBlocked by: shop/api\nPods of: ReplicaSet shop/api-6f7\nSince: 2026-08-01T12:00:00Z\nCluster: blue\nNodes: 7"},
		{[]happening.Happening{begun(happening.Happening{Kind: happening.LaunchFailed, Phase: happening.Failed, Group: "web", Text: "no capacity", Until: noon})},
			"Launch failed: web\nno capacity\nNext try: 2026-08-01T12:00:00Z\nCluster: blue\nNodes: 7"},
		{[]happening.Happening{begun(happening.Happening{Kind: happening.AtMax, Phase: happening.Lasting, Group: "web", To: 5, Pods: 9})},
			"Group at its maximum, pods pending: web\nit is at its maximum, and pods are pending that fit its nodes\nMaximum: 5\nPods: 9\nCluster: blue\nNodes: 7"},
		{[]happening.Happening{begun(happening.Happening{Kind: happening.Fault, Phase: happening.Lasting, Text: "no right", Node: "n1"})},
			"Fault\nno right\nNode: n1\nCluster: blue\nNodes: 7"},
		{[]happening.Happening{begun(happening.Happening{Kind: happening.Interruption, Phase: happening.Draining, Node: "n1"}), over(happening.Happening{Kind: happening.Interruption, Phase: happening.Drained, Node: "n2"}), over(happening.Happening{Kind: happening.Interruption, Phase: happening.Drained, Node: "n3"})},
			"3 times interruption\n1× Node drains, 2× Node drained\nNames: 3: n1, n2, n3\nCluster: blue\nNodes: 7"},
	} {
		if diff := cmp.Diff(c.want, Of(delivery.Message{Of: c.of}, Cluster{Name: "blue", Nodes: 7}).Plain()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestDigestInWords(t *testing.T) {
	m := delivery.Message{Digest: &delivery.Summary{Since: noon, Until: noon.Add(24 * time.Hour), NodesUp: 3, NodesDown: 1, Saved: 0.2, BlockedFor: time.Hour, Shed: 1,
		Begun: map[happening.Kind]int{happening.ScaleUp: 2}, Notices: map[string]int{"spot": 2, "asg": 1},
		Lasting: []happening.Happening{begun(happening.Happening{Kind: happening.AtMax, Phase: happening.Lasting, Group: "web"})}}}
	want := "Digest of 24h0m0s\n3 nodes launched, 1 node terminated, which cost 0.20 $ an hour\nscale-up: 2\nInterruptions: 1 asg, 2 spot\nBlocked for: 1h0m0s\n" +
		"Lasting: 1: Group at its maximum, pods pending web\nWithout room: 1\nCluster: blue\nNodes: 7\nCost: 1.25 $ an hour"
	if diff := cmp.Diff(want, Of(m, Cluster{Name: "blue", Nodes: 7, Hourly: 1.25}).Plain()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The Node Termination Handler's own default template says of an interruption what it says there.
func TestTemplateOfTheTerminationHandler(t *testing.T) {
	const theirs = `{"text":"[NTH][Instance Interruption] EventID: {{ .EventID }} - Kind: {{ .Kind }} - Instance: {{ .InstanceID }} - Node: {{ .NodeName }} - Description: {{ .Description }} - Start Time: {{ .StartTime }}"}`
	parsed, err := ParseTemplate("nth", theirs)
	if err != nil {
		t.Fatal(err)
	}
	h := begun(happening.Happening{ID: "x", Kind: happening.Interruption, Phase: happening.Draining, Node: "n1", Instance: "i-1", Notice: "spot", NoticeID: "spot-1", Text: "it is interrupted", Deadline: noon.Add(2 * time.Minute)})
	got, err := parsed.On(Of(delivery.Message{Of: []happening.Happening{h}}, Cluster{}), Cluster{})
	want := `{"text":"[NTH][Instance Interruption] EventID: spot-1 - Kind: SPOT_ITN - Instance: i-1 - Node: n1 - Description: it is interrupted - Start Time: 2026-08-01T12:02:00Z"}`
	if err != nil || got.Text != want || !got.Own {
		t.Errorf("%v\n got %s\nwant %s", err, got.Text, want)
	}
	for _, field := range []string{"AvailabilityZone", "InstanceType", "InstanceLifeCycle", "AccountId", "Region", "PublicIP", "LocalIP", "NodeLabels", "Pods", "ProviderID", "EndTime", "Monitor", "State", "IsManaged"} {
		if _, err := ParseTemplate("f", "{{."+field+"}}"); err != nil {
			t.Error(err)
		}
	}
}

// A template makes no end of text.
func TestTemplateIsBounded(t *testing.T) {
	_, err := ParseTemplate("t", `{{define "x"}}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa{{template "x" .}}{{end}}{{template "x" .}}`)
	if err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("error %v", err)
	}
}

// Each phase of each message has an id of its own.
func TestIDs(t *testing.T) {
	h := begun(happening.Happening{ID: "x", Kind: happening.ScaleUp})
	first := Of(delivery.Message{Of: []happening.Happening{h}}, Cluster{}).ID
	h.Revision++
	if again := Of(delivery.Message{Of: []happening.Happening{h}}, Cluster{}).ID; again == first || first == "" {
		t.Errorf("%q and %q", first, again)
	}
}

// TestTemplateOfHostileText: what a tenant names ends no JSON string and calls nobody.
func TestTemplateOfHostileText(t *testing.T) {
	parsed, err := ParseTemplate("ops", `{"text":{{printf "%s: %s" .Title .Description | slack | json}}}`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := parsed.On(Message{Title: `a"b`, Text: "<!channel> x\",\"channel\":\"#general\nend"}, Cluster{})
	if err != nil {
		t.Fatal(err)
	}
	var said map[string]string
	if err := json.Unmarshal([]byte(got.Text), &said); err != nil || len(said) != 1 || said["text"] != "a\"b: &lt;!channel&gt; x\",\"channel\":\"#general\nend" {
		t.Errorf("%s is read as %q, error %v", got.Text, said, err)
	}
}

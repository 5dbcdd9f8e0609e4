package script

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func objectsOf(t *testing.T, documents string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for d := range strings.SplitSeq(documents, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(d), &o.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

const twoNodes = `
kind: Node
metadata: {name: b, annotations: {example.com/report: '{"phase":"Drained"}'}, labels: {zone: x}}
spec: {unschedulable: true, taints: [{key: example.com/draining, value: spot, effect: NoSchedule}]}
status: {conditions: [{type: Ready, status: "True"}], capacity: {pods: "29"}}
---
kind: Node
metadata: {name: a}
status: {conditions: [{type: Ready, status: "False"}]}`

func TestAnswer(t *testing.T) {
	for _, c := range []struct {
		query string
		holds bool
		names []string
	}{
		{"nodes", true, []string{"a", "b"}},
		{"nodes count==2", true, []string{"a", "b"}},
		{"nodes count>=3", false, []string{"a", "b"}},
		{"nodes gone", false, []string{"a", "b"}},
		{"nodes condition:Ready==True", true, []string{"b"}},
		{"nodes all condition:Ready==True", false, []string{"b"}},
		{"nodes all condition:Ready!=Unknown", true, []string{"a", "b"}},
		{"nodes condition:Fire==True gone", true, []string{}},
		{"nodes .spec.unschedulable==true", true, []string{"b"}},
		{"nodes .spec.unschedulable!=true", true, []string{"a"}},
		{"nodes .spec.unschedulable==", true, []string{"a"}},
		{`nodes annotation:example.com/report=~"phase":"Drained"`, true, []string{"b"}},
		{"nodes annotation:example.com/report!~Drained", true, []string{"a"}},
		{"nodes label:zone==x", true, []string{"b"}},
		{"nodes taint:example.com/draining==spot:NoSchedule", true, []string{"b"}},
		{"nodes .status.capacity.pods>=29", true, []string{"b"}},
		{"nodes .status.capacity.pods<=28", false, []string{}},
		{`nodes .status.conditions[?(@.type=="Ready")].status==False`, true, []string{"a"}},
		{"nodes .no.such.path==x", false, []string{}},
	} {
		t.Run(c.query, func(t *testing.T) {
			q, err := Parse(strings.Fields(c.query))
			if err != nil {
				t.Fatal(err)
			}
			got := q.Answer(objectsOf(t, twoNodes))
			if got.Holds != c.holds {
				t.Errorf("holds: got %v, want %v\n%s", got.Holds, c.holds, strings.Join(got.Seen, "\n"))
			}
			if diff := cmp.Diff(c.names, got.Names()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParse(t *testing.T) {
	q, err := Parse(strings.Fields("pods/web-1 -n shop -l app=web -as POD all"))
	if err != nil {
		t.Fatal(err)
	}
	want := Query{Kind: "pods", Name: "web-1", Namespace: "shop", Selector: "app=web", As: "POD", All: true}
	if diff := cmp.Diff(want, q); diff != "" {
		t.Error(diff)
	}
	for query, want := range map[string]string{
		"":                          "no kind",
		"pods -n":                   "-n without a value",
		"pods running":              `"running" is no comparison`,
		"pods .status.phase=~[":     "missing closing ]",
		"pods count>=many":          "invalid syntax",
		"pods phase==Running":       "want a JSON path",
		"pods colour:red==x":        "unknown left side",
		"pods .status[?(==Running":  "no comparison", // inside the brackets
		"pods .status[?(]==Running": "unterminated",
	} {
		if _, err := Parse(strings.Fields(query)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q): got error %v, want one with %q", query, err, want)
		}
	}
}

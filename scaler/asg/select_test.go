package asg

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseSelection(t *testing.T) {
	for _, tc := range []struct {
		name             string
		nodes, discovery []string
		want             Selection
	}{
		{"named", []string{"1:5:web", "0:10:batch:with:colons"}, nil,
			Selection{Named: []Named{{"web", 1, 5}, {"batch:with:colons", 0, 10}}}},
		{"discovered by key and by value", nil, []string{"asg:tag=k8s.io/cluster-autoscaler/enabled,owner=me"},
			Selection{Tags: []Tag{{Key: "k8s.io/cluster-autoscaler/enabled", Any: true}, {Key: "owner", Value: "me"}}}},
		{"several flags are one AND", nil, []string{"asg:tag=a=1", "asg:tag=b", "asg:tag=a=1"},
			Selection{Tags: []Tag{{Key: "a", Value: "1"}, {Key: "b", Any: true}}}},
		{"an empty value is a value", nil, []string{"asg:tag=a="}, Selection{Tags: []Tag{{Key: "a"}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseSelection(tc.nodes, tc.discovery)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhyNone(t *testing.T) {
	s, err := ParseSelection(nil, []string{"asg:tag=owner=me,enabled"})
	if err != nil {
		t.Fatal(err)
	}
	want := "no Auto Scaling group in eu-west-1 carries all the tags of --node-group-auto-discovery: enabled, owner=me"
	if got := s.WhyNone("eu-west-1"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What is wrong is quoted, and the right form is shown.
func TestParseSelectionErrors(t *testing.T) {
	for _, tc := range []struct {
		nodes, discovery []string
		want             []string
	}{
		{nil, nil, []string{"no groups", "--nodes=", "--node-group-auto-discovery="}},
		{[]string{"web"}, nil, []string{"--nodes=web", "min:max:name"}},
		{[]string{"a:5:web"}, nil, []string{`min "a"`, "0:10:web"}},
		{[]string{"1:-5:web"}, nil, []string{`max "-5"`}},
		{[]string{"6:5:web"}, nil, []string{"min 6 is greater than max 5"}},
		{[]string{"1:5:"}, nil, []string{"the name is empty"}},
		{[]string{"1:5:web", "1:6:web"}, nil, []string{"named twice"}},
		{nil, []string{"mig:namePrefix=x"}, []string{"--node-group-auto-discovery=mig:namePrefix=x", `"asg:tag="`}},
		{nil, []string{"asg:tag=a,,b"}, []string{"a tag without a key", "asg:tag=key[=value]"}},
	} {
		_, err := ParseSelection(tc.nodes, tc.discovery)
		if err == nil {
			t.Errorf("%v %v: no error", tc.nodes, tc.discovery)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v %v: %q does not contain %q", tc.nodes, tc.discovery, err, want)
			}
		}
	}
}

package asg_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/fakeaws/iam"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/asg"
)

// shippedPolicy is the IAM policy that people are given, with all that is opt-in.
func shippedPolicy(t *testing.T) iam.Policy {
	t.Helper()
	var whole iam.Policy
	for _, file := range append(slices.Collect(maps.Values(asg.OptIn)), asg.PolicyFile) {
		document, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		policy, err := iam.Parse(document)
		if err != nil {
			t.Fatal(err)
		}
		policy.Statement = append(whole.Statement, policy.Statement...)
		whole = policy
	}
	return whole
}

// without is a policy that no longer grants an action.
func without(p iam.Policy, action string) iam.Policy {
	less := p
	less.Statement = nil
	for _, s := range p.Statement {
		s.Action = slices.DeleteFunc(slices.Clone(s.Action), func(a string) bool { return a == action })
		if len(s.Action) > 0 {
			less.Statement = append(less.Statement, s)
		}
	}
	return less
}

// ours are the tags by which the manifests find groups.
var ours = map[string]string{"k8s.io/cluster-autoscaler/enabled": "true", "k8s.io/cluster-autoscaler/my-cluster": "owned"}

// everyCall is a fleet and what the scaler does with it, so that each call is made that
// it knows. It returns all that was reported of what does not work: errors, the faults of
// groups, the log.
func everyCall(t *testing.T, p iam.Policy, tags map[string]string) (b *bed, said []string) {
	t.Helper()
	b = start(t, fakeaws.Spec{
		LaunchConfigurations: []fakeaws.LaunchConfiguration{{Name: "lc", Type: "m5.large", SpotPrice: "0.1"}},
		Images:               []fakeaws.Image{{ID: "ami-mine"}},
		LaunchTemplates:      []fakeaws.LaunchTemplate{{Name: "lt", Versions: []fakeaws.TemplateVersion{{Type: "m5.large", Image: "ami-mine"}}}},
		Groups: []fakeaws.Group{
			{Name: "web", Max: 5, Desired: desired(1), Type: "m5.large", Zones: ab, Tags: tags, Hooks: []fakeaws.Hook{onTerminate("windlass")},
				EKS: &fakeaws.Nodegroup{Cluster: "my-cluster", Name: "web"}},
			{Name: "pool", Max: 5, Type: "m5.large", Tags: tags, WarmPool: &fakeaws.WarmPool{MinSize: 1}},
			{Name: "old", Max: 5, LaunchConfiguration: "lc", Zones: []string{"eu-west-1c"}, Tags: tags},
			{Name: "any", Max: 5, Tags: tags, MixedInstances: &fakeaws.MixedInstances{
				LaunchTemplate: fakeaws.TemplateRef{Name: "lt"},
				Overrides:      []fakeaws.Override{{Requirements: &fakeaws.Requirements{AllowedTypes: []string{"m5.*"}}}}}},
		},
	})
	document, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Restrict("test", document); err != nil {
		t.Fatal(err)
	}
	// A launch that fails has the scaling activities read.
	if err := b.SetShortages(fakeaws.Shortage{Group: "old"}); err != nil {
		t.Fatal(err)
	}
	instance := b.settled(t, "web", 1)[0].ID
	return b, slices.Concat(b.look(t), b.act(t, instance), b.look(t))
}

// look reads all groups.
func (b *bed) look(t *testing.T) (said []string) {
	t.Helper()
	selection, err := asg.ParseSelection([]string{"0:5:web", "0:5:pool", "0:5:old", "0:5:any"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	asking := assume
	asking.AskSpot = true
	r := asg.NewReader(b.account, selection, asking, slog.New(slog.NewTextHandler(&log, nil)), nil)
	r.Machines([]string{"i-0123456789abcdef0"})
	if err := r.Read(t.Context()); err != nil {
		return []string{err.Error()}
	}
	for _, g := range byName(r) {
		said = append(said, g.Faults...)
	}
	if _, fault := r.Machines([]string{"i-0123456789abcdef0"}); fault != "" {
		said = append(said, fault)
	}
	return append(said, r.Fault(), log.String())
}

// act changes the group web, and ends the instance through its hook.
func (b *bed) act(t *testing.T, instance string) (said []string) {
	t.Helper()
	v := asg.NewVerbs(b.account)
	try := func(err error) bool {
		if err != nil {
			said = append(said, err.Error())
		}
		return err == nil
	}
	try(v.SetDesired(t.Context(), "old", 0, 1))
	_, err := waited(t, v, asg.LaunchOrder{Group: "web", Zone: ab[0], Token: token, Count: 1})
	try(err)
	try(v.Suspend(t.Context(), "web", "AZRebalance"))
	try(v.Claim(t.Context(), "web", "uid-blue"))
	held := wait(instance, "windlass", fleet.TerminatingWait)
	if try(v.Terminate(t.Context(), "web", instance, true)) {
		b.await(t, instance, fakeaws.TerminatingWait)
	}
	try(v.Heartbeat(t.Context(), held))
	try(v.Complete(t.Context(), held))
	try(v.Resume(t.Context(), "web", "AZRebalance"))
	try(v.Disclaim(t.Context(), "web", "uid-blue"))
	try(v.DeleteHook(t.Context(), "web", "windlass"))
	return said
}

// The shipped policy is enough for every call.
func TestShippedPolicyIsEnough(t *testing.T) {
	b, said := everyCall(t, shippedPolicy(t), ours)
	if text := strings.Join(said, "\n"); strings.Contains(text, "no right") {
		t.Error(text)
	}
	called := map[string]bool{}
	for _, c := range b.Calls() {
		if c.Lacks != "" {
			t.Errorf("%s lacks %s", c, c.Lacks)
		}
		needs, _ := b.Needs(c)
		for _, need := range needs {
			called[need.Action] = true
		}
	}
	for action := range asg.Statements {
		if !called[action] {
			t.Errorf("%s is in the policy, and nothing here needs it", action)
		}
	}
}

// Each right is needed: without it something is reported, and the report names the right,
// what it is about where it is about something, and the statement that grants it.
func TestEachRightIsNeededAndNamed(t *testing.T) {
	policy := shippedPolicy(t)
	for _, s := range policy.Statement {
		for _, action := range s.Action {
			t.Run(action, func(t *testing.T) {
				_, said := everyCall(t, without(policy, action), ours)
				text := strings.Join(said, "\n")
				from := strings.Index(text, "no right to call "+action)
				if from < 0 {
					t.Fatalf("nobody says that the right is missing:\n%s", text)
				}
				sentence, _, _ := strings.Cut(text[from:], "\n")
				if !strings.Contains(sentence, fmt.Sprintf("statement %s of %s grants it", s.Sid, cmp.Or(asg.OptIn[s.Sid], asg.PolicyFile))) {
					t.Errorf("%s\ndoes not name the statement %s", sentence, s.Sid)
				}
				if about := s.Resource[0] != "*" || action == "ec2:CreateFleet"; about != strings.Contains(sentence, " on arn:aws:") {
					t.Errorf("%s\nnames a resource: %t, want %t", sentence, !about, about)
				}
			})
		}
	}
}

// With the right to claim groups no other tag is written, such as the one by which groups
// are the cluster's.
func TestShippedPolicyWritesNoOtherTag(t *testing.T) {
	b, _ := everyCall(t, shippedPolicy(t), ours)
	for _, keys := range []string{"k8s.io/cluster-autoscaler/my-cluster", contract.TagOwner + ",team"} {
		params := map[string]string{"Tags.member.1.ResourceId": "web"}
		for n, key := range strings.Split(keys, ",") {
			params[fmt.Sprintf("Tags.member.%d.Key", n+1)] = key
		}
		needs, _ := b.Needs(fakeaws.Call{Service: "autoscaling", Operation: "CreateOrUpdateTags", Params: params})
		if d := shippedPolicy(t).Decide(needs[0]); d.Allowed {
			t.Errorf("tags %s may be written", keys)
		}
	}
}

// A group without the cluster's tag is seen, but not changed.
func TestShippedPolicyChangesNoOtherGroup(t *testing.T) {
	b, said := everyCall(t, shippedPolicy(t), map[string]string{"k8s.io/cluster-autoscaler/other": "owned"})
	for _, c := range b.Calls(fakeaws.Mutating) {
		if c.Status != 403 || c.Lacks == "" {
			t.Errorf("%s went through", c)
		}
	}
	for _, s := range said {
		if strings.Contains(s, "no right to call autoscaling:") && !strings.Contains(s, "grants it for groups with the cluster's tag") {
			t.Errorf("%s\ndoes not say that the tag is what is missing", s)
		}
	}
	if len(b.Calls(fakeaws.Mutating)) < 4 {
		t.Errorf("only %d changes were tried", len(b.Calls(fakeaws.Mutating)))
	}
}

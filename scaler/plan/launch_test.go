package plan_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/launch"
	"windlass.dev/windlass/scaler/plan/policy"
)

func world(t *testing.T, text string) *scenario.World {
	t.Helper()
	w := scenario.NewWorld()
	if err := w.Apply(text); err != nil {
		t.Fatal(err)
	}
	return w
}

func grows(p plan.Plan) []action.Grow {
	var list []action.Grow
	for _, a := range p.Actions {
		if g, ok := a.(action.Grow); ok {
			list = append(list, g)
		}
	}
	return list
}

// A call is for one zone and at most a hundred instances. Each has a token of its
// own and is noted under a key of its own, so that each can be repeated.
func TestLaunchesAreSplit(t *testing.T) {
	w := world(t, `
group web max=1000 zones=a steered
pod app-1..250 cpu=1500m
`)
	p := plan.Decide(w.Snapshot, policy.DefaultPolicy())
	tokens, total := map[string]bool{}, 0
	form := regexp.MustCompile(`^[0-9a-f]{32}$`)
	for i, g := range grows(p) {
		tokens[g.Token] = true
		total += g.Count
		if g.Count > 100 || g.Zone != "a" || g.Part != i || g.Follows != (i > 0) || !form.MatchString(g.Token) {
			t.Errorf("%+v", g)
		}
		if l := p.State.Launches[fleet.LaunchKey("web", "a", i)]; l.Token != g.Token || l.Count != g.Count || l.Answered || l.Attempt != 1 {
			t.Errorf("noted %+v for %s", l, g)
		}
	}
	if len(tokens) != 3 || total != 250 {
		t.Errorf("%d tokens for %d nodes", len(tokens), total)
	}
}

// Deciding the same twice gives the same token: a repetition that knows nothing of the first time
// launches nothing twice. After an answer it is another one.
func TestTokens(t *testing.T) {
	text := `
group web max=10 zones=a,b steered
pod app-1 cpu=1500m
`
	tokenOf := func(change string) string {
		return grows(plan.Decide(world(t, text+change).Snapshot, policy.DefaultPolicy()))[0].Token
	}
	first := tokenOf("")
	if again := tokenOf(""); again != first {
		t.Errorf("%s, then %s", first, again)
	}
	for what, change := range map[string]string{
		"after an answer":       "launch web:a token=" + first + " at=09:00:00 came=0",
		"with other instances":  "instance i-1 group=web state=InService\nnode n group=web notready age=1h",
		"with another count":    "pod app-2 cpu=1500m\npod app-3 cpu=1500m",
		"with a higher desired": "group web desired=1\nbackoff web until=09:59:00",
	} {
		w := world(t, text+change)
		for _, g := range grows(plan.Decide(w.Snapshot, policy.DefaultPolicy())) {
			if g.Token == first {
				t.Errorf("%s the token is the same: %s", what, g)
			}
		}
	}
}

// What an answer leaves behind.
func TestHear(t *testing.T) {
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	x := action.Grow{Group: "web", Zone: "a", Token: "t", Count: 3}
	failed := func(cause string) []fleet.Failure {
		return []fleet.Failure{{At: now.Add(-time.Hour), Zone: "a", Cause: cause}}
	} // by a clock that is behind
	shape := func(kind string) []fleet.NodeTemplate { return []fleet.NodeTemplate{{Zone: "a", InstanceType: kind}} }
	groups := []fleet.Group{
		{Name: "web", NodeTemplates: shape("m5.large")}, {Name: "batch", NodeTemplates: shape("c7g.xlarge")}, {Name: "spot", Spot: true, NodeTemplates: shape("m5.large")},
		{Name: "gpu", NodeTemplates: shape("g5.xlarge")}, {Name: "unknown"},
	}
	for name, c := range map[string]struct {
		answer   launch.Answer
		answered bool
		paused   []string
	}{
		"all came":              {launch.Answer{Seen: true, Came: 3}, true, nil},
		"nobody knows":          {launch.Answer{}, false, nil},
		"never sent":            {launch.Answer{Unsent: true}, false, nil},
		"a zone is out":         {launch.Answer{Seen: true, Came: 1, Failures: failed("InsufficientInstanceCapacity")}, true, []string{"web:a:InsufficientInstanceCapacity"}},
		"the group is broken":   {launch.Answer{Seen: true, Failures: failed("InvalidImage")}, true, []string{"web::InvalidImage"}},
		"the group is, somehow": {launch.Answer{Seen: true, Failures: failed("SomethingNew")}, true, []string{"web::SomethingNew"}},
		"a limit is reached":    {launch.Answer{Seen: true, Failures: failed("VcpuLimitExceeded")}, true, []string{"web::VcpuLimitExceeded", "batch::VcpuLimitExceeded"}},
		"the account is full": {launch.Answer{Seen: true, Failures: failed("VolumeLimitExceeded")}, true,
			[]string{"web::VolumeLimitExceeded", "batch::VolumeLimitExceeded", "spot::VolumeLimitExceeded", "gpu::VolumeLimitExceeded", "unknown::VolumeLimitExceeded"}},
		"a right is missing": {launch.Answer{Seen: true, Unsteered: "no right to call ec2:CreateFleet"}, true, nil},
	} {
		before := fleet.State{Launches: map[string]fleet.Launch{"web:a": {Token: "t", Count: 3, Attempt: 2}, "web:b": {Token: "u"}}}
		got := launch.Hear(policy.DefaultPolicy(), before, groups, x, c.answer, now)
		if l := got.Launches["web:a"]; l.Answered != c.answered || l.Came != c.answer.Came || l.Attempt != 2 || got.Launches["web:b"].Answered {
			t.Errorf("%s: %+v", name, got.Launches)
		}
		if before.Launches["web:a"].Answered || len(before.BackOffs) > 0 {
			t.Errorf("%s: the state before was changed", name)
		}
		if len(got.BackOffs) != len(c.paused) {
			t.Errorf("%s: %v, want %v", name, got.BackOffs, c.paused)
		}
		for _, key := range c.paused {
			if !got.BackOffs[key].Until.After(now) {
				t.Errorf("%s: no pause %s in %v", name, key, got.BackOffs)
			}
		}
		if b, unsteered := got.Unsteered["web"]; unsteered != (c.answer.Unsteered != "") || unsteered && !b.Until.Equal(now.Add(time.Hour)) {
			t.Errorf("%s: unsteered %+v", name, got.Unsteered)
		}
	}
}

// An answer to another launch than the one that is noted means nothing for it.
func TestHearAnotherToken(t *testing.T) {
	before := fleet.State{Launches: map[string]fleet.Launch{"web:a": {Token: "t"}}}
	got := launch.Hear(policy.DefaultPolicy(), before, nil, action.Grow{Group: "web", Zone: "a", Token: "older"}, launch.Answer{Seen: true, Came: 9}, time.Now())
	if got.Launches["web:a"].Answered {
		t.Error("it counts as answered")
	}
}

// Launches are forgotten with their group, and when AWS may have forgotten them.
func TestLaunchesAreForgotten(t *testing.T) {
	for _, c := range []struct {
		line string
		kept bool
	}{
		{"launch web:a token=t at=02:11:00", true}, // not quite eight hours
		{"launch web:a token=t at=02:09:00", false},
		{"launch web:a token=t at=02:00:00 came=1", true}, // its number counts as long as a token may live
		{"launch web:a token=t at=01:49:00 came=1", false},
		{"launch ghost:a token=t", false},
	} {
		w := world(t, "group web zones=a steered\n"+c.line)
		p := plan.Decide(w.Snapshot, policy.DefaultPolicy())
		if kept := len(p.State.Launches) > 0; kept != c.kept {
			t.Errorf("%s: kept %v", c.line, kept)
		}
		if !c.kept && len(grows(p)) > 0 {
			t.Errorf("%s: repeated", c.line)
		}
	}
}

// What was launched counts as upcoming as soon as AWS has reported it, though the group is read as
// it was before; and not without end.
func TestLaunchesThatDoNotShow(t *testing.T) {
	for _, c := range []struct {
		at     string
		growth int
	}{{"09:59:30", 0}, {"09:58:30", 2}} {
		w := world(t, fmt.Sprintf(`
group web max=10 zones=a,b steered
launch web:a token=t count=3 desired=0 at=%s came=1
launch web:b token=u count=1 desired=0 at=%[1]s came=1
pod app-1..2 cpu=1500m
`, c.at))
		total := 0
		for _, g := range grows(plan.Decide(w.Snapshot, policy.DefaultPolicy())) {
			total += g.Count
		}
		if total != c.growth {
			t.Errorf("launched at %s: grows by %d, want %d", c.at, total, c.growth)
		}
	}
}

// Every cause that the texts of AWS are read as is one of these: what concerns one
// zone must not stop a group, and what concerns an account must not be tried group
// by group.
func TestScope(t *testing.T) {
	for cause, want := range map[string]launch.Reach{
		"InsufficientInstanceCapacity": launch.ReachZone, "UnfulfillableCapacity": launch.ReachZone, "InsufficientFreeAddressesInSubnet": launch.ReachZone,
		"SpotMaxPriceTooLow": launch.ReachZone, "Unsupported": launch.ReachZone, "MaxSpotInstanceCountExceeded": launch.ReachQuota,
		"VcpuLimitExceeded": launch.ReachQuota, "VolumeLimitExceeded": launch.ReachAccount, "InvalidImage": launch.ReachGroup, cluster.NeverJoined: launch.ReachGroup, "": launch.ReachGroup,
	} {
		if got := launch.Scope(cause); got != want {
			t.Errorf("%s reaches the %s, want the %s", cause, got, want)
		}
	}
}

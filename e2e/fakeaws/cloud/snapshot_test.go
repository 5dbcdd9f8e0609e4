package cloud

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A snapshot says what the cloud said when it was taken, whatever comes after.
func TestSnapshot(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	two := 2
	c, err := New(Spec{Timing: Timing{Quick: true}, Groups: []Group{{Name: "web", Max: 5, Desired: &two, Type: "m5.large", Tags: map[string]string{"k": "v"}, Hooks: []Hook{{Name: "up", Transition: "launch"}}}}}, now, nil)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	c.Advance(now)
	type said struct {
		Groups     []GroupStatus
		Instances  []Instance
		Activities []Activity
	}
	all := func(c *Cloud) said { return said{c.Groups(), c.Instances(), c.Activities("")} }
	before := all(c)
	s := c.Snapshot()
	if diff := cmp.Diff(before, all(s)); diff != "" {
		t.Fatalf("the snapshot differs from the cloud (-cloud +snapshot):\n%s", diff)
	}
	for _, err := range []error{
		c.CompleteLifecycleAction("web", "up", c.Instances()[0].ID, "", Continue, now), c.Suspend("web", nil, now), c.PutTags("web", map[string]Tag{"k": {Value: "w"}}, now),
		c.Resize("web", 0, 9, now), c.Rebalance(c.Instances()[1].ID, now),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	c.Advance(now.Add(10 * time.Hour))
	if diff := cmp.Diff(before, all(c)); diff == "" {
		t.Fatal("nothing has happened, so this test shows nothing")
	}
	if diff := cmp.Diff(before, all(s)); diff != "" {
		t.Errorf("the snapshot has changed (-before +after):\n%s", diff)
	}
}

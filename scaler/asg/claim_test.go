package asg_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/asg"
)

const blue, green types.UID = "uid-blue", "uid-green"

// claimers are the verbs of two clusters.
func (b *bed) claimers() (of func(types.UID) *asg.Verbs) {
	return func(cluster types.UID) *asg.Verbs {
		v := asg.NewVerbs(b.account)
		v.Cluster = func() types.UID { return cluster }
		return v
	}
}

func claimed(t *testing.T, owner types.UID) *bed {
	tags := enabled()
	if owner != "" {
		tags[contract.TagOwner] = string(owner)
	}
	return start(t, fakeaws.Spec{Groups: []fakeaws.Group{{Name: "web", Max: 5, Desired: desired(1), Type: "m5.large", Zones: ab, Tags: tags}}})
}

// Who comes first owns a group. Claimed again it is owned already, and the other cluster
// gets an error that names the owner. Instances do not inherit the tag.
func TestClaim(t *testing.T) {
	b := claimed(t, "")
	of := b.claimers()
	if err := of(blue).Claim(t.Context(), "web", blue); err != nil {
		t.Fatal(err)
	}
	if g := read(t, b.reader(t, nil, []string{discoverEnabled}))["web"]; g.Owner != blue {
		t.Errorf("owner %q", g.Owner)
	}
	if err := of(blue).Claim(t.Context(), "web", blue); !errors.Is(err, asg.ErrAlready) {
		t.Errorf("again: %v", err)
	}
	if err := of(green).Claim(t.Context(), "web", green); !errors.Is(err, asg.ErrChanged) || !strings.Contains(err.Error(), string(blue)) {
		t.Errorf("by another: %v", err)
	}
	if n := len(b.Calls(fakeaws.Operation("CreateOrUpdateTags"))); n != 1 {
		t.Errorf("written %d times", n)
	}
	if err := b.SetDesired("web", 2); err != nil {
		t.Fatal(err)
	}
	for _, i := range b.settled(t, "web", 2) {
		if owner, has := i.Tags[contract.TagOwner]; has {
			t.Errorf("%s has the owner %s", i.ID, owner)
		}
	}
	if err := of(blue).Claim(t.Context(), "gone", blue); !errors.Is(err, asg.ErrChanged) {
		t.Errorf("a group that is gone: %v", err)
	}
}

// A group that another cluster owns is not changed, whatever was decided on an older
// reading; nor one with an owner by a cluster that does not know who it is.
func TestOwnedByAnotherIsNotChanged(t *testing.T) {
	b := claimed(t, green)
	instance := b.settled(t, "web", 1)[0].ID
	of := b.claimers()
	for _, cluster := range []types.UID{blue, ""} {
		v := of(cluster)
		for name, err := range map[string]error{
			"SetDesired": v.SetDesired(t.Context(), "web", 1, 2), "Lower": v.Lower(t.Context(), "web", 1, 0),
			"Terminate": v.Terminate(t.Context(), "web", instance, true), "Serves": v.Serves(t.Context(), "web", instance),
			"Launch": launchError(t.Context(), v, after(order(1), 1)),
		} {
			if !errors.Is(err, asg.ErrChanged) || !strings.Contains(err.Error(), string(green)) {
				t.Errorf("%s by %q: %v", name, cluster, err)
			}
		}
	}
	if calls := b.Calls(fakeaws.Mutating); len(calls) > 0 {
		t.Errorf("called %v", calls)
	}
	if err := of(green).Terminate(t.Context(), "web", instance, true); err != nil {
		t.Errorf("by its owner: %v", err)
	}
}

func launchError(ctx context.Context, v *asg.Verbs, o asg.LaunchOrder) error {
	_, err := v.Launch(ctx, o)
	return err
}

// Whoever owns a group gives it back, and no other; other tags stay.
func TestDisclaim(t *testing.T) {
	b := claimed(t, blue)
	of := b.claimers()
	if err := of(green).Disclaim(t.Context(), "web", green); !errors.Is(err, asg.ErrChanged) || !strings.Contains(err.Error(), string(blue)) {
		t.Errorf("by another: %v", err)
	}
	if err := of(blue).Disclaim(t.Context(), "web", blue); err != nil {
		t.Fatal(err)
	}
	g, err := b.Group("web")
	if err != nil {
		t.Fatal(err)
	}
	if _, owned := g.Spec.Tags[contract.TagOwner]; owned || len(g.Spec.Tags) != len(enabled()) {
		t.Errorf("tags %v", g.Spec.Tags)
	}
	if err := of(blue).Disclaim(t.Context(), "web", blue); !errors.Is(err, asg.ErrAlready) {
		t.Errorf("again: %v", err)
	}
	if n := len(b.Calls(fakeaws.Operation("DeleteTags"))); n != 1 {
		t.Errorf("deleted %d times", n)
	}
}

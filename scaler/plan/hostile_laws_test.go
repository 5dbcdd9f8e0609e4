package plan_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// TestAttacksAreBounded: whatever one tenant makes, an evaluation takes no more steps than
// the bounds say beyond those for the same cluster without it, and needs no more memory
// than a fraction of what the scaler has. Steps and allocations are counted, not timed.
func TestAttacksAreBounded(t *testing.T) {
	const mostAllocated = 400 * mib // in all, of which most is free again at once
	village := func() *city {
		c := tangled(200, 40)
		for i, m := range someMachines(4) {
			c.group(fmt.Sprintf("group-%d", i), m, 1_000)
		}
		c.Groups[0].Max = 400
		return c
	}
	for _, c := range []struct {
		name    string
		village func() *city
		policy  policy.Policy
	}{
		{"unneeded", village, byThreshold()},
		{"balance", func() *city { return swappable(200) }, policy.DefaultPolicy()},
	} {
		baseSteps, baseAllocated := counted(c.village(), c.policy)
		for _, attack := range attacks {
			t.Run(c.name+"/"+attack.name, func(t *testing.T) {
				steps, allocated := counted(attack.on(c.village()).aged(), c.policy)
				if most := baseSteps + c.policy.Bounds.Growth + c.policy.Bounds.ScaleDown; steps > most {
					t.Errorf("%d steps, want at most %d", steps, most)
				}
				if most := baseAllocated + mostAllocated; allocated > most {
					t.Errorf("%d MiB are allocated, want at most %d", allocated/mib, most/mib)
				}
			})
		}
	}
}

// counted is what an evaluation takes: steps, and bytes that it allocates.
func counted(c *city, p policy.Policy) (steps, allocated int64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	steps = plan.Decide(c.Snapshot, p).Steps
	runtime.ReadMemStats(&after)
	return steps, int64(after.TotalAlloc - before.TotalAlloc)
}

// TestTenantChangesNothing: whatever pods a tenant makes that no node and no group takes,
// and however many, what happens to all others is the same to the word, while the tenant
// itself is cut. That others get what an evaluation bears is due to the shares alone: the
// bounds leave for all together little more than these need.
func TestTenantChangesNothing(t *testing.T) {
	cut := map[verdict.Reason]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := parsed(t, randomWorld(t, false))
		p := randomPolicy(t)
		p.Bounds.Growth = 8 * max(50, plan.Decide(w.Snapshot, p).Steps)
		p.Bounds.PodTerms = 600
		without := plan.Decide(w.Snapshot, p)
		n := rapid.OneOf(rapid.IntRange(1, 600), rapid.Just(600)).Draw(t, "pods") // few of the former are large
		s := tenanted(w.Snapshot, n, rapid.SampledFrom([]string{"apart", "selector", "both"}).Draw(t, "kind"))
		with := plan.Decide(s, p)
		if diff := cmp.Diff(without.Actions, with.Actions); diff != "" {
			t.Errorf("a tenant changes what is done (-without +with):\n%s\n%s", diff, scenario.Format(w.Snapshot))
		}
		if diff := cmp.Diff(without.Verdicts, othersThan(with.Verdicts, cut)); diff != "" {
			t.Errorf("a tenant changes what becomes of others (-without +with):\n%s\n%s", diff, scenario.Format(w.Snapshot))
		}
	})
	for _, reason := range []verdict.Reason{verdict.PodTermsLeftOut, verdict.PodBudgetSpent} {
		if cut[reason] == 0 {
			t.Errorf("no pod of the tenant was ever cut by %s: the bounds are too wide to tell anything", reason)
		}
	}
}

const tenant = "zz-tenant"

// tenanted is a snapshot with pods of a tenant that nothing takes, each unlike the others.
func tenanted(s fleet.Snapshot, n int, kind string) fleet.Snapshot {
	s.Pods = slices.Clip(s.Pods)
	for i := range n {
		name := fmt.Sprintf("pod-%04d", i)
		spec := &corev1.PodSpec{
			NodeSelector: map[string]string{"example.com/nowhere": "true"},
			Containers:   []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}}}},
		}
		if kind != "apart" {
			spec.NodeSelector = map[string]string{"example.com/nowhere": name}
		}
		if kind != "selector" {
			spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: without(name), TopologyKey: corev1.LabelHostname,
			}}}}
		}
		s.Pods = append(s.Pods, &fleet.Pod{
			Namespace: tenant, Name: name, UID: types.UID(tenant + name), Created: fleet.SecondOf(s.Now.Add(-time.Hour)), Judged: fleet.SecondOf(s.Now),
			Labels: map[string]string{"tenant": name}, Phase: fleet.PodPending, Scheduling: fleet.Unschedulable, Spec: spec,
		})
	}
	return s
}

// othersThan are the verdicts without those about the tenant's pods, which are counted by
// reason.
func othersThan(all []*verdict.Verdict, tenants map[verdict.Reason]int) []*verdict.Verdict {
	return slices.DeleteFunc(slices.Clone(all), func(v *verdict.Verdict) bool {
		is := v.Of == verdict.OfPod && strings.HasPrefix(v.Name, tenant+"/")
		if is {
			tenants[v.Reason]++
		}
		return is
	})
}

// TestSearchReachesAll: where the search for unneeded nodes uses up its work, each node is asked
// within some minutes all the same.
func TestSearchReachesAll(t *testing.T) {
	c := tangled(120, 40)
	p := byThreshold()
	p.UtilizationThreshold = 1
	p.Bounds.ScaleDown = plan.Decide(c.Snapshot, p).Steps / 8
	missed := notAsked(plan.Decide(c.Snapshot, p))
	if len(missed) < 40 {
		t.Fatalf("%d of 120 nodes are not asked at first: the bound is too wide to tell anything", len(missed))
	}
	for range 60 {
		c.Now = c.Now.Add(time.Minute)
		now := notAsked(plan.Decide(c.Snapshot, p))
		for name := range missed {
			if !now[name] {
				delete(missed, name)
			}
		}
		if len(missed) == 0 {
			return
		}
	}
	t.Errorf("%d nodes were not asked in an hour", len(missed))
}

func notAsked(got plan.Plan) map[string]bool {
	names := map[string]bool{}
	for _, v := range got.Verdicts {
		if v.Reason == verdict.NodeNotEvaluated {
			names[v.Name] = true
		}
	}
	return names
}

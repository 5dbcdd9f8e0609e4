package asg

import (
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/scaler/asg/template"
)

const (
	idleGroups = 100
	idleFor    = 10 * time.Minute
	// idleTarget is how many describe calls an idle minute may cost.
	idleTarget = 2.0
)

// BenchmarkAWSEconomyIdle counts what a scaler asks of AWS while a hundred groups
// idle for ten minutes, after the first reading. The clock is the Reader's own, so
// that the minutes pass at once.
func BenchmarkAWSEconomyIdle(b *testing.B) {
	for b.Loop() {
		calls := idle(b)
		b.ReportMetric(float64(len(calls))/idleFor.Minutes(), "describes/min")
		b.ReportMetric(idleTarget, "target-describes/min")
	}
}

func TestIdleIsCheap(t *testing.T) {
	calls := idle(t)
	if each := float64(len(calls)) / idleFor.Minutes(); each > idleTarget {
		t.Errorf("%.1f calls a minute, want %.0f at most: %v", each, idleTarget, count(calls))
	}
	if n := count(calls)["DescribeLaunchTemplateVersions"]; n != 1 {
		t.Errorf("the templates of %d groups were read again in %d calls", idleGroups, n)
	}
}

func count(calls []fakeaws.Call) map[string]int {
	out := map[string]int{}
	for _, c := range calls {
		out[c.Operation]++
	}
	return out
}

// idle returns the calls that ten idle minutes cost: all groups launch from
// $Latest and have a hook, half are managed ones of EKS, every tenth of the others
// has a warm pool that is full.
func idle(t testing.TB) []fakeaws.Call {
	t.Helper()
	var spec fakeaws.Spec
	for i := range idleGroups {
		name := fmt.Sprintf("group-%03d", i)
		g := fakeaws.Group{Name: name, Max: 5, Tags: map[string]string{"mine": ""}, LaunchTemplate: &fakeaws.TemplateRef{Name: name, Version: "$Latest"},
			Hooks: []fakeaws.Hook{{Name: "windlass", Transition: "terminate"}}}
		if i%2 == 0 {
			g.EKS = &fakeaws.Nodegroup{Cluster: "prod", Name: name}
		}
		if i%20 == 1 {
			g.WarmPool = &fakeaws.WarmPool{}
		}
		spec.Groups = append(spec.Groups, g)
		spec.LaunchTemplates = append(spec.LaunchTemplates, fakeaws.LaunchTemplate{Name: name, Versions: []fakeaws.TemplateVersion{{Type: "m5.large"}, {Type: "m5.xlarge"}}})
	}
	const moment = cloud.Duration(time.Millisecond)
	spec.Timing = fakeaws.Timing{Quick: true, Reconcile: moment, Pending: moment, Boot: moment, Shutdown: moment}
	aws, err := fakeaws.Start(fakeaws.Config{Spec: spec, NoIMDS: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := aws.Close(); err != nil {
			t.Error(err)
		}
	}()
	fillPools(t, aws)
	r := idleReader(t, aws.URL())
	read := func() {
		if err := r.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	r.now = func() time.Time { return now }
	read()
	if n := len(r.known); n != idleGroups {
		t.Fatalf("%d groups", n)
	}
	first := aws.LastSeq()
	for end := now.Add(idleFor); ; read() {
		now = now.Add(r.next(r.now(), false))
		if now.After(end) {
			break
		}
	}
	return aws.Calls(fakeaws.After(first))
}

// fillPools waits until the cloud is settled: until then the pools change, and are read more
// often.
func fillPools(t testing.TB, aws *fakeaws.Server) {
	t.Helper()
	for {
		var next time.Time
		var more bool
		if err := aws.With(func(c *cloud.Cloud, _ time.Time) error { next, more = c.Next(); return nil }); err != nil {
			t.Fatal(err)
		}
		if !more {
			return
		}
		if err := aws.Sleep(t.Context(), time.Until(next)); err != nil {
			t.Fatal(err)
		}
	}
}

func idleReader(t testing.TB, url string) *Reader {
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": url, "AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
	} {
		t.Setenv(name, value)
	}
	account, err := Dial(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	selection, err := ParseSelection(nil, []string{"asg:tag=mine"})
	if err != nil {
		t.Fatal(err)
	}
	return NewReader(account, selection, template.Assumptions{}, slog.New(slog.NewTextHandler(io.Discard, nil)), nil)
}

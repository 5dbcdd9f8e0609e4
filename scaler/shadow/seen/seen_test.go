package seen

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/shadow/record"
	"windlass.dev/windlass/scaler/status/cas"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func event(namespace, kind, name, reason, message string) *corev1.Event {
	in := namespace
	if kind == "Node" {
		in = ""
	}
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Source: corev1.EventSource{Component: "cluster-autoscaler"}, LastTimestamp: metav1.NewTime(noon),
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: in, Name: name}, Reason: reason, Message: message,
	}
}

// brief is a record in few words.
func brief(list []record.Record) string {
	var b strings.Builder
	for _, r := range list {
		s := r.Seen
		if s == nil {
			for _, g := range r.Sample.Groups {
				fmt.Fprintf(&b, "%s %s %d/%d;", r.At.Format(time.TimeOnly), g.Group, g.World.Nodes, g.World.Desired)
			}
			continue
		}
		fmt.Fprintf(&b, "%s %s %s", r.At.Format(time.TimeOnly), s.By, s.Kind)
		for _, part := range append([]string{s.Group, s.Node, s.Instance}, s.Pods...) {
			if part != "" {
				fmt.Fprintf(&b, " %s", part)
			}
		}
		if s.To != s.From {
			fmt.Fprintf(&b, " %d→%d", s.From, s.To)
		}
		b.WriteString(";")
	}
	return b.String()
}

func TestOfEvent(t *testing.T) {
	for _, c := range []struct {
		name, want string
		event      *corev1.Event
	}{
		{"a group grows", "12:00:00 cluster-autoscaler ScaleUp eks-web 2→5;", event("kube-system", "ConfigMap", "cluster-autoscaler-status", "ScaledUpGroup", "Scale-up: setting group eks-web size to 5 instead of 2 (max: 9)")},
		{"a group with blanks has grown", "12:00:00 cluster-autoscaler ScaleUp my web group 2→5;", event("kube-system", "ConfigMap", "cluster-autoscaler-status", "ScaledUpGroup", "Scale-up: group my web group size set to 5 instead of 2 (max: 9)")},
		{"growing failed", "12:00:00 cluster-autoscaler Failed eks-web;", event("kube-system", "ConfigMap", "cluster-autoscaler-status", "FailedToScaleUpGroup", "Scale-up failed for group eks-web: AccessDenied")},
		{"a node is to go", "12:00:00 cluster-autoscaler ScaleDown n1;", event("default", "Node", "n1", "ScaleDown", "marked the node as toBeDeleted/unschedulable")},
		{"a node goes, by the status", "12:00:00 cluster-autoscaler ScaleDown ip-10-0-0-1.ec2.internal;", event("kube-system", "ConfigMap", "cluster-autoscaler-status", "ScaleDown", "Scale-down: removing node ip-10-0-0-1.ec2.internal, utilization: 0.1")},
		{"an empty one", "12:00:00 cluster-autoscaler ScaleDown n2;", event("kube-system", "ConfigMap", "cluster-autoscaler-status", "ScaleDownEmpty", `Scale-down: removing empty node "n2"`)},
		{"a drain failed", "12:00:00 cluster-autoscaler Failed n1;", event("default", "Node", "n1", "ScaleDownFailed", "failed to drain the node")},
		{"an instance never joined", "12:00:00 cluster-autoscaler ScaleDown i-0abc;", event("kube-system", "ConfigMap", "cluster-autoscaler-status", "DeleteUnregistered", "Removed unregistered node aws:///eu-west-1a/i-0abc")},
		{"a pod has groups grow", "12:00:00 claim ScaleUp a shop/cart 1→2;12:00:00 claim ScaleUp b c shop/cart 0→1;", event("shop", "Pod", "cart", "TriggeredScaleUp", "pod triggered scale-up: [{a 1->2 (max: 3)} {b c 0->1 (max: 5)}]")},
		{"a pod has none", "12:00:00 claim Unhelped shop/cart;", event("shop", "Pod", "cart", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached")},

		{"a tenant's Event of a group", "", event("shop", "ConfigMap", "cluster-autoscaler-status", "ScaledUpGroup", "Scale-up: setting group eks-web size to 5 instead of 2 (max: 9)")},
		{"a tenant's Event of a node", "", event("shop", "Node", "n1", "ScaleDown", "marked")},
		{"a tenant's Event of another's pod", "", func() *corev1.Event {
			e := event("shop", "Pod", "cart", "TriggeredScaleUp", "pod triggered scale-up: [{a 1->2 (max: 3)}]")
			e.InvolvedObject.Namespace = "bank"
			return e
		}()},
		{"an Event of Windlass", "", func() *corev1.Event {
			e := event("default", "Node", "n1", "ScaleDown", "")
			e.Source.Component = contract.AppScaler
			return e
		}()},
		{"no group", "", event("kube-system", "ConfigMap", "cluster-autoscaler-status", "ScaledUpGroup", "Scale-up")},
		{"figures that are none", "12:00:00 cluster-autoscaler ScaleUp g;", event("kube-system", "ConfigMap", "cluster-autoscaler-status", "ScaledUpGroup", "group g size to 99999999999999999999 instead of 0")},
		{"another reason", "", event("kube-system", "ConfigMap", "cluster-autoscaler-status", "LeaderElection", "became leader")},
		{"a newer recorder", "12:00:05 cluster-autoscaler ScaleDown n1;", func() *corev1.Event {
			e := event("default", "Node", "n1", "ScaleDown", "")
			e.Source.Component, e.ReportingController, e.LastTimestamp = "", "cluster-autoscaler", metav1.Time{}
			e.EventTime, e.Series = metav1.NewMicroTime(noon), &corev1.EventSeries{Count: 2, LastObservedTime: metav1.NewMicroTime(noon.Add(5 * time.Second))}
			return e
		}()},
		{"when it was written", "12:00:00 cluster-autoscaler ScaleDown n1;", func() *corev1.Event {
			e := event("default", "Node", "n1", "ScaleDown", "")
			e.LastTimestamp, e.CreationTimestamp = metav1.Time{}, metav1.NewTime(noon)
			return e
		}()},
	} {
		if got := brief(OfEvent(c.event, "kube-system")); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	undated := event("default", "Node", "n1", "ScaleDown", "")
	undated.LastTimestamp = metav1.Time{}
	if got := OfEvent(undated, "kube-system"); len(got) != 1 || !got[0].At.IsZero() {
		t.Errorf("an Event without a date: %v", got)
	}
}

// TestTenantsProveNothing: whatever stands in an Event of another namespace than default and Cluster
// Autoscaler's own, what is read of it is a claim about a pod there.
func TestTenantsProveNothing(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "kube-system", "default", "cluster-autoscaler", "Node", "ConfigMap", "Pod", "ScaledUpGroup", "TriggeredScaleUp", "ScaleDown", "ScaleDownFailed",
		"Scale-up: setting group web size to 5 instead of 2 (max: 9)", "pod triggered scale-up: " + strings.Repeat("[{web 1->2 (max: 3)}]", 99)}))
	rapid.Check(t, func(t *rapid.T) {
		e := &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Source: corev1.EventSource{Component: text.Draw(t, "component")}, ReportingController: text.Draw(t, "controller"), LastTimestamp: metav1.NewTime(noon),
			InvolvedObject: corev1.ObjectReference{Kind: text.Draw(t, "kind"), Namespace: rapid.SampledFrom([]string{"shop", "", "kube-system", "bank"}).Draw(t, "of"), Name: text.Draw(t, "name")}, Reason: text.Draw(t, "reason"), Message: text.Draw(t, "message"),
		}
		got := OfEvent(e, "kube-system")
		for _, r := range got {
			if s := r.Seen; s == nil || s.By != record.ByClaim || s.Node != "" || len(s.Pods) != 1 || !strings.HasPrefix(s.Pods[0], "shop/") {
				t.Fatalf("%+v is read of %+v", s, e)
			}
		}
		if len(got) > mostGroups {
			t.Fatalf("%d records of one Event", len(got))
		}
	})
}

func TestOfTaint(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{fmt.Sprint(noon.Unix()), "12:00:00 cluster-autoscaler Tainted web n1;"}, {"soon", ""}, {"", ""}, {"-1", ""}, {"99999999999999", ""},
	} {
		var got []record.Record
		if r, is := OfTaint("n1", "web", []corev1.Taint{{Key: "other"}, {Key: contract.TaintToBeDeleted, Value: c.value}}); is {
			got = append(got, r)
		}
		if brief(got) != c.want {
			t.Errorf("%q: %q, want %q", c.value, brief(got), c.want)
		}
	}
}

func TestOfActivity(t *testing.T) {
	const difference = " At 2026-03-01T12:00:10Z an instance was started in response to a difference between desired and actual capacity, increasing the capacity from 2 to 3."
	for _, c := range []struct {
		name, want string
		a          Activity
	}{
		{"somebody set desired", "12:00:00 unknown ScaleUp web 2→5;12:00:10 unknown NodeCame web i-01;", Activity{Description: launching + ": i-01", StatusCode: "Successful", Cause: "At 2026-03-01T12:00:00Z a user request explicitly set group desired capacity changing the desired capacity from 2 to 5." + difference}},
		{"a schedule did", "12:00:00 auto-scaling ScaleUp web 2→5;12:00:10 auto-scaling NodeCame web i-01;", Activity{Description: launching + ": i-01", StatusCode: "Successful", Cause: "At 2026-03-01T12:00:00Z a scheduled action update of AutoScalingGroup constraints to min: 5, max: 9, desired: 5 changing the desired capacity from 2 to 5." + difference}},
		{"somebody lowered it", "12:00:00 unknown DesiredChanged web 5→2;12:00:10 unknown ScaleDown web i-01;", Activity{Description: terminating + ": i-01", StatusCode: "Successful", Cause: "At 2026-03-01T12:00:00Z a user request explicitly set group desired capacity changing the desired capacity from 5 to 2."}},
		{"somebody ended one", "12:00:10 unknown ScaleDown web i-01;", Activity{Description: terminating + ": i-01", StatusCode: "InProgress", Cause: "At 2026-03-01T12:00:09Z an instance was taken out of service in response to a user request, shrinking the capacity from 3 to 2."}},
		{"it was ill", "12:00:10 auto-scaling ScaleDown web i-01;", Activity{Description: terminating + ": i-01", Cause: "At 2026-03-01T12:00:09Z an instance was taken out of service in response to an EC2 health check indicating it has been terminated or stopped."}},
		{"no capacity", "12:00:10 auto-scaling Failed web;", Activity{Description: launching, StatusCode: "Failed", StatusMessage: "We currently do not have sufficient m5.large capacity"}},
		{"no such date", "12:00:10 unknown NodeCame web i-01;", Activity{Description: launching + ": i-01", Cause: "At noon a user request changing the desired capacity from 2 to 5."}},
		{"something else", "", Activity{Description: "Suspending processes"}},
	} {
		c.a.Group, c.a.Start = "web", noon.Add(10*time.Second)
		if got := brief(OfActivity(c.a)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if _, err := ReadActivities([]byte("{")); err == nil {
		t.Error("what is cut off is read")
	}
	got, err := ReadActivities([]byte(`{"Activities":[{"ActivityId":"1","AutoScalingGroupName":"web","Description":"d","Cause":"c","StartTime":"2026-03-01T12:00:00.123000+00:00","EndTime":"2026-03-01T12:01:00+00:00","StatusCode":"Successful","Progress":100,"Details":"{}"}]}`))
	if diff := cmp.Diff([]Activity{{ID: "1", Group: "web", Description: "d", Cause: "c", StatusCode: "Successful", Start: noon.Add(123 * time.Millisecond)}}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestOfStatus(t *testing.T) {
	s, err := cas.Parse(`
time: 2026-03-01 12:00:00.5 +0000 UTC
autoscalerStatus: Running
nodeGroups:
- name: web
  health: {status: Healthy, nodeCounts: {registered: {total: 3, ready: 3}, unregistered: 1}, cloudProviderTarget: 4}
  scaleUp: {status: InProgress}
- name: gpu
  health: {status: Healthy, nodeCounts: {registered: {total: 0}}, cloudProviderTarget: 0}
  scaleUp: {status: Backoff, lastTransitionTime: "2026-03-01T11:55:00Z", backoffInfo: {errorCode: OutOfResources, errorMessage: none left}}
`)
	if err != nil {
		t.Fatal(err)
	}
	got := OfStatus(s)
	if diff := cmp.Diff("11:55:00 cluster-autoscaler Failed gpu;12:00:00 web 4/4;12:00:00 gpu 0/0;", brief(got)); diff != "" || got[0].Seen.Why != "in back-off: OutOfResources: none left" {
		t.Error(diff, got[0].Seen.Why)
	}
	if got := OfStatus(cas.Status{}); got != nil {
		t.Errorf("of no status: %v", got)
	}
}

package world

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
)

// TestNodeFollowsItsInstance: one life of an instance, with a reboot, a stay in
// a warm pool and an API server that fails now and then.
func TestNodeFollowsItsInstance(t *testing.T) {
	client := fake.NewClientset()
	broken := false
	client.PrependReactor("*", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return broken, nil, errors.New("the API server is away")
	})
	var power []string
	j := newJoiner(client, slog.New(slog.DiscardHandler))
	j.hardware = &simulated{
		client: client, region: "eu-west-1",
		readyAt:  func(string) time.Time { return time.Now().Add(time.Minute) },
		groups:   func(string) (cloud.Group, bool) { return cloud.Group{Name: "web"}, true },
		disk:     func(cloud.Instance) int { return 20 },
		nameless: j.isAnonymous,
		powerOff: func(node string) { power = append(power, "off "+node) },
		powerOn:  func(_ context.Context, node string) { power = append(power, "on "+node) },
	}

	i := cloud.Instance{ID: "i-1", Group: "web", Type: "m5.large", Zone: "eu-west-1a", PrivateDNSName: "n1", MemoryMiB: 7800, OS: cloud.OSBooting, BootID: "boot-1"}
	step := func(change func()) error {
		change()
		j.observe(i)
		return j.reconcile(t.Context(), i.ID)
	}
	node := func() *corev1.Node {
		t.Helper()
		n, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	ready := func() corev1.ConditionStatus { return node().Status.Conditions[0].Status }

	if err := step(func() {}); err != nil {
		t.Fatal(err)
	}
	if _, ok := j.instance("n1"); ok {
		t.Error("a booting machine has a Node")
	}

	if err := step(func() { i.OS, broken = cloud.OSUp, true }); err == nil {
		t.Error("an API server that is away was no error")
	}
	if err := step(func() { broken = false }); err != nil {
		t.Fatal(err)
	}
	if got := ready(); got != corev1.ConditionFalse {
		t.Errorf("a new node's Ready is %s, want False", got)
	}
	at, err := time.Parse(time.RFC3339Nano, node().Annotations[annotationReadyAt])
	if err != nil || time.Until(at) > time.Minute || time.Until(at) < 50*time.Second {
		t.Errorf("it turns Ready at %s (%v), want in a minute", at, err)
	}

	if err := step(func() { i.OS = cloud.OSOff }); err != nil {
		t.Fatal(err)
	}
	if got := ready(); got != corev1.ConditionUnknown {
		t.Errorf("a halted node's Ready is %s, want Unknown", got)
	}
	if diff := cmp.Diff([]string{"on n1", "off n1"}, power); diff != "" {
		t.Errorf("what runs on n1 does not end with the machine:\n%s", diff)
	}

	if err := step(func() { i.OS, i.BootID = cloud.OSUp, "boot-2" }); err != nil {
		t.Fatal(err)
	}
	if got := node().Status.NodeInfo.BootID; got != "boot-2" {
		t.Errorf("boot id after a boot: %q", got)
	}
	if last := power[len(power)-1]; last != "on n1" {
		t.Errorf("after a boot the last was %q, want what ran on n1 to run again", last)
	}

	if err := step(func() { i.Gone, i.OS = true, cloud.OSOff }); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Node outlived its instance: %v", err)
	}
	if all := j.instances(); len(all) != 0 {
		t.Errorf("instances after the end: %v", all)
	}
}

// TestStrays: machines of another cluster never register, those whose Node has no
// provider id get it later, and a kubelet may be slow.
func TestStrays(t *testing.T) {
	client := fake.NewClientset()
	j := newJoiner(client, slog.New(slog.DiscardHandler))
	j.hardware = &simulated{
		client: client, region: "eu-west-1",
		readyAt:  func(string) time.Time { return time.Now() },
		groups:   func(string) (cloud.Group, bool) { return cloud.Group{Name: "web"}, true },
		disk:     func(cloud.Instance) int { return 20 },
		nameless: j.isAnonymous,
		powerOff: func(string) {}, powerOn: func(context.Context, string) {},
	}
	w := &World{Client: client, joiner: j}
	comes := func(id string) (cloud.Instance, error) {
		i := cloud.Instance{ID: id, Group: "web", Type: "m5.large", Zone: "eu-west-1a", PrivateDNSName: "n-" + id, OS: cloud.OSUp, BootID: "b"}
		j.observe(i)
		return i, j.reconcile(t.Context(), id)
	}
	provider := func(i cloud.Instance) string {
		n, err := client.CoreV1().Nodes().Get(t.Context(), i.PrivateDNSName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "no Node"
		}
		return n.Spec.ProviderID
	}

	w.JoinElsewhere("web", true)
	stranger, err := comes("i-1")
	if err != nil || provider(stranger) != "no Node" || !w.Elsewhere("i-1") {
		t.Errorf("a machine of another cluster: %v, provider id %q", err, provider(stranger))
	}
	w.JoinElsewhere("web", false)
	if _, err := comes("i-1"); err != nil || provider(stranger) != "no Node" {
		t.Errorf("it has joined all the same: %v, provider id %q", err, provider(stranger))
	}
	if err := w.Register(t.Context(), stranger, true); err != nil || provider(stranger) != "" || w.Elsewhere("i-1") {
		t.Errorf("it registers without a provider id: %v, %q", err, provider(stranger))
	}
	if err := w.Identify(t.Context(), stranger); err != nil || provider(stranger) != stranger.ProviderID() {
		t.Errorf("it gets its provider id: %v, %q", err, provider(stranger))
	}

	w.DelayJoining(time.Now().Add(time.Hour))
	slow, err := comes("i-2")
	if !errors.Is(err, errTooEarly) || provider(slow) != "no Node" {
		t.Errorf("a slow kubelet: %v, %q", err, provider(slow))
	}
	w.DelayJoining(time.Time{})
	if _, err := comes("i-2"); err != nil || provider(slow) != slow.ProviderID() {
		t.Errorf("after its time: %v, %q", err, provider(slow))
	}
}

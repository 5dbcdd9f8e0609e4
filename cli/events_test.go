package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
)

// said is an Event of the agent about a Node.
func said(namespace, name, node, text string, at time.Time) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: "1"},
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: node}, Reason: contract.EventDrained, Message: text, LastTimestamp: metav1.NewTime(at),
		Source: corev1.EventSource{Component: contract.AppAgent}, ReportingController: contract.AppAgent,
	}
}

// Who may create Events in a namespace of his own does not speak for Windlass.
func TestEventsOfTenantsAreNotBelieved(t *testing.T) {
	now := time.Now()
	page := objects(t, view.World{})[0]
	group := said("shop", "group", "windlass-status", "forged growth", now)
	group.InvolvedObject = corev1.ObjectReference{Kind: "ConfigMap", Namespace: "shop", Name: contract.ConfigMapStatus}
	group.Reason = contract.EventScaledUpGroup
	client := fake.NewClientset(page, said("default", "own", "a", "own words", now), said("shop", "forged", "a", "forged drain", now), group)
	for _, args := range []string{"events", "events --all", "status"} {
		out := &bytes.Buffer{}
		c := newCLI(t, view.World{Now: now}, out)
		c.connect = func() (kubernetes.Interface, error) { return client, nil }
		if err := c.run(t.Context(), strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); !strings.Contains(text, "own words") || strings.Contains(text, "forged") {
			t.Errorf("%s:\n%s", args, text)
		}
	}
}

// Of very many Events the latest are shown, and how many are not is said.
func TestManyEvents(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	const all = 50_000
	client := fake.NewClientset()
	client.PrependReactor("list", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
		list := &corev1.EventList{}
		list.ResourceVersion = "1"
		if a.GetNamespace() != metav1.NamespaceDefault && a.GetNamespace() != metav1.NamespaceAll {
			return true, list, nil
		}
		options := a.(clienttesting.ListActionImpl).ListOptions
		from := 0
		if options.Continue != "" {
			var err error
			if from, err = strconv.Atoi(options.Continue); err != nil {
				t.Fatal(err)
			}
		}
		to := min(all, from+int(options.Limit))
		for i := from; i < to; i++ {
			list.Items = append(list.Items, *said("default", fmt.Sprint(i), "a", fmt.Sprintf("number %d.", i), now.Add(time.Duration(i-all)*time.Millisecond)))
		}
		if to < all {
			list.Continue = strconv.Itoa(to)
		}
		return true, list, nil
	})
	out := &bytes.Buffer{}
	c := newCLI(t, view.World{Now: now}, out)
	c.connect = func() (kubernetes.Interface, error) { return client, nil }
	if err := c.run(t.Context(), []string{"events"}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), fmt.Sprintf("number %d.", all-1)) || strings.Contains(out.String(), "number 1.") {
		t.Error("the latest Event is not shown, or the oldest is")
	}
	if want := fmt.Sprintf("%d older Events are not shown", all-mostEvents); !strings.Contains(out.String(), want) {
		t.Errorf("it does not say that %s", want)
	}
}

// What goes on while somebody watches has who asked for it, as what went before has.
func TestEventsWatchSaysWhoAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := named("a")[0]
		node.Annotations = map[string]string{contract.AnnotationDrainRequest: contract.Request{ID: "request:x", Kind: contract.KindRequest, By: "ann@example.com", At: contract.At(time.Now())}.String()}
		client := fake.NewClientset(&node)
		client.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, &corev1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
		})
		out := &bytes.Buffer{}
		c := newCLI(t, view.World{}, out)
		c.now = time.Now
		c.connect = func() (kubernetes.Interface, error) { return client, nil }
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.run(ctx, []string{"events", "-w"}) }()
		synctest.Wait()
		event := said("default", "e", "a", "drained", time.Now())
		event.Annotations = map[string]string{contract.AnnotationEventID: "request:x", contract.AnnotationEventKind: string(contract.KindRequest)}
		if _, err := client.CoreV1().Events("default").Create(ctx, event, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if text := out.String(); !strings.Contains(text, "Drained   node/a   ann@example.com   drained\n") {
			t.Errorf("%s", text)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"windlass.dev/windlass/notifier/delivery"
	"windlass.dev/windlass/notifier/happening"
	"windlass.dev/windlass/pkg/contract"
)

const ours = "windlass-system"

func state(n int) Saved {
	s := Saved{Sent: delivery.Sent{"ops": {Messages: []delivery.Posted{{Number: 1, Of: []string{"h0"}, Ref: "r"}}}}}
	for i := range n {
		s.State.Happenings = append(s.State.Happenings, happening.Happening{ID: fmt.Sprint("h", i), Kind: happening.Fault, Began: time.Unix(int64(1_700_000_000+i), 0).UTC(), Text: strings.Repeat("x", 500), Names: make([]string, 20)})
	}
	return s
}

// What one process saves the next one reads; the same is not written twice.
func TestOutlivesItsProcess(t *testing.T) {
	client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ours, Name: contract.ConfigMapNotifier}}) // as the component makes it
	maps := client.CoreV1().ConfigMaps(ours)
	one := New(maps)
	if got, err := one.Load(t.Context()); err != nil || len(got.State.Happenings) != 0 || got.Sent == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	for range 3 {
		if _, err := one.Save(t.Context(), state(2)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(client.Actions()); n != 2 {
		t.Errorf("%d calls", n)
	}
	got, err := New(maps).Load(t.Context())
	if diff := cmp.Diff(state(2), got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

// What others have put on the ConfigMap stays there.
func TestKeepsWhatOthersPutThere(t *testing.T) {
	labels, annotations := map[string]string{"argocd.argoproj.io/instance": "windlass", contract.LabelAppName: "x"}, map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}
	client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ours, Name: contract.ConfigMapNotifier, Labels: labels, Annotations: annotations}, Data: map[string]string{"note": "by hand"}})
	maps := client.CoreV1().ConfigMaps(ours)
	one := New(maps)
	if _, err := one.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := one.Save(t.Context(), state(i)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := maps.Get(t.Context(), contract.ConfigMapNotifier, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	labels[contract.LabelAppName] = contract.AppNotifier
	if diff := cmp.Diff(labels, got.Labels) + cmp.Diff(annotations, got.Annotations); diff != "" || got.Data["note"] != "by hand" || got.Data[key] == "" {
		t.Errorf("%v: %s", got.Data["note"], diff)
	}
}

// Two that send find out.
func TestHasOneWriter(t *testing.T) {
	client := fake.NewClientset()
	maps := client.CoreV1().ConfigMaps(ours)
	one, other := New(maps), New(maps)
	if _, err := one.Save(t.Context(), state(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Save(t.Context(), state(2)); !errors.Is(err, ErrOthers) {
		t.Errorf("the second that makes it: %v", err)
	}
	client.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(corev1.Resource("configmaps"), contract.ConfigMapNotifier, nil)
	})
	if _, err := one.Save(t.Context(), state(3)); !errors.Is(err, ErrOthers) {
		t.Errorf("the second that changes it: %v", err)
	}
}

// What is not ours is replaced, and what is odd in it dropped.
func TestUnreadable(t *testing.T) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ours, Name: contract.ConfigMapNotifier}}
	load := func(text string) (Saved, error) {
		object.Data = map[string]string{key: text}
		s := New(fake.NewClientset(object).CoreV1().ConfigMaps(ours))
		saved, err := s.Load(t.Context())
		if _, err := s.Save(t.Context(), state(1)); err != nil {
			t.Errorf("writing anew: %v", err)
		}
		return saved, err
	}
	for _, text := range []string{"{", `[]`, `{"state":{"happenings":[{"began":"soon"}]}}`} {
		if got, err := load(text); !errors.Is(err, ErrUnreadable) || got.Sent == nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	got, err := load(`{"sent":{"a":null},"state":{"happenings":[{"id":"x","kind":"fault","began":"2026-08-01T12:00:00Z"},{"id":"x","kind":"fault","began":"2026-08-01T12:00:00Z"},{"id":"y","kind":"odd"},{}]}}`)
	if err != nil || len(got.State.Happenings) != 1 || len(got.Sent) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	bomb, err := pack([]byte(strings.Repeat(" ", mostPlain+1)))
	if err != nil {
		t.Fatal(err)
	}
	for _, packed := range [][]byte{{}, []byte("{}"), bomb, bomb[:100]} {
		object.BinaryData = map[string][]byte{packedKey: packed}
		if got, err := load(""); !errors.Is(err, ErrUnreadable) || got.Sent == nil {
			t.Errorf("%d bytes: %v", len(packed), err)
		}
	}
	object.BinaryData = nil
	if got, err := load("null"); err != nil || got.Sent == nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// However much there is, it has room in its ConfigMap.
func TestHasRoom(t *testing.T) {
	maps := fake.NewClientset().CoreV1().ConfigMaps(ours)
	large, dice := state(5_000), rand.New(rand.NewPCG(1, 2))
	for i := range large.State.Happenings {
		text := make([]byte, 500) // which compresses little
		for j := range text {
			text[j] = byte('!' + dice.IntN(90))
		}
		large.State.Happenings[i].Text = string(text)
	}
	got, err := New(maps).Save(t.Context(), large)
	if err != nil {
		t.Fatal(err)
	}
	object, err := maps.Get(t.Context(), contract.ConfigMapNotifier, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(object.BinaryData[packedKey]); n > mostBytes || n < mostBytes/2 || len(got.State.Happenings) == 0 || got.State.Totals.Shed == 0 {
		t.Errorf("%d bytes, %d happenings, %d shed", n, len(got.State.Happenings), got.State.Totals.Shed)
	}
	next := New(maps)
	read, err := next.Load(t.Context())
	if diff := cmp.Diff(got, read, cmpopts.EquateEmpty()); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	// What is small again can be read by people, and nothing else is left.
	if _, err := next.Save(t.Context(), state(1)); err != nil {
		t.Fatal(err)
	}
	object, err = maps.Get(t.Context(), contract.ConfigMapNotifier, metav1.GetOptions{})
	if err != nil || object.Data[key] == "" || len(object.BinaryData) > 0 {
		t.Errorf("%v: data %d, binary data %d", err, len(object.Data), len(object.BinaryData))
	}
}

// What services were sent has room, too: it goes with what it was about.
func TestHasRoomForWhatWasSent(t *testing.T) {
	full := state(400)
	full.Sent = delivery.Sent{}
	for i := range 10 {
		service := &delivery.Service{}
		for j := range 400 {
			service.Messages = append(service.Messages, delivery.Posted{Number: j, Of: []string{fmt.Sprint("h", j)}, Ref: strings.Repeat("r", 150), Ended: j >= 200})
		}
		full.Sent[fmt.Sprint("service-", i)] = service
	}
	for i := range full.State.Happenings {
		h := &full.State.Happenings[i]
		h.Text, h.Ended = "", h.Began
	}
	got, err := New(fake.NewClientset().CoreV1().ConfigMaps(ours)).Save(t.Context(), full)
	if err != nil || len(got.State.Happenings) == 0 || len(got.Sent) != 10 {
		t.Fatalf("%d happenings, %d services, %v", len(got.State.Happenings), len(got.Sent), err)
	}
	// Those that nobody has to hear more of went first.
	if h := got.State.Happenings[min(199, len(got.State.Happenings)-1)]; h.ID != "h199" {
		t.Errorf("%s is the 200th that is left", h.ID)
	}
	for name, service := range got.Sent {
		if len(service.Messages) != len(got.State.Happenings) {
			t.Errorf("%s: %d messages about %d happenings", name, len(service.Messages), len(got.State.Happenings))
		}
	}
}

// Where nothing is left to shed, there is an error, and no end of trying.
func TestHasNoRoom(t *testing.T) {
	full := state(3)
	full.State.Totals.Notices = map[string]int{strings.Repeat("<", 1_500_000): 1}
	s := New(fake.NewClientset().CoreV1().ConfigMaps(ours))
	if _, err := s.Save(t.Context(), full); !errors.Is(err, errNoRoom) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Save(ctx, full); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

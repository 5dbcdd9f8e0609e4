package status

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/status/cas"
)

const casName = contract.ConfigMapClusterAutoscalerStatus

// casRun is a board at work on a cluster that records all calls.
type casRun struct {
	*CASBoard
	client *fake.Clientset
	log    bytes.Buffer
}

// boarding runs a board in virtual time, until the test's function ends.
func boarding(t *testing.T, test func(t *testing.T, r *casRun), objects ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &casRun{client: fake.NewClientset(objects...)}
		r.CASBoard = NewCASBoard(r.client.CoreV1().ConfigMaps(ours), casName, slog.New(slog.NewTextHandler(&r.log, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.Run(ctx); close(done) }()
		defer func() { cancel(); <-done }()
		test(t, r)
	})
}

// said draws a status with a message, healthy since its first time.
func said(message string) func(cas.Status) cas.Status {
	return func(last cas.Status) cas.Status {
		at := last.ClusterWide.Health.LastTransitionTime
		if at.IsZero() {
			at = metav1.NewTime(time.Now().Truncate(time.Second))
		}
		return cas.Status{Message: message, ClusterWide: cas.ClusterWide{Health: cas.ClusterHealth{Condition: cas.Condition{Status: cas.Healthy, LastTransitionTime: at}}}}
	}
}

// stands is what is in the ConfigMap; nil where there is none.
func (r *casRun) stands(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	object, err := r.client.CoreV1().ConfigMaps(ours).Get(context.Background(), casName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// written counts the writes so far.
func (r *casRun) written() int {
	n := 0
	for _, a := range r.client.Actions() {
		if a.GetVerb() == "create" || a.GetVerb() == "update" {
			n++
		}
	}
	return n
}

// others is a status that another program has written that long ago.
func others(ago time.Duration) *corev1.ConfigMap {
	at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(-ago).Format(cas.TimeFormat) // synctest's present
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: ours, Name: casName, Annotations: map[string]string{contract.AnnotationLastUpdated: at}},
		Data:       map[string]string{"status": "message: theirs\n", "other": "kept"},
	}
}

// The status is written when it changes, at most every ten seconds, and renewed once a minute
// while the loop evaluates.
func TestCASBoardWritesOnChange(t *testing.T) {
	boarding(t, func(t *testing.T, r *casRun) {
		r.Post(said("one"))
		synctest.Wait()
		first := r.stands(t)
		if first == nil || !strings.Contains(first.Data["status"], "message: one") || first.Annotations[contract.AnnotationLastUpdated] == "" {
			t.Fatalf("written: %+v", first)
		}
		for range 25 { // something else each second
			r.Post(said(time.Now().String()))
			time.Sleep(time.Second)
		}
		if n := r.written(); n != 3 {
			t.Errorf("%d writes in 25 seconds", n)
		}
		r.Post(said("two"))
		time.Sleep(20 * time.Second)
		before, since := r.written(), time.Now()
		for time.Since(since) < 5*time.Minute {
			r.Evaluated(time.Now())
			time.Sleep(5 * time.Second)
		}
		if n := r.written() - before; n < 4 || n > 5 {
			t.Errorf("%d writes in five minutes in which nothing changed", n)
		}
		before = r.written()
		time.Sleep(5 * time.Minute)
		if n := r.written() - before; n != 0 {
			t.Errorf("%d writes while nobody looked: it is no word of a live loop", n)
		}
	})
}

// Since when something is so outlives the process: it stands in the ConfigMap.
func TestCASBoardRemembersTransitions(t *testing.T) {
	boarding(t, func(t *testing.T, r *casRun) {
		began := time.Now().UTC().Format(time.RFC3339)
		r.Post(said("one"))
		time.Sleep(time.Minute)
		next := NewCASBoard(r.client.CoreV1().ConfigMaps(ours), casName, r.logger)
		next.Post(said("two"))
		if err := next.sync(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		text := r.stands(t).Data["status"]
		if !strings.Contains(text, "message: two") || !strings.Contains(text, `lastTransitionTime: "`+began+`"`) {
			t.Errorf("began %s:\n%s", began, text)
		}
	})
}

// Beside a Cluster Autoscaler that is alive nothing is written, nor removed; what a dead
// one left is taken over, with what others keep there.
func TestCASBoardAndOthers(t *testing.T) {
	boarding(t, func(t *testing.T, r *casRun) {
		r.Post(said("ours"))
		time.Sleep(30 * time.Second)
		if text := r.stands(t).Data["status"]; text != "message: theirs\n" {
			t.Errorf("a status of a minute ago is overwritten:\n%s", text)
		}
		r.Remove()
		for range 20 {
			r.Evaluated(time.Now())
			time.Sleep(10 * time.Second)
		}
		object := r.stands(t)
		if object == nil {
			t.Fatal("what others wrote was removed")
		}
		if !strings.Contains(object.Data["status"], "message: ours") || object.Data["other"] != "kept" {
			t.Errorf("what a dead one left: %v", object.Data)
		}
	}, others(time.Minute))
}

// Once somebody else has written, the status is theirs: also if they keep our mark, as
// whoever changes an object does.
func TestCASBoardGivesWay(t *testing.T) {
	boarding(t, func(t *testing.T, r *casRun) {
		r.Post(said("ours"))
		synctest.Wait()
		object := r.stands(t)
		time.Sleep(time.Second)
		object.Annotations[contract.AnnotationLastUpdated] = time.Now().UTC().Format(cas.TimeFormat)
		object.Data["status"] = "message: theirs\n"
		if _, err := r.client.CoreV1().ConfigMaps(ours).Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		r.Post(said("ours again"))
		time.Sleep(time.Minute)
		r.Remove()
		if object := r.stands(t); object == nil || object.Data["status"] != "message: theirs\n" {
			t.Errorf("stands: %+v", object)
		}
	})
}

// Withdrawn, such as when a Cluster Autoscaler was seen, nothing is written any more.
func TestCASBoardWithdrawn(t *testing.T) {
	boarding(t, func(t *testing.T, r *casRun) {
		r.Post(nil)
		r.Evaluated(time.Now())
		time.Sleep(2 * time.Minute)
		if n := len(r.client.Actions()); n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}

// At the end our status goes, and only the version that was read.
func TestCASBoardRemoves(t *testing.T) {
	boarding(t, func(t *testing.T, r *casRun) {
		r.Remove() // nothing is there, which is no trouble
		r.Post(said("ours"))
		synctest.Wait()
		r.client.PrependReactor("delete", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
			options := action.(clienttesting.DeleteActionImpl).DeleteOptions
			if options.Preconditions == nil || options.Preconditions.ResourceVersion == nil || options.Preconditions.UID == nil {
				t.Errorf("deleted whatever it is: %+v", options)
			}
			return false, nil, nil
		})
		r.Remove()
		if r.stands(t) != nil {
			t.Error("it is still there")
		}
		if r.log.Len() != 0 {
			t.Errorf("logged: %s", r.log.String())
		}
	})
}

// What cannot be written is tried again, and reported once.
func TestCASBoardTriesAgain(t *testing.T) {
	boarding(t, func(t *testing.T, r *casRun) {
		var denied atomic.Bool
		denied.Store(true)
		r.client.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			if !denied.Load() {
				return false, nil, nil
			}
			return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), casName, nil)
		})
		r.Post(said("ours"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := strings.Count(r.log.String(), "not written"); n != 1 {
			t.Errorf("told %d times", n)
		}
		denied.Store(false)
		time.Sleep(casEvery)
		synctest.Wait()
		if r.stands(t) == nil {
			t.Error("it was not tried again")
		}
	})
}

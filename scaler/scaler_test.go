package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
	"windlass.dev/windlass/scaler/asg"
)

// A reading that grows old without a failure is trouble too: the calls hang.
func TestReadingTrouble(t *testing.T) {
	failed := errors.New("AWS is away")
	for _, tc := range []struct {
		age  time.Duration
		err  error
		want string
	}{
		{0, nil, ""}, {30 * time.Second, nil, ""}, {time.Second, failed, "AWS is away"},
		{5 * time.Minute, failed, "AWS is away"}, {5 * time.Minute, nil, "the groups were last read 5m0s ago"},
	} {
		if got := textOf(readingTrouble(tc.age, tc.err)); got != tc.want {
			t.Errorf("age %s, %v: %q, want %q", tc.age, tc.err, got, tc.want)
		}
	}
}

// The page of a turn that failed says, as all others do, that nothing is done in a dry run.
func TestTroubleOfDryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		sc := newScaler(settings{namespace: "us", dryRun: true}, client, nil, nil, awsCloud{&asg.Account{}}, newMetrics(), slog.New(slog.DiscardHandler))
		ctx, end := context.WithCancel(t.Context())
		defer end()
		go sc.board.Run(ctx)
		sc.turned(errors.New("the API server is away"))
		synctest.Wait()
		object, err := client.CoreV1().ConfigMaps("us").Get(t.Context(), contract.ConfigMapStatus, metav1.GetOptions{})
		if err != nil || !strings.Contains(object.Data[statuspage.Key], "dryRun: true") {
			t.Errorf("the page is %+v, %v", object, err)
		}
	})
}

// What a shadow beside the loop that acts cannot read makes neither a loop that hangs alive, nor one that
// works unwell; the loop itself is alive while it waits for the state.
func TestAShadowSaysNothingOfTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("get", "configmaps", func(a k8stesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "windlass-shadow", nil)
		})
		for _, beside := range []bool{true, false} {
			sc := newScaler(settings{namespace: "us"}, client, nil, nil, awsCloud{&asg.Account{}}, newMetrics(), slog.New(slog.DiscardHandler))
			sc.leading.Store(true)
			sc.turning.OK()
			sc.apiServer.OK()
			ctx, end := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				sc.newShadowing(ctx, beside)
				close(ended)
			}()
			time.Sleep(2 * loopSilence)
			if alive := sc.health.Alive(); alive == beside {
				t.Errorf("beside the loop: %v; alive: %v", beside, alive)
			}
			for _, d := range sc.health.Diagnose() {
				if d.Name == "api-server" && d.Well != beside {
					t.Errorf("beside the loop: %v; %+v", beside, d)
				}
			}
			end()
			<-ended
		}
	})
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
)

// Changes that come together are shown once, and a change that comes while nobody looks is not lost.
func TestStatusWatchMergesChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &bytes.Buffer{}
		c := newCLI(t, view.World{}, out)
		standing := objects(t, view.World{})[0].(*corev1.ConfigMap)
		standing.ResourceVersion = "1"
		client := fake.NewClientset(standing)
		c.connect = func() (kubernetes.Interface, error) { return client, nil }
		c.now = time.Now
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.run(ctx, []string{"status", "-w"}) }()
		time.Sleep(10 * time.Second)
		shown := func() int { return strings.Count(out.String(), contract.ConfigMapStatus+" of ") }
		change := func(i int) {
			next := standing.DeepCopy()
			next.ResourceVersion = fmt.Sprint(i)
			if _, err := client.CoreV1().ConfigMaps(defaultSystem).Update(t.Context(), next, metav1.UpdateOptions{}); err != nil {
				t.Error(err)
			}
		}
		before := shown()
		for i := range 20 {
			change(i + 2)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		if n := shown() - before; n != 1 {
			t.Errorf("shown %d times after a burst, want once", n)
		}
		change(30)
		time.Sleep(2 * time.Second)
		if n := shown() - before; n != 2 {
			t.Errorf("shown %d times after one change more", n)
		}
		time.Sleep(lookAgain)
		if n := shown() - before; n != 3 {
			t.Errorf("shown %d times after a minute more without a change", n)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

package main

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/e2e/demo/play"
	"windlass.dev/windlass/e2e/demo/story"
	"windlass.dev/windlass/e2e/demo/watch"
	"windlass.dev/windlass/e2e/world"
)

// stage is the living world, as the play acts on it and the viewer sees it.
type stage struct {
	*watch.Watch
	world *world.World

	mu  sync.Mutex
	act story.Act
}

var _ play.Stage = (*stage)(nil)

// watched is a stage that knows its world until stop, which must be called
// before the world is closed.
func watched(ctx context.Context, w *world.World) (s *stage, stop func(), err error) {
	ctx, stop = context.WithCancel(context.WithoutCancel(ctx)) // an interrupt's effects are seen, too
	s = &stage{Watch: watch.New(), world: w}
	if err := s.Cluster(ctx, w.Client, watch.Namespaces{Pods: play.Namespace, Windlass: world.Namespace}); err != nil {
		stop()
		return nil, nil, err
	}
	go s.Cloud(ctx, w.AWS)
	return s, stop, nil
}

func (s *stage) Apply(ctx context.Context, manifests string) error {
	return s.world.Apply(ctx, []byte(manifests))
}

func (s *stage) Scale(ctx context.Context, deployment string, replicas int) error {
	scale := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: deployment, Namespace: play.Namespace},
		Spec:       autoscalingv1.ScaleSpec{Replicas: int32(replicas)},
	}
	if _, err := s.world.Client.AppsV1().Deployments(play.Namespace).UpdateScale(ctx, deployment, scale, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("scaling %s to %d: %w", deployment, replicas, err)
	}
	s.Told(fmt.Sprintf("scales %s to %d", deployment, replicas))
	return nil
}

func (s *stage) Show(a story.Act) {
	s.mu.Lock()
	same := reflect.DeepEqual(s.act, a)
	s.act = a
	s.mu.Unlock()
	if !same {
		s.Nudge()
	}
}

// state is that of now.
func (s *stage) state() (out story.State) {
	s.mu.Lock()
	act := s.act
	s.mu.Unlock()
	s.Look(func(y *story.Story) { out = y.State(time.Now(), act) })
	return out
}

func (s *stage) SpotNotice(_ context.Context, instance string) error {
	if err := s.world.AWS.SpotNotice(instance, 0); err != nil {
		return fmt.Errorf("giving %s its spot notice: %w", instance, err)
	}
	s.Told("EC2 announces that it takes spot instance " + instance + " back")
	return nil
}

func (s *stage) ScaleIn(_ context.Context, group string) error {
	if err := s.world.AWS.ScaleIn(group, 1); err != nil {
		return fmt.Errorf("scaling %s in: %w", group, err)
	}
	s.Told("a scaling policy lowers the desired capacity of " + group + " by one")
	return nil
}

package play_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/e2e/demo/play"
	"windlass.dev/windlass/e2e/demo/story"
)

// stage is a world without an API server: what is done to it is written down,
// and the test tells what is seen.
type stage struct {
	mu      sync.Mutex
	story   *story.Story
	changed chan struct{}
	shown   []story.Act
	done    []string
}

var _ play.Stage = (*stage)(nil)

func newStage() *stage {
	return &stage{story: story.New(time.Now()), changed: make(chan struct{})}
}

func (s *stage) do(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, what)
	return nil
}

func (s *stage) Apply(context.Context, string) error { return s.do("apply") }
func (s *stage) Scale(_ context.Context, d string, _ int) error {
	return s.do("scale " + d)
}
func (s *stage) SpotNotice(_ context.Context, i string) error { return s.do("spot " + i) }
func (s *stage) ScaleIn(_ context.Context, g string) error    { return s.do("scale in " + g) }

func (s *stage) Look(look func(*story.Story)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	look(s.story)
}

func (s *stage) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *stage) Show(a story.Act) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = append(s.shown, a)
}

// tell changes what is known.
func (s *stage) tell(change func(*story.Story)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.story)
	close(s.changed)
	s.changed = make(chan struct{})
}

func desired(n int) func(*story.Story) {
	return func(s *story.Story) { s.GroupsSeen([]story.Group{{Name: "web", Desired: n}}) }
}

func desiredIs(n int, once bool) play.Condition {
	return play.Condition{What: "web is wanted", Once: once, Holds: func(s *story.Story) (bool, string) {
		g, _ := s.Group("web")
		return g.Desired == n, "not yet"
	}}
}

func nothing(conditions ...play.Condition) func(context.Context, play.Stage) ([]play.Condition, error) {
	return func(context.Context, play.Stage) ([]play.Condition, error) { return conditions, nil }
}

// TestRun: an act ends at the change that makes its conditions true, but not
// before it has lasted its time; the next one begins then.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		began := time.Now()
		time.AfterFunc(7*time.Second, func() { s.tell(desired(2)) })
		err := play.Run(t.Context(), s, []play.Act{
			{Title: "first", Do: nothing(desiredIs(2, false)), Within: time.Minute, Lasts: 5 * time.Second},
			{Title: "second", Do: nothing(), Within: time.Minute, Lasts: 5 * time.Second},
		})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 12*time.Second {
			t.Errorf("the play took %s, want 12s: seven until the change, five for the second act", took)
		}
		last := s.shown[len(s.shown)-1]
		if diff := cmp.Diff(story.Act{Number: 2, Of: 2, Title: "second"}, last); diff != "" {
			t.Error(diff)
		}
	})
}

// TestOnce: what had to be true once need not be true any more when the rest
// comes true.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		time.AfterFunc(1*time.Second, func() { s.tell(desired(3)) })
		time.AfterFunc(2*time.Second, func() { s.tell(desired(1)) })
		act := play.Act{Title: "up and down", Do: nothing(desiredIs(3, true), desiredIs(1, false)), Within: time.Minute}
		if err := play.Run(t.Context(), s, []play.Act{act}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestFailure: an act that does not come true says what it waited for and what
// it saw, at the bound and not before.
func TestFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		began := time.Now()
		act := play.Act{Title: "never", Do: nothing(desiredIs(0, false), desiredIs(9, false)), Within: 40 * time.Second}
		err := play.Run(t.Context(), s, []play.Act{act})
		var failure *play.Failure
		if !errors.As(err, &failure) {
			t.Fatalf("got %v, want a Failure", err)
		}
		want := &play.Failure{Act: "never", Within: 40 * time.Second, Unmet: []string{"web is wanted: not yet"}}
		if diff := cmp.Diff(want, failure); diff != "" {
			t.Error(diff)
		}
		if took := time.Since(began); took != 40*time.Second {
			t.Errorf("failed after %s, want 40s", took)
		}
		if !strings.Contains(err.Error(), "web is wanted: not yet") {
			t.Errorf("the error does not say what was waited for: %s", err)
		}
	})
}

// TestInterrupted: the end of the context is not a failure of the play.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		act := play.Act{Title: "never", Do: nothing(desiredIs(9, false)), Within: time.Minute}
		if err := play.Run(ctx, newStage(), []play.Act{act}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
	})
}

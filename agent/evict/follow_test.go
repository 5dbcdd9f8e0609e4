package evict

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// How often a watch that never lasts is opened: seldom, however it ends, and next
// to never where nothing depends on it and the right to it is missing.
func TestWatchThatDoesNotLast(t *testing.T) {
	forbidden := apierrors.NewForbidden(pods, "", errors.New("no"))
	for _, tc := range []struct {
		name        string
		spare       bool
		err         error
		lasts       time.Duration
		least, most int // times in an hour
	}{
		{"it ends at once, in good order", false, nil, 0, 3600 / 6, 3600 / 2},
		{"the right is missing", false, forbidden, 0, 3600 / 6, 3600 / 2},
		{"the right to what can be spared is missing", true, forbidden, 0, 20, 40},
		{"the server fails at what can be spared", true, errDown, 0, 3600 / 6, 3600 / 2},
		{"it ends after a minute", false, nil, time.Minute, 59, 60},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opened := 0
				s := &source{what: "things", spare: tc.spare, open: func(context.Context, string) (watch.Interface, error) {
					opened++
					if tc.err != nil {
						return nil, tc.err
					}
					w := watch.NewFake()
					time.AfterFunc(tc.lasts, w.Stop)
					return w, nil
				}}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				follow(ctx, s, quiet)
				if opened < tc.least || opened > tc.most {
					t.Errorf("opened %d times in an hour, want %d to %d", opened, tc.least, tc.most)
				}
			})
		})
	}
}

var errDown = errors.New("connection refused")

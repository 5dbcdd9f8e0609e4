package evict

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// A watch that lasted and then broke is opened again at once, however often it had failed before:
// what the agent does with its node hangs on it.
func TestWatchThatLastedComesBackAtOnce(t *testing.T) {
	const fails = 8
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var opened []time.Time
		s := &source{what: "things", open: func(context.Context, string) (watch.Interface, error) {
			switch opened = append(opened, time.Now()); len(opened) {
			case fails + 1:
				w := watch.NewFake()
				time.AfterFunc(time.Minute, func() { w.Error(&metav1.Status{Reason: metav1.StatusReasonInternalError}) })
				return w, nil
			case fails + 2:
				cancel()
			}
			return nil, errDown
		}}
		follow(ctx, s, quiet)
		if after := opened[fails+1].Sub(opened[fails]) - time.Minute; after > firstPause {
			t.Errorf("opened again after %s, want at most %s", after, firstPause)
		}
	})
}

// Of a watch that goes on failing the log warns once.
func TestWatchThatFailsIsWarnedOfOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		s := &source{what: "things", open: func(context.Context, string) (watch.Interface, error) { return nil, errDown }}
		follow(ctx, s, slog.New(slog.NewTextHandler(&log, nil)))
		if warnings := strings.Count(log.String(), "level=WARN"); warnings != 1 {
			t.Errorf("%d warnings in an hour of failures, want 1: %s", warnings, log.String())
		}
	})
}

// Agents that began at one moment come back to the API server over a quarter of an hour.
func TestWatchesEndAtDifferentTimes(t *testing.T) {
	var least, most time.Duration
	for i := range 10_000 {
		seconds, err := time.ParseDuration(watchSeconds() + "s")
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			least, most = seconds, seconds
		}
		least, most = min(least, seconds), max(most, seconds)
	}
	if least < 45*time.Minute || least > 46*time.Minute || most < 59*time.Minute || most >= time.Hour {
		t.Errorf("watches last from %s to %s, want from 45 min to an hour", least, most)
	}
}

var errDown = errors.New("connection refused")

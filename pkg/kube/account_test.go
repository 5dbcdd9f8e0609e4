package kube

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
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const program = "windlass-agent"

func TestCheckAccount(t *testing.T) {
	reviews := schema.GroupResource{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}
	for _, c := range []struct {
		about, user string
		err         error
		warns       bool
	}{
		{"as it comes", "system:serviceaccount:windlass-system:windlass-agent", nil, false},
		{"with a prefix and a suffix", "system:serviceaccount:elsewhere:prod-windlass-agent-blue", nil, false},
		{"another account", "system:serviceaccount:windlass-system:drainer", nil, true},
		{"the namespace's default account", "system:serviceaccount:windlass-agent:default", nil, true},
		{"the account of the other program", "system:serviceaccount:windlass-system:windlass-scaler", nil, true},
		{"a person", "alice", nil, false},
		{"a server that does not know the question", "", apierrors.NewNotFound(reviews, ""), false},
		{"a server that does not let us ask", "", apierrors.NewForbidden(reviews, "", errors.New("no")), false},
	} {
		t.Run(c.about, func(t *testing.T) {
			var log bytes.Buffer
			var told []string
			CheckAccount(t.Context(), program, func(context.Context) (string, error) { return c.user, c.err },
				slog.New(slog.NewTextHandler(&log, nil)), func(message string) { told = append(told, message) })
			warned := strings.Contains(log.String(), "account not confined")
			if warned != c.warns || (len(told) == 1) != c.warns {
				t.Fatalf("log %q, told %q", log.String(), told)
			}
			if c.warns && !strings.Contains(told[0], c.user) {
				t.Errorf("%q does not name the account", told[0])
			}
		})
	}
}

// A server that is away is asked again, until the program ends.
func TestCheckAccountWaitsForTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, told := 0, 0
		ask := func(context.Context) (string, error) {
			if asked++; asked < 3 {
				return "", errors.New("connection refused")
			}
			return "system:serviceaccount:a:b", nil
		}
		began := time.Now()
		CheckAccount(t.Context(), program, ask, slog.New(slog.DiscardHandler), func(string) { told++ })
		if told != 1 || time.Since(began) != 2*accountAgain {
			t.Errorf("told %d times after %s", told, time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		CheckAccount(ctx, program, func(context.Context) (string, error) { return "", errors.New("away") }, slog.New(slog.DiscardHandler), func(string) { told++ })
		if told != 1 {
			t.Error("told without an answer")
		}
	})
}

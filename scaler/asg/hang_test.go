package asg

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"windlass.dev/windlass/scaler/asg/template"
)

// hanging never answers a description of groups, as a connection that a
// gateway forgot.
type hanging struct {
	autoScaling
	asked *atomic.Int32 // how often; may be nil
}

func (h hanging) DescribeAutoScalingGroups(ctx context.Context, _ *autoscaling.DescribeAutoScalingGroupsInput, _ ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
	if h.asked != nil {
		h.asked.Add(1)
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func hangingReader() *Reader {
	selection := Selection{Named: []Named{{Name: "web", Max: 5}}}
	return NewReader(&Account{scaling: hanging{}}, selection, template.Assumptions{}, slog.New(slog.NewTextHandler(io.Discard, nil)), nil)
}

// A reading that AWS does not answer ends, and is a failure that shows.
func TestReadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		r := hangingReader()
		began := time.Now()
		err := r.Read(ctx)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("took %s", took)
		}
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "no answer in time") {
			t.Errorf("error %v", err)
		}
		if !errors.Is(r.Err(), ErrUnavailable) {
			t.Errorf("the reader says %v", r.Err())
		}
	})
}

// Whoever wants a reading while another one hangs waits as long as he likes to,
// and no longer; that is no failure.
func TestReadDoesNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long, stop := context.WithCancel(t.Context())
		r := hangingReader()
		ended := make(chan struct{})
		go func() { defer close(ended); _ = r.Read(long) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		r.ReadFor(long, 500*time.Millisecond)
		if took := time.Since(began); took != 500*time.Millisecond {
			t.Errorf("took %s", took)
		}
		if err := r.Read(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("took %s", took)
		}
		if r.Err() != nil {
			t.Errorf("the reader says %v", r.Err())
		}
		stop()
		<-ended
	})
}

// Those who want a reading while another one hangs have one between them, which begins after they asked.
func TestReadingsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		r, asked := hangingReader(), new(atomic.Int32)
		r.account.scaling = hanging{asked: asked}
		for range 20 {
			r.ReadFor(ctx, time.Second) // the first, and one that waits for its end
		}
		for range 2 {
			time.Sleep(readTime)
			r.ReadFor(ctx, time.Second)
		}
		time.Sleep(10 * readTime)
		if n := asked.Load(); n != 4 {
			t.Errorf("AWS was asked %d times", n)
		}
		stop()
		synctest.Wait()
	})
}

// Each try of a call ends by itself, whoever makes it.
func TestCallsEnd(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() // nothing accepts: the kernel takes the connection, and nothing answers
	answerFrom(t, "http://"+listener.Addr().String())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	account, err := dial(ctx, nil, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	err = NewVerbs(account).Heartbeat(ctx, Wait{Group: "web", Instance: "i-1", Hook: "hook"})
	if !errors.Is(err, ErrUnavailable) || ctx.Err() != nil {
		t.Errorf("error %v, own end: %v", err, ctx.Err())
	}
}

// A launch takes as long as AWS asks EC2, which is no failure of AWS: other calls have ended by then.
func TestLaunchOutlastsOtherCalls(t *testing.T) {
	const callTime = 50 * time.Millisecond
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(4 * callTime):
			fmt.Fprint(w, "<LaunchInstancesResponse><LaunchInstancesResult><AutoScalingGroupName>web</AutoScalingGroupName></LaunchInstancesResult></LaunchInstancesResponse>")
		}
	}))
	defer server.Close()
	answerFrom(t, server.URL)
	bundle := filepath.Join(t.TempDir(), "ca.pem") // of a proxy, which every call has to know
	if err := os.WriteFile(bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CA_BUNDLE", bundle)
	account, err := dial(t.Context(), nil, callTime)
	if err != nil {
		t.Fatal(err)
	}
	verbs := NewVerbs(account)
	if err := verbs.Heartbeat(t.Context(), Wait{Group: "web", Instance: "i-1", Hook: "hook"}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("another call: %v", err)
	}
	answered := make(chan struct{}, 1)
	verbs.Arrived = func(bool) { answered <- struct{}{} }
	order := LaunchOrder{Group: "web", Zone: "eu-west-1a", Count: 1, Token: "token"}
	if _, err := verbs.Launch(t.Context(), order); !errors.Is(err, ErrUnderWay) {
		t.Fatalf("at once: %v", err)
	}
	<-answered
	if _, err := verbs.Launch(t.Context(), order); err != nil {
		t.Errorf("later: %v", err)
	}
}

// answerFrom has AWS be at that address.
func answerFrom(t *testing.T, url string) {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": url, "AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
	} {
		t.Setenv(name, value)
	}
}

package fakeaws_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"windlass.dev/windlass/e2e/fakeaws"
)

// bed is a server with the real clients of the SDK in front of it.
type bed struct {
	*fakeaws.Server
	t   *testing.T
	ctx context.Context

	asg *autoscaling.Client
	ec2 *ec2.Client
	eks *eks.Client
	sts *sts.Client
}

// patience bounds the wait for what comes at once on an idle machine: command lines take seconds to start on a busy one. unanswered is after what time no answer
// counts as none.
const (
	patience   = 2 * time.Minute
	unanswered = 3 * time.Second
)

// quick are timings that keep tests short.
var quick = fakeaws.Timing{
	Quick:     true,
	Reconcile: fakeaws.Seconds(.002), Pending: fakeaws.Seconds(.005), Boot: fakeaws.Seconds(.01), WarmStart: fakeaws.Seconds(.005),
	Terminating: fakeaws.Seconds(.005), Shutdown: fakeaws.Seconds(.005), HealthCheck: fakeaws.Seconds(.005), LaunchRetry: fakeaws.Seconds(.2),
}

func start(t *testing.T, groups ...fakeaws.Group) *bed {
	t.Helper()
	return startSpec(t, fakeaws.Spec{Groups: groups})
}

func startSpec(t *testing.T, spec fakeaws.Spec) *bed {
	t.Helper()
	if spec.Timing == (fakeaws.Timing{}) {
		spec.Timing = quick
	}
	s, err := fakeaws.Start(fakeaws.Config{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	cfg := aws.Config{
		Region: "eu-west-1", BaseEndpoint: aws.String(s.URL()), Credentials: credentials.NewStaticCredentialsProvider("AKIATEST", "secret", ""),
		RetryMaxAttempts: 1, HTTPClient: &http.Client{Transport: whole{t}},
	}
	return &bed{Server: s, t: t, ctx: ctx, asg: autoscaling.NewFromConfig(cfg), ec2: ec2.NewFromConfig(cfg), eks: eks.NewFromConfig(cfg), sts: sts.NewFromConfig(cfg)}
}

// whole sends the body of a request from memory. smithy-go closes the body that it sends as soon as an answer comes, also while net/http still looks for the
// body's end, which then breaks the connection; on a busy machine even an answer after ten milliseconds can be so early.
// What is answered is judged by the service's model.
type whole struct{ t *testing.T }

func (w whole) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	checkAnswer(w.t, r, body)
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// must fails the test on an error.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// wantError checks status, code and text of an error of the SDK, and that it carries a request id.
func wantError(t *testing.T, err error, status int, code, text string) {
	t.Helper()
	var (
		api  smithy.APIError
		resp *smithyhttp.ResponseError
	)
	if !errors.As(err, &api) || !errors.As(err, &resp) {
		t.Fatalf("got %v, want the error %s of AWS", err, code)
	}
	if resp.HTTPStatusCode() != status || api.ErrorCode() != code || api.ErrorMessage() != text {
		t.Fatalf("got %d %s %q\nwant %d %s %q", resp.HTTPStatusCode(), api.ErrorCode(), api.ErrorMessage(), status, code, text)
	}
	if id := resp.Response.Header.Get("X-Amzn-Requestid"); id == "" {
		t.Fatal("the error carries no request id")
	}
}

// waitStates waits until the group, without its warm pool, has exactly so many instances in each lifecycle state.
func (b *bed) waitStates(group string, want map[fakeaws.LifecycleState]int) []fakeaws.Instance {
	b.t.Helper()
	changed := make(chan struct{}, 1)
	b.OnInstance(func(fakeaws.Instance) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	for {
		g, err := b.Group(group)
		if err != nil {
			b.t.Fatal(err)
		}
		have := map[fakeaws.LifecycleState]int{}
		for _, i := range append(g.Instances, g.Warm...) {
			have[i.LifecycleState]++
		}
		if sameCounts(have, want) {
			return g.Instances
		}
		select {
		case <-changed:
		case <-b.ctx.Done():
			b.t.Fatalf("group %s has %v, want %v", group, have, want)
		}
	}
}

func sameCounts(a, b map[fakeaws.LifecycleState]int) bool {
	for s, n := range a {
		if b[s] != n {
			return false
		}
	}
	for s, n := range b {
		if a[s] != n {
			return false
		}
	}
	return true
}

func ptr[T any](v T) *T { return &v }

// get fetches a page without any client of AWS.
func (b *bed) get(ctx context.Context, url string) (int, string) {
	b.t.Helper()
	return b.send(ctx, http.MethodGet, url, "")
}

func (b *bed) send(ctx context.Context, method, url, body string, headers ...string) (int, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for n := 0; n < len(headers); n += 2 {
		r.Header.Set(headers[n], headers[n+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func contains(text, part string) bool { return strings.Contains(text, part) }

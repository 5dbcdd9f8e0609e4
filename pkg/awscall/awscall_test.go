package awscall

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/smithy-go/middleware"
)

// operation stands in the body of the call that the test makes, and not in its head.
const operation = "Action=DescribeAutoScalingGroups"

// TestAnEarlyAnswerIsKept has the answer come, and the SDK close the request's body, before the transport learns
// that it has written all of that.
func TestAnEarlyAnswerIsKept(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		if _, err := w.Write([]byte("<DescribeAutoScalingGroupsResponse><DescribeAutoScalingGroupsResult/></DescribeAutoScalingGroupsResponse>")); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	answered, late := make(chan struct{}), &atomic.Bool{}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return lateWriter{conn, answered, late}, err
	}}
	defer transport.CloseIdleConnections()
	client := autoscaling.NewFromConfig(aws.Config{
		Region: "eu-west-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		HTTPClient: &http.Client{Transport: transport}, Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		APIOptions: []func(*middleware.Stack) error{KeepAnswer, func(stack *middleware.Stack) error {
			return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("Answered",
				func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
					out, metadata, err := next.HandleDeserialize(ctx, in)
					close(answered) // the SDK has closed the body of the request, and nobody has read that of the answer
					return out, metadata, err
				}), middleware.After)
		}},
	})
	wrote := make(chan error, 1)
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteRequest: func(info httptrace.WroteRequestInfo) { wrote <- info.Err }})
	_, err := client.DescribeAutoScalingGroups(ctx, nil)
	if !late.Load() {
		t.Fatalf("the body was not written by itself (%v)", err)
	}
	if err != nil {
		t.Error(err)
	}
	if err := <-wrote; err != nil {
		t.Errorf("the transport takes the sending for failed: %v", err)
	}
}

// lateWriter is a connection whose writing of a request's body returns when there is an answer.
type lateWriter struct {
	net.Conn
	answered <-chan struct{}
	late     *atomic.Bool // whether there was one
}

func (c lateWriter) Write(p []byte) (int, error) {
	body := bytes.HasPrefix(p, []byte(operation))
	if body {
		c.late.Store(true)
	}
	n, err := c.Conn.Write(p)
	if body {
		<-c.answered
	}
	return n, err
}

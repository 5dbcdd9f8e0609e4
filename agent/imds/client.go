package imds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// ErrAbsent means that the metadata have nothing at a path: for a notice, that
// there is none.
var ErrAbsent = errors.New("the instance metadata have no such path")

// Answer is what the metadata have at a path.
type Answer struct {
	Body string
	// Date is what the clock of the metadata service said, to the second; zero
	// where it said nothing.
	Date time.Time
}

// Read reads what is at a path below /latest/meta-data/. The error is ErrAbsent
// where there is nothing.
type Read func(ctx context.Context, path string) (Answer, error)

const (
	// dialTimeout and requestTimeout bound one request, with its token and its body: the
	// service is a hop away, and answers in milliseconds or not at all.
	dialTimeout, requestTimeout = time.Second, 2 * time.Second
	// idleTimeout is longer than any pause between two requests.
	idleTimeout = 2 * time.Minute
	// bodyLimit is more than any body that is asked for.
	bodyLimit = 64 << 10
	// attempts: a token that has expired is replaced, and the request sent again.
	attempts = 2
)

// NewRead returns a Read of the instance's own metadata service, or the one at
// the standard variable AWS_EC2_METADATA_SERVICE_ENDPOINT. It may be called for several
// paths at one time.
//
// It keeps one connection: the service limits how many there are at one time. More are
// open only while paths are read at the same moment.
// It goes through no proxy, and does not fall back to IMDSv1. It repeats a
// request only to renew its token; when to ask again is for the caller to say.
// The retry quota of the SDK is off: an outage of an hour would use it up, and
// what comes after would fail for want of it.
func NewRead() Read {
	return newRead((&net.Dialer{Timeout: dialTimeout}).DialContext)
}

// dial opens a connection, as net.Dialer does.
type dial func(ctx context.Context, network, address string) (net.Conn, error)

func newRead(dial dial) Read {
	transport := bounded{&http.Transport{
		DialContext:     dial,
		MaxIdleConns:    1,
		IdleConnTimeout: idleTimeout,
	}}
	// Each path has a client of its own, because all requests of a client wait for its
	// token, past their own deadlines.
	var mu sync.Mutex
	clients := map[string]*imds.Client{}
	clientFor := func(path string) *imds.Client {
		mu.Lock()
		defer mu.Unlock()
		if clients[path] == nil {
			clients[path] = newClient(transport)
		}
		return clients[path]
	}
	return func(ctx context.Context, path string) (Answer, error) {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		return read(ctx, clientFor(path), path)
	}
}

func newClient(transport http.RoundTripper) *imds.Client {
	return imds.New(imds.Options{
		EnableFallback: aws.FalseTernary,
		// The service redirects to nothing: what answers elsewhere is not the service.
		HTTPClient: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = attempts
			o.RateLimiter = ratelimit.None
			// What the client itself marks: an answer that the token has expired.
			o.Retryables = []retry.IsErrorRetryable{retry.RetryableError{}}
		}),
		APIOptions: []func(*middleware.Stack) error{awsmiddleware.AddRawResponseToMetadata},
	})
}

// bounded fails where a body is longer than it may be: the SDK reads each to its end.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err == nil {
		answer.Body = &boundedBody{ReadCloser: answer.Body, left: bodyLimit}
	}
	return answer, err
}

type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("the body has more than %d bytes", bodyLimit)
	}
	return n, err
}

func read(ctx context.Context, client *imds.Client, path string) (Answer, error) {
	out, err := client.GetMetadata(ctx, &imds.GetMetadataInput{Path: path})
	if statusOf(err) == http.StatusNotFound {
		return Answer{}, ErrAbsent
	}
	if err != nil {
		return Answer{}, fmt.Errorf("reading %s from the instance metadata: %w", path, err)
	}
	defer out.Content.Close()
	body, err := io.ReadAll(out.Content)
	if err != nil {
		return Answer{}, fmt.Errorf("reading %s from the instance metadata: %w", path, err)
	}
	return Answer{Body: string(body), Date: dateOf(out.ResultMetadata)}, nil
}

// dateOf an answer; zero where it has none that can be read.
func dateOf(answer middleware.Metadata) time.Time {
	response, ok := awsmiddleware.GetRawResponse(answer).(*smithyhttp.Response)
	if !ok {
		return time.Time{}
	}
	date, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return date
}

// statusOf an error of the SDK; 0 where the service did not answer.
func statusOf(err error) int {
	var answered interface{ HTTPStatusCode() int }
	if errors.As(err, &answered) {
		return answered.HTTPStatusCode()
	}
	return 0
}

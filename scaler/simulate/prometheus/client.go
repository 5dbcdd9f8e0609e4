package prometheus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

const (
	// mostBytes bounds one answer.
	mostBytes = 256 << 20
	// patience is for how long one answer is waited for, longer than Prometheus takes by its
	// own default.
	patience = 3 * time.Minute
	// mostDetail is how much of an answer that is an error is shown.
	mostDetail = 300
)

// client asks a server. Its name has no password.
type client struct {
	api         v1.API
	name, match string
}

func newClient(s Source) (*client, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" { // its text may have a password
		return nil, errors.New("--prometheus: want a URL such as http://127.0.0.1:9090, and a token in --prometheus-token-file")
	}
	t := &transport{host: u.Host, header: s.Header.Clone(), most: cmp.Or(s.most, mostBytes)}
	if s.TokenFile != "" {
		text, err := os.ReadFile(s.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("--prometheus-token-file: %w", err)
		}
		token := strings.TrimSpace(string(text))
		if token == "" || strings.ContainsAny(token, " \t\r\n") {
			return nil, fmt.Errorf("--prometheus-token-file=%s: want one bearer token in it", s.TokenFile)
		}
		if t.header == nil {
			t.header = http.Header{}
		}
		t.header.Set("Authorization", "Bearer "+token)
	}
	c, err := api.NewClient(api.Config{Address: s.URL, Client: &http.Client{Transport: t, Timeout: patience, CheckRedirect: refuse}})
	if err != nil {
		return nil, fmt.Errorf("--prometheus=%s: %w", u.Redacted(), err)
	}
	return &client{api: v1.NewAPI(c), name: u.Redacted(), match: s.Match}, nil
}

// refuse follows no redirect: it may lead to a page for people to log in, or to somebody who is
// not to read the token.
func refuse(req *http.Request, _ []*http.Request) error {
	return fmt.Errorf("it redirects to %s: give that URL if it is Prometheus, or credentials if it is where people log in", req.URL.Redacted())
}

// transport adds headers to requests, and bounds answers.
type transport struct {
	host   string
	header http.Header
	most   int64
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if req.URL.Host == t.host {
		for name, values := range t.header {
			req.Header[name] = values
		}
	}
	resp, err := api.DefaultRoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = &bounded{resp.Body, t.most}
	return resp, nil
}

// bounded is a body of which no more than so many bytes are read.
type bounded struct {
	io.ReadCloser
	left int64
}

var errTooLarge = fmt.Errorf("the answer has more than %d MiB", mostBytes>>20)

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// ask has one question answered. An answer that may lack something is none.
func (c *client) ask(ctx context.Context, series string, query func(context.Context) (model.Value, v1.Warnings, v1.Infos, error)) (model.Value, error) {
	value, warnings, _, err := query(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", series, explained(err))
	}
	if len(warnings) > 0 {
		return nil, fmt.Errorf("asking for %s: the answer may lack something: %s", series, shortened(strings.Join(warnings, "; ")))
	}
	return value, nil
}

func shortened(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > mostDetail {
		return strings.ToValidUTF8(text[:mostDetail], "") + "…"
	}
	return text
}

// explained is an error with what to do about it.
func explained(err error) error {
	if errors.Is(err, errTooLarge) {
		return fmt.Errorf("%w: ask for some namespaces by --prometheus-match", err)
	}
	var said *v1.Error
	if !errors.As(err, &said) {
		return err
	}
	text := said.Msg
	if said.Detail != "" {
		text += ": " + said.Detail
	}
	text = shortened(text)
	remedy := ""
	switch {
	case strings.HasSuffix(said.Msg, ": 401"), strings.HasSuffix(said.Msg, ": 403"):
		remedy = "want credentials, by --prometheus-token-file or --prometheus-header"
	case strings.HasSuffix(said.Msg, ": 404"):
		remedy = "is this the URL of a Prometheus, with the path below which its api/v1 is?"
	case said.Type == v1.ErrBadData:
		remedy = "are the matchers of --prometheus-match well-formed?"
	case said.Type == v1.ErrExec && strings.Contains(text, "too many samples"):
		remedy = "ask for some namespaces by --prometheus-match, or raise --query.max-samples of Prometheus"
	case said.Type == v1.ErrServer, said.Type == v1.ErrTimeout:
		remedy = "is it up, and what does its log have? try again later"
	}
	if remedy == "" {
		return errors.New(text)
	}
	return fmt.Errorf("%s: %s", text, remedy)
}

// lacks names a series of which there is nothing.
func (c *client) lacks(series string, from, to time.Time) error {
	remedy := "is kube-state-metrics scraped by it, and was it at that time?"
	if series != seriesCreated {
		remedy = "is it left out by kube-state-metrics' --metric-allowlist, --metric-denylist or --resources, or dropped by metric_relabel_configs? Versions before 2.0 have it under another name"
	}
	if c.match != "" {
		remedy += " Does {" + c.match + "} match it?"
	}
	return fmt.Errorf("%s has no series %s between %s and %s: %s", c.name, series, from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339), remedy)
}

package prometheus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	// mostBytes bounds one answer, and mostSeries what of it is in memory at once.
	mostBytes  = 256 << 20
	mostSeries = 1 << 20
	// patience is for how long one answer is waited for, longer than Prometheus takes by its
	// own default.
	patience = 3 * time.Minute
	// mostDetail is how much of an answer that is an error is shown, and mostRefusal read.
	mostDetail  = 300
	mostRefusal = 64 << 10
)

// client asks a server. Its name has no credentials.
type client struct {
	url         *url.URL
	http        http.Client
	header      http.Header
	most        int
	name, match string
}

func newClient(s Source) (*client, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" { // its text may have a password
		return nil, errors.New("--prometheus: want a URL such as http://127.0.0.1:9090, and a token in --prometheus-token-file")
	}
	header := http.Header{}
	for name, values := range s.Header {
		header[name] = values
	}
	if s.TokenFile != "" {
		text, err := os.ReadFile(s.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("--prometheus-token-file: %w", err)
		}
		token := strings.TrimSpace(string(text))
		if token == "" || strings.ContainsAny(token, " \t\r\n") {
			return nil, fmt.Errorf("--prometheus-token-file=%s: want one bearer token in it", s.TokenFile)
		}
		header.Set("Authorization", "Bearer "+token)
	}
	return &client{
		url: u, http: http.Client{Timeout: patience, CheckRedirect: refuse},
		header: header, most: cmp.Or(s.most, mostBytes), name: named(u), match: s.Match,
	}, nil
}

// named is a URL without what may be secret.
func named(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// refuse follows no redirect: it may lead to a page for people to log in, or to somebody who is
// not to read the token.
func refuse(req *http.Request, _ []*http.Request) error {
	return fmt.Errorf("it redirects to %s: give that URL if it is Prometheus, or credentials if it is where people log in", named(req.URL))
}

// ask has one question answered, by results of a kind, and gives them to take one by one. After an
// error they may lack something.
func (c *client) ask(ctx context.Context, series, kind, path string, question url.Values, take func(result)) error {
	if err := c.request(ctx, kind, path, question, take); err != nil {
		return fmt.Errorf("asking for %s: %w", series, explained(err))
	}
	return nil
}

func (c *client) request(ctx context.Context, kind, path string, question url.Values, take func(result)) error {
	u := c.url.JoinPath("api/v1", path)
	u.RawQuery = question.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	req.Header = c.header
	resp, err := c.http.Do(req)
	if err != nil {
		var about *url.Error
		if errors.As(err, &about) { // its text has the URL
			err = about.Err
		}
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	if resp.StatusCode != http.StatusOK {
		return refusalOf(resp)
	}
	return readAnswer(resp.Body, c.most, kind, take)
}

// refusal is an answer that is an error. Its kind is that of Prometheus; empty where another
// server speaks.
type refusal struct {
	status     int
	kind, text string
}

func (r *refusal) Error() string {
	if r.kind == "" {
		return strings.TrimSuffix(fmt.Sprintf("%d %s: %s", r.status, http.StatusText(r.status), shortened(r.text)), ": ")
	}
	return shortened(r.text)
}

func refusalOf(resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, mostRefusal))
	if err != nil {
		return fmt.Errorf("%d %s: %w", resp.StatusCode, http.StatusText(resp.StatusCode), err)
	}
	var said struct{ ErrorType, Error string }
	if err := json.Unmarshal(text, &said); err != nil || said.ErrorType == "" { // then it is no answer of Prometheus
		return &refusal{status: resp.StatusCode, text: string(text)}
	}
	return &refusal{resp.StatusCode, said.ErrorType, said.Error}
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
	var said *refusal
	if !errors.As(err, &said) {
		return err
	}
	remedy := ""
	switch {
	case said.status == http.StatusUnauthorized, said.status == http.StatusForbidden:
		remedy = "want credentials, by --prometheus-token-file or --prometheus-header"
	case said.status == http.StatusNotFound:
		remedy = "is this the URL of a Prometheus, with the path below which its api/v1 is?"
	case said.kind == "bad_data":
		remedy = "are the matchers of --prometheus-match well-formed?"
	case strings.Contains(said.text, "too many samples"):
		remedy = "ask for some namespaces by --prometheus-match, or raise --query.max-samples of Prometheus"
	case said.status >= http.StatusInternalServerError, said.kind == "timeout":
		remedy = "is it up, and what does its log have? try again later"
	default:
		return err
	}
	return fmt.Errorf("%w: %s", err, remedy)
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

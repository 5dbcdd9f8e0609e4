package send

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
	"github.com/slack-go/slack"

	"windlass.dev/windlass/notifier/happening"
	"windlass.dev/windlass/notifier/render"
)

// service is one of the tests: it keeps what it is sent, and answers as it is told.
type service struct {
	*httptest.Server
	mu     sync.Mutex
	got    []string // path and body
	header http.Header
	answer func(w http.ResponseWriter, path, body string)
}

func serve(t *testing.T, answer func(w http.ResponseWriter, path, body string)) *service {
	s := &service{answer: answer}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got, s.header = append(s.got, r.URL.Path+" "+string(body)), r.Header
	s.answer(w, r.URL.Path, string(body))
}

// last is what was sent last.
func (s *service) last(t *testing.T) (path, body string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.got) == 0 {
		t.Fatal("nothing was sent")
	}
	path, body, _ = strings.Cut(s.got[len(s.got)-1], " ")
	return path, body
}

func ok(w http.ResponseWriter, _, _ string) { fmt.Fprint(w, "ok") }

var message = render.Message{
	ID: "scale-up-1", Kind: "scale-up", Title: "Scaling up: web", Text: "group web grows 1→3 <now>", Severity: happening.Info,
	Facts: []render.Fact{{Name: "Cluster", Value: "blue & green"}},
	Of:    []happening.Happening{{ID: "scale-up-1", Kind: happening.ScaleUp, Group: "web", From: 1, To: 3}},
}

// slackAPI speaks the part of Slack's Web API that is used.
// https://docs.slack.dev/reference/methods/chat.postMessage
func slackAPI(t *testing.T, token string) *service {
	posted := map[string]bool{}
	var s *service
	s = serve(t, func(w http.ResponseWriter, path, body string) {
		form, err := url.ParseQuery(body)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case err != nil || form.Get("token") != token && s.header.Get("Authorization") != "Bearer "+token:
			fmt.Fprint(w, `{"ok":false,"error":"invalid_auth"}`)
		case form.Get("channel") != "#ops" && form.Get("channel") != "C1":
			fmt.Fprint(w, `{"ok":false,"error":"channel_not_found"}`)
		case path == "/chat.postMessage":
			ts := fmt.Sprintf("17000000%02d.000100", len(posted))
			posted[ts] = true
			fmt.Fprintf(w, `{"ok":true,"channel":"C1","ts":%q}`, ts)
		case path == "/chat.update" && posted[form.Get("ts")]:
			fmt.Fprintf(w, `{"ok":true,"channel":"C1","ts":%q}`, form.Get("ts"))
		default:
			fmt.Fprint(w, `{"ok":false,"error":"message_not_found"}`)
		}
	})
	return s
}

const token = "xoxb-111111111111-secretsecret"

// A bot posts Block Kit, changes its message, and posts anew what somebody has deleted.
func TestSlack(t *testing.T) {
	api := slackAPI(t, token)
	s := NewSlack("#ops", token, api.URL, api.Client())
	ref, err := s.Send(t.Context(), message)
	if err != nil || ref != "C1/1700000000.000100" {
		t.Fatalf("%q, %v", ref, err)
	}
	_, body := api.last(t)
	form, err := url.ParseQuery(body)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []struct{ Type string }
	if err := json.Unmarshal([]byte(form.Get("blocks")), &blocks); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]struct{ Type string }{{"header"}, {"section"}, {"section"}}, blocks); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{"Scaling up: web", "1→3 \\u0026lt;now\\u0026gt;", "blue \\u0026amp; green"} {
		if !strings.Contains(form.Get("blocks"), want) {
			t.Errorf("no %q in %s", want, form.Get("blocks"))
		}
	}
	changed := message
	changed.Ref = ref
	if again, err := s.Send(t.Context(), changed); err != nil || again != ref {
		t.Errorf("changed: %q, %v", again, err)
	}
	if path, _ := api.last(t); path != "/chat.update" {
		t.Errorf("changed by %s", path)
	}
	changed.Ref = "C1/1600000000.000000"
	if anew, err := s.Send(t.Context(), changed); err != nil || anew == changed.Ref {
		t.Errorf("deleted: %q, %v", anew, err)
	}
	own := message
	own.Own, own.Text = true, `{"text":"mine"}`
	if _, err := s.Send(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	if _, body := api.last(t); !strings.Contains(body, "text=mine") {
		t.Errorf("a template's: %s", body)
	}
}

// A digest has more facts than a section of Slack's; none goes without a word.
func TestSlackFacts(t *testing.T) {
	for _, n := range []int{0, 3, 10, 11, 25, 40, 41, 200} {
		m := render.Message{Title: "Digest"}
		for i := range n {
			m.Facts = append(m.Facts, render.Fact{Name: fmt.Sprintf("fact-%d.", i), Value: "x"})
		}
		_, blocks := slackMessage(m)
		text, err := json.Marshal(blocks)
		if err != nil {
			t.Fatal(err)
		}
		shown := strings.Count(string(text), "fact-")
		if shown != n && !strings.Contains(string(text), fmt.Sprintf("%d others", n-shown)) {
			t.Errorf("of %d facts %d are shown, and no word of the others", n, shown)
		}
		for _, b := range blocks.BlockSet {
			if s, is := b.(*slack.SectionBlock); is && len(s.Fields) > mostFields {
				t.Errorf("a section has %d fields", len(s.Fields))
			}
		}
	}
}

// Where the channel of a message can be written no more, such as one that was archived for another,
// what there is to tell is posted to the channel that there is now.
func TestMessageInAnotherChannel(t *testing.T) {
	for _, why := range []string{"is_archived", "is_inactive", "not_in_channel", "channel_not_found"} {
		api := serve(t, func(w http.ResponseWriter, path, _ string) {
			if path == "/chat.update" {
				fmt.Fprintf(w, `{"ok":false,"error":%q}`, why)
				return
			}
			fmt.Fprint(w, `{"ok":true,"channel":"C2","ts":"17"}`)
		})
		changed := message
		changed.Ref = "C1/16"
		if ref, err := NewSlack("#new", token, api.URL, api.Client()).Send(t.Context(), changed); ref != "C2/17" {
			t.Errorf("%s: %q, %v", why, ref, err)
		}
	}
}

func TestSlackErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(w http.ResponseWriter, path, body string)
		want   Error
	}{
		{"limited", func(w http.ResponseWriter, _, _ string) {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
		}, Error{After: 30 * time.Second}},
		{"refused", func(w http.ResponseWriter, _, _ string) { fmt.Fprint(w, `{"ok":false,"error":"invalid_blocks"}`) }, Error{Refused: true}},
		{"archived channel", func(w http.ResponseWriter, _, _ string) { fmt.Fprint(w, `{"ok":false,"error":"is_archived"}`) }, Error{Refused: true}},
		{"bot that nobody has invited yet", func(w http.ResponseWriter, _, _ string) { fmt.Fprint(w, `{"ok":false,"error":"not_in_channel"}`) }, Error{}},
		{"private channel that it is not in", func(w http.ResponseWriter, _, _ string) {
			fmt.Fprint(w, `{"ok":false,"error":"channel_not_found"}`)
		}, Error{}},
		{"token", func(w http.ResponseWriter, _, _ string) { fmt.Fprint(w, `{"ok":false,"error":"token_revoked"}`) }, Error{}},
		{"down", func(w http.ResponseWriter, _, _ string) { w.WriteHeader(http.StatusBadGateway) }, Error{}},
		{"an error that repeats the token", func(w http.ResponseWriter, _, _ string) { fmt.Fprintf(w, `{"ok":false,"error":"no %s"}`, token) }, Error{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := serve(t, c.answer)
			_, err := NewSlack("#ops", token, api.URL, api.Client()).Send(t.Context(), message)
			hold(t, err, c.want, token)
		})
	}
}

// hold holds an error against what it asks for, and against having a secret in it.
func hold(t *testing.T, err error, want Error, secrets ...string) {
	t.Helper()
	var got *Error
	if !errors.As(err, &got) {
		t.Fatalf("error %v", err)
	}
	if got.After != want.After || got.Refused != want.Refused {
		t.Errorf("after %s, refused %v: %v", got.After, got.Refused, err)
	}
	for _, secret := range secrets {
		if strings.Contains(fmt.Sprintf("%v %+v %#v", err, got, got), secret) {
			t.Errorf("a secret is in it: %v", err)
		}
	}
}

// An incoming webhook gets what Slack takes, or the JSON that a template makes.
func TestWebhook(t *testing.T) {
	hook := serve(t, ok)
	w := NewWebhook(hook.URL+"/services/T000/B000/XXXXXXXXXXXX", hook.Client())
	if ref, err := w.Send(t.Context(), message); err != nil || ref != "" {
		t.Fatalf("%q, %v", ref, err)
	}
	_, body := hook.last(t)
	var got struct {
		Text   string
		Blocks []any
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || len(got.Blocks) != 3 || !strings.Contains(got.Text, "Scaling up") {
		t.Errorf("%s: %v", body, err)
	}
	own := message
	own.Own, own.Text = true, `{"content":"mine"}`
	if _, err := w.Send(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	if _, body := hook.last(t); body != own.Text {
		t.Errorf("a template's: %s", body)
	}
}

func TestWebhookErrors(t *testing.T) {
	const secret = "/services/T00000000/XXXXXXXXXXXX"
	status := func(code int, after string) func(w http.ResponseWriter, path, body string) {
		return func(w http.ResponseWriter, _, _ string) {
			if after != "" {
				w.Header().Set("Retry-After", after)
			}
			w.WriteHeader(code)
		}
	}
	for _, c := range []struct {
		answer func(w http.ResponseWriter, path, body string)
		want   Error
	}{
		{status(429, "7"), Error{After: 7 * time.Second}},
		{status(429, "999999999"), Error{After: mostAfter}},
		{status(503, "Mon, 02 Jan 2006 15:04:05 GMT"), Error{}},
		{status(503, "soon"), Error{}},
		{status(400, ""), Error{Refused: true}},
		{status(404, ""), Error{}},
		{status(410, ""), Error{Refused: true}}, // Slack's answer of a channel that is archived
		{status(302, ""), Error{}},
	} {
		hook := serve(t, c.answer)
		client := hook.Client()
		client.CheckRedirect = NoRedirect
		_, err := NewWebhook(hook.URL+secret, client).Send(t.Context(), message)
		hold(t, err, c.want, "XXXXXXXXXXXX", "T00000000")
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	_, err := NewWebhook(gone.URL+secret, http.DefaultClient).Send(t.Context(), message)
	hold(t, err, Error{}, "XXXXXXXXXXXX", "T00000000")
	_, err = NewWebhook("https://user:passwordpassword@\x7f"+secret, http.DefaultClient).Send(t.Context(), message)
	hold(t, err, Error{}, "XXXXXXXXXXXX", "passwordpassword")
}

// Teams gets a card, at the address that shoutrrr makes of its URL.
func TestShoutrrrTeams(t *testing.T) {
	teams := &service{answer: func(w http.ResponseWriter, _, _ string) { fmt.Fprint(w, "1") }}
	teams.Server = httptest.NewTLSServer(teams)
	t.Cleanup(teams.Close)
	before := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = before })
	var host string
	http.DefaultTransport = &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host = address
			return new(net.Dialer).DialContext(ctx, network, teams.Listener.Addr().String())
		},
	}
	const id = "11111111-4444-4444-8444-cccccccccccc"
	const secret = "teams://" + id + "@" + id + "/33333333012222222222333333333344/" + id + "/V2ESyij_gAljSoUQHvZoZYzlpAoAXExyOl26dlf1xHEx05?host=example.webhook.office.com"
	s, err := NewShoutrrr(secret)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Send(t.Context(), message); err != nil {
		t.Fatal(err)
	}
	path, body := teams.last(t)
	if host != "example.webhook.office.com:443" || !strings.Contains(path, "/IncomingWebhook/") || !strings.Contains(body, "group web grows") {
		t.Errorf("%s %s: %s", host, path, body)
	}
	teams.mu.Lock()
	teams.answer = func(w http.ResponseWriter, _, _ string) { w.WriteHeader(http.StatusInternalServerError) }
	teams.mu.Unlock()
	_, err = s.Send(t.Context(), message)
	hold(t, err, Error{}, id, "V2ESyij")

	// One that hangs does not pile up calls.
	release := make(chan struct{})
	teams.mu.Lock()
	teams.answer = func(http.ResponseWriter, string, string) { <-release }
	teams.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Send(ctx, message)
	hold(t, err, Error{}, id)
	other := message
	other.ID = "another"
	_, err = s.Send(t.Context(), other)
	hold(t, err, Error{}, id)
	if !strings.Contains(err.Error(), errBusy.Error()) {
		t.Errorf("a second call: %v", err)
	}
	close(release)
}

// slowly is a service of shoutrrr that takes its time.
type slowly struct {
	types.Service
	calls   atomic.Int32
	release chan struct{}
}

func (s *slowly) Send(string, *types.Params) error {
	s.calls.Add(1)
	<-s.release
	return nil
}

// A call that goes on after its time is not made again: its result is that of the next try.
func TestShoutrrrSendsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &slowly{release: make(chan struct{})}
		s := &Shoutrrr{service: service}
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), Timeout)
			_, err := s.Send(ctx, message)
			cancel()
			hold(t, err, Error{})
		}
		close(service.release)
		synctest.Wait()
		if _, err := s.Send(t.Context(), message); err != nil {
			t.Errorf("what has arrived meanwhile: %v", err)
		}
		if n := service.calls.Load(); n != 1 {
			t.Errorf("it was sent %d times", n)
		}
		other := message
		other.ID = "another"
		if _, err := s.Send(t.Context(), other); err != nil || service.calls.Load() != 2 {
			t.Errorf("the next: %v, %d calls", err, service.calls.Load())
		}
	})
}

// A call of which nothing is heard is not waited for for ever.
func TestShoutrrrForsaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &slowly{release: make(chan struct{})}
		s := &Shoutrrr{service: service}
		ctx, cancel := context.WithTimeout(t.Context(), Timeout)
		defer cancel()
		_, err := s.Send(ctx, message)
		hold(t, err, Error{})
		time.Sleep(forsakenAfter)
		close(service.release)
		s.service = &slowly{release: service.release}
		other := message
		other.ID = "another"
		if _, err := s.Send(t.Context(), other); err != nil {
			t.Error(err)
		}
	})
}

// transport answers in place of the network.
type transport func() (*http.Response, error)

func (t transport) RoundTrip(*http.Request) (*http.Response, error) { return t() }

// What a service did not take is not taken for sent, whatever shoutrrr makes of it.
func TestShoutrrrWithoutAnAnswer(t *testing.T) {
	before := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = before })
	answer := func(status int, body string) transport {
		return func() (*http.Response, error) {
			return &http.Response{StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}}, nil
		}
	}
	refused := transport(func() (*http.Response, error) { return nil, errors.New("connection refused") })
	const token = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
	for _, c := range []struct {
		url    string
		answer transport
		want   string // in the error; empty for none
	}{
		{"telegram://" + token + "@telegram?chats=1", answer(http.StatusOK, `{"ok":true,"result":{}}`), ""},
		{"telegram://" + token + "@telegram?chats=1", answer(http.StatusBadRequest, `{"ok":false,"error_code":400,"description":"chat not found"}`), "chat not found"},
		{"telegram://" + token + "@telegram?chats=1", refused, "connection refused"},
		{"telegram://" + token + "@telegram?chats=1", answer(http.StatusBadGateway, "<html>"), "502 Bad Gateway"},
		{"telegram://" + token + "@telegram?chats=1", answer(http.StatusUnauthorized, ""), "401 Unauthorized"},
		{"telegram://" + token + "@telegram?chats=1", answer(http.StatusOK, "{}"), "not as Telegram does"},
		{"zulip://bot:hunter2hunter2@zulip.example.com/?stream=a&topic=b", refused, ""},
	} {
		http.DefaultTransport = c.answer
		s, err := NewShoutrrr(c.url)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Send(t.Context(), message)
		if c.want == "" && strings.HasPrefix(c.url, "telegram") {
			if err != nil {
				t.Errorf("%s: %v", c.url, err)
			}
			continue
		}
		hold(t, err, Error{}, token, "hunter2hunter2")
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.url, err, c.want)
		}
	}
	if http.DefaultClient.Timeout != Timeout {
		t.Errorf("services may wait for %s", http.DefaultClient.Timeout)
	}
}

// failing is a service that takes nothing.
type failing struct {
	slowly
	err error
}

func (f *failing) Send(string, *types.Params) error { return f.err }

// What a service will never take is not sent again; the rest may be.
func TestShoutrrrRefusals(t *testing.T) {
	for text, refused := range map[string]bool{
		"some recipients failed: bob@example.com: 550 5.1.1 no such user": true,
		"some recipients failed: bob@example.com: 421 try again later":    false,
		"message exceeds the max length":                                  true,
		"dial tcp 192.0.2.5:550: connection refused":                      false,
	} {
		s := &Shoutrrr{service: &failing{err: errors.New(text)}}
		_, err := s.Send(t.Context(), message)
		hold(t, err, Error{Refused: refused})
	}
}

func TestShoutrrrMistakes(t *testing.T) {
	for _, secret := range []string{"telegrams://secretsecret", "teams://secretsecret@x", "://secretsecret", "discord://secretsecret"} {
		_, err := NewShoutrrr(secret)
		hold(t, err, Error{}, "secretsecret")
	}
}

// SNS gets a Publish in its query protocol, signed; a FIFO topic the message's id.
func TestSNS(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secretsecretsecret")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	fails := ""
	api := serve(t, func(w http.ResponseWriter, _, body string) {
		form, err := url.ParseQuery(body)
		w.Header().Set("Content-Type", "text/xml")
		if err != nil || form.Get("Action") != "Publish" || fails != "" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type><Code>%s</Code><Message>no</Message></Error></ErrorResponse>`, fails)
			return
		}
		fmt.Fprint(w, `<PublishResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishResult><MessageId>m</MessageId></PublishResult></PublishResponse>`)
	})
	const topic = "arn:aws:sns:eu-central-1:111122223333:windlass.fifo"
	s, err := NewSNS(t.Context(), topic, "eu-central-1", api.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Send(t.Context(), message); err != nil {
		t.Fatal(err)
	}
	_, body := api.last(t)
	form, err := url.ParseQuery(body)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"TopicArn": topic, "Subject": "Windlass: Scaling up: web", "MessageDeduplicationId": message.ID, "MessageGroupId": "scale-up", "MessageAttributes.entry.1.Name": "kind"} {
		if got := form.Get(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if !strings.Contains(api.header.Get("Authorization"), "/eu-central-1/sns/") {
		t.Errorf("signed %q", api.header.Get("Authorization"))
	}
	fails = "InvalidParameter"
	_, err = s.Send(t.Context(), message)
	hold(t, err, Error{Refused: true}, "secretsecretsecret")
	fails = "Throttling"
	_, err = s.Send(t.Context(), message)
	hold(t, err, Error{}, "secretsecretsecret")
}

func TestCloudEvents(t *testing.T) {
	bus := serve(t, ok)
	c, err := NewCloudEvents(bus.URL+"/secretsecret", "blue", http.DefaultTransport)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Send(t.Context(), message); err != nil {
		t.Fatal(err)
	}
	_, body := bus.last(t)
	var got struct {
		ID, Source, Type, Subject, SpecVersion string
		Data                                   data
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if got.ID != message.ID || got.Source != "windlass/blue" || got.Type != "dev.windlass.scale-up" || got.SpecVersion != "1.0" || got.Data.Happenings[0].Group != "web" {
		t.Errorf("%+v", got)
	}
	elsewhere := serve(t, ok) // a redirection that is followed would have come through
	for status, want := range map[int]Error{429: {After: 9 * time.Second}, 400: {After: 9 * time.Second, Refused: true}, 500: {After: 9 * time.Second}, 302: {After: 9 * time.Second}} {
		bus.mu.Lock()
		bus.answer = func(w http.ResponseWriter, _, _ string) {
			w.Header().Set("Location", elsewhere.URL)
			w.Header().Set("Retry-After", "9")
			w.WriteHeader(status)
		}
		bus.mu.Unlock()
		_, err := c.Send(t.Context(), message)
		hold(t, err, want, "secretsecret")
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	c, err = NewCloudEvents(gone.URL+"/secretsecret", "blue", http.DefaultTransport)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Send(t.Context(), message)
	hold(t, err, Error{}, "secretsecret")
}

type data = body

package send

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"

	"windlass.dev/windlass/notifier/render"
	"windlass.dev/windlass/pkg/contract"
)

// Shoutrrr posts to whatever service a URL of shoutrrr names.
type Shoutrrr struct {
	service types.Service
	url     string
	// pending is the one call that has not been answered for: shoutrrr cannot be told to stop.
	// At most one Send is called at a time.
	pending *pending
}

// pending is a call for a message, whose result comes once.
type pending struct {
	id     string
	begun  time.Time
	result chan error
}

// forsakenAfter is how long a call may go on before nobody waits for it any more: some services know
// no time-out.
const forsakenAfter = 10 * time.Minute

// NewShoutrrr returns one for a URL, which is a secret.
func NewShoutrrr(url string) (*Shoutrrr, error) {
	mendDefaultClient()
	r, err := router.New(log.New(io.Discard, "", 0)) // what it logs may have secrets
	if err != nil {
		return nil, fail("shoutrrr", err, url)
	}
	service, err := r.Locate(url)
	if err != nil {
		return nil, fail("shoutrrr", err, url)
	}
	return &Shoutrrr{service: service, url: url}, nil
}

var errBusy = errors.New("the call before has not ended")

// Send implements Sender. A call that goes on when ctx ends is that of the next Send of the same
// message, which is not sent twice so; another message waits for it. A call that nothing is heard of is
// forsaken in the end, and its message is sent again.
func (s *Shoutrrr) Send(ctx context.Context, m render.Message) (string, error) {
	if s.pending != nil && time.Since(s.pending.begun) > forsakenAfter {
		s.pending = nil
	}
	if s.pending != nil && s.pending.id != m.ID {
		select {
		case <-s.pending.result: // nobody asks for it any more
		default:
			return "", fail("shoutrrr", errBusy)
		}
		s.pending = nil
	}
	if s.pending == nil {
		s.pending = s.call(m)
	}
	select {
	case err := <-s.pending.result:
		s.pending = nil
		if err != nil {
			failed := fail("shoutrrr", err, s.url)
			failed.Refused = final.MatchString(err.Error())
			return "", failed
		}
		return "", nil
	case <-ctx.Done():
		return "", fail("shoutrrr", ctx.Err(), s.url)
	}
}

// final is found in errors that another try does not mend: a mail server's permanent reply, while other recipients
// may have had the message, and a text that is too long. Shoutrrr's errors have no other mark.
var final = regexp.MustCompile(`(?s)some recipients.*\b5\d\d\b|max length|max size`)

// mostPlain is less than any service takes: Telegram 4,096 characters.
const mostPlain = 4000

func (s *Shoutrrr) call(m render.Message) *pending {
	params := types.Params{}
	text := m.Plain()
	if !m.Own {
		text = contract.Shorten(text, mostPlain)
		params.SetTitle(m.Title)
	}
	p := &pending{id: m.ID, begun: time.Now(), result: make(chan error, 1)}
	go func() {
		defer func() { // the code of some services does, where nobody answers
			if broke := recover(); broke != nil {
				p.result <- fmt.Errorf("the code for the service broke: %v", broke)
			}
		}()
		p.result <- s.service.Send(text, &params)
	}()
	return p
}

// mendDefaultClient sees to it that the services of shoutrrr that use http.DefaultClient do not wait
// without end, and that Telegram's is right about what was sent.
var mendDefaultClient = sync.OnceFunc(func() {
	http.DefaultClient.Timeout = Timeout
	http.DefaultClient.Transport = telegramAnswers{}
})

// telegramAnswers makes an answer that says what is wrong of whatever Telegram did not answer: where
// none came, or none that shoutrrr can read, that takes the message for sent.
// https://core.telegram.org/bots/api#making-requests
type telegramAnswers struct{}

type telegramAnswer struct {
	OK          bool   `json:"ok"`
	Code        int    `json:"error_code"`
	Description string `json:"description"`
}

// mostAnswer is the most bytes of an answer that are read.
const mostAnswer = 1 << 20

func (telegramAnswers) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(request)
	if request.URL.Hostname() != "api.telegram.org" {
		return response, err
	}
	var body []byte
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(response.Body, mostAnswer))
		err = errors.Join(err, response.Body.Close())
	}
	said := telegramAnswer{Code: http.StatusBadGateway}
	if err != nil {
		response = &http.Response{Request: request, StatusCode: said.Code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}}
		said.Description = err.Error()
	} else if wrong := json.Unmarshal(body, &said); wrong != nil || !said.OK && response.StatusCode < http.StatusBadRequest {
		said = telegramAnswer{Code: response.StatusCode, Description: "it answered " + response.Status + ", and not as Telegram does"}
		response.StatusCode = max(response.StatusCode, http.StatusBadGateway)
	} else {
		response.Body = io.NopCloser(bytes.NewReader(body))
		return response, nil
	}
	if body, err = json.Marshal(said); err != nil {
		return nil, err
	}
	response.Status = http.StatusText(response.StatusCode)
	response.ContentLength, response.Body = int64(len(body)), io.NopCloser(bytes.NewReader(body))
	return response, nil
}

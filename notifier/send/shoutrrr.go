package send

import (
	"context"
	"errors"
	"io"
	"log"
	"regexp"

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
	result chan error
}

// NewShoutrrr returns one for a URL, which is a secret.
func NewShoutrrr(url string) (*Shoutrrr, error) {
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
// message, which is not sent twice so; another message waits for it.
func (s *Shoutrrr) Send(ctx context.Context, m render.Message) (string, error) {
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
	p := &pending{id: m.ID, result: make(chan error, 1)}
	go func() { p.result <- s.service.Send(text, &params) }()
	return p
}

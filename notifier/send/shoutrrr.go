package send

import (
	"context"
	"errors"
	"io"
	"log"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"

	"windlass.dev/windlass/notifier/render"
)

// Shoutrrr posts to whatever service a URL of shoutrrr names.
type Shoutrrr struct {
	service types.Service
	url     string
	// busy holds the one call that is under way: shoutrrr cannot be told to stop.
	busy chan struct{}
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
	return &Shoutrrr{service: service, url: url, busy: make(chan struct{}, 1)}, nil
}

var errBusy = errors.New("the call before has not ended")

// Send implements Sender.
func (s *Shoutrrr) Send(ctx context.Context, m render.Message) (string, error) {
	select {
	case s.busy <- struct{}{}:
	default:
		return "", fail("shoutrrr", errBusy)
	}
	params := types.Params{}
	text := m.Plain()
	if !m.Own {
		params.SetTitle(m.Title)
	}
	sent := make(chan error, 1)
	go func() {
		defer func() { <-s.busy }()
		sent <- s.service.Send(text, &params)
	}()
	select {
	case err := <-sent:
		if err != nil {
			return "", fail("shoutrrr", err, s.url)
		}
		return "", nil
	case <-ctx.Done():
		return "", fail("shoutrrr", ctx.Err(), s.url)
	}
}

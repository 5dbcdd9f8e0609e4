// Package send posts messages to services:
//
//	send.go         what every service has in common
//	slack.go        a Slack bot, which changes what it posted
//	webhook.go      JSON to a URL, as Slack's incoming webhooks take it
//	shoutrrr.go     whatever shoutrrr knows: Teams, Discord, Telegram, mail, ...
//	sns.go          Amazon SNS
//	cloudevents.go  CloudEvents over HTTP
//
// A sender tries once, and says in its error what to do: its caller has the back-off. No error
// has a secret in it, and URLs are secrets.
package send

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"windlass.dev/windlass/notifier/render"
)

// Sender posts to one service.
type Sender interface {
	// Send posts a message, or changes the one that m.Ref names where the service can. It
	// returns by what name the message can be changed; empty where it cannot. An error is an
	// *Error.
	Send(ctx context.Context, m render.Message) (ref string, err error)
}

// Error says why a service has not taken a message.
type Error struct {
	text string
	// After is how long the service wants to be left alone; 0 where it has not said.
	After time.Duration
	// Refused: it will never take this message, but may take others.
	Refused bool
}

func (e *Error) Error() string { return e.text }

// Failed is an error with that text, in which there is no secret.
func Failed(text string) *Error { return &Error{text: text} }

// Timeout is how long one try takes at most.
const Timeout = 20 * time.Second

// NoRedirect has a client take an answer that sends it elsewhere as it is. To follow would make a message
// a question without a body, or bring it to a host that nobody named.
func NoRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// mostAfter bounds what a service may ask for.
const mostAfter = time.Hour

// fail is what an error becomes: without secrets, which may stand anywhere in it.
func fail(what string, err error, secrets ...string) *Error {
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err // its text begins with the URL
		if failed.Op == "parse" {
			err = errors.New("its URL does not parse") // what is wrong there may be the secret
		}
	}
	return &Error{text: hide(fmt.Sprintf("%s: %v", what, err), secrets...)}
}

// hide takes secrets out of a text. Of a URL all parts are secret but the host.
func hide(text string, secrets ...string) string {
	for _, secret := range secrets {
		for _, part := range parts(secret) {
			text = strings.ReplaceAll(text, part, "***")
		}
	}
	return text
}

// parts of a secret that may stand alone in a text, the longest first.
func parts(secret string) []string {
	list := []string{secret, strconv.Quote(secret)}
	u, err := url.Parse(secret)
	if err != nil || u.Scheme == "" {
		return list
	}
	list = append(list, u.RequestURI(), u.RawQuery, u.User.String())
	if password, has := u.User.Password(); has {
		list = append(list, password, u.User.Username())
	}
	list = append(list, strings.FieldsFunc(u.Path+"/"+u.User.Username(), func(r rune) bool { return r == '/' || r == '@' })...)
	for _, values := range u.Query() {
		list = append(list, values...)
	}
	const short = 6 // shorter ones are words
	var long []string
	for _, part := range list {
		if len(part) >= short {
			long = append(long, part, url.PathEscape(part), url.QueryEscape(part))
		}
	}
	return long
}

// answered is an error where an answer of a service is one.
func answered(what string, status int, header http.Header) *Error {
	if status/100 == 2 {
		return nil
	}
	e := &Error{text: fmt.Sprintf("%s: it answered %d %s", what, status, http.StatusText(status)), After: retryAfter(header)}
	switch status {
	case http.StatusBadRequest, http.StatusGone, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		e.Refused = true
	}
	return e
}

// retryAfter reads the header of that name, in seconds or as a date.
func retryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	wait := time.Duration(0)
	if seconds, err := strconv.Atoi(text); err == nil {
		wait = time.Duration(min(seconds, int(mostAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = time.Until(at)
	}
	return min(max(wait, 0), mostAfter)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"windlass.dev/windlass/notifier/config"
	"windlass.dev/windlass/notifier/render"
	"windlass.dev/windlass/notifier/send"
)

// fromSecret is a sender that is made of a secret's file, and made anew when that has changed:
// tokens are rotated while this runs.
type fromSecret struct {
	file  string
	dial  func(secret string) (send.Sender, error)
	known string
	send.Sender
}

// Send implements send.Sender. At most one is called at a time.
func (s *fromSecret) Send(ctx context.Context, m render.Message) (string, error) {
	if err := s.read(); err != nil {
		return "", err
	}
	return s.Sender.Send(ctx, m)
}

func (s *fromSecret) read() error {
	secret, err := readSecret(s.file)
	if err != nil {
		return send.Failed(err.Error())
	}
	if s.Sender != nil && secret == s.known {
		return nil
	}
	sender, err := s.dial(secret)
	if err != nil {
		return err
	}
	s.known, s.Sender = secret, sender
	return nil
}

// mostSecret is the most bytes of one.
const mostSecret = 16 << 10

func readSecret(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading a secret: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" || len(secret) > mostSecret || strings.ContainsAny(secret, "\n\r") {
		return "", fmt.Errorf("secret %s: want one line that is not empty", file)
	}
	return secret, nil
}

// dial makes the sender of each service. A secret that is not there is an error now, so that
// whoever starts this learns of it.
func dial(ctx context.Context, f config.File, secrets, cluster string) (map[string]send.Sender, error) {
	client := &http.Client{Timeout: send.Timeout, CheckRedirect: send.NoRedirect}
	senders := map[string]send.Sender{}
	var wrong []error
	for _, s := range f.Services {
		sender, err := dialOne(ctx, s, secrets, cluster, client)
		if lazy, is := sender.(*fromSecret); is && err == nil {
			err = lazy.read()
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("service %s: %w", s.Name, err))
		}
		senders[s.Name] = sender
	}
	return senders, errors.Join(wrong...)
}

func dialOne(ctx context.Context, s config.Service, secrets, cluster string, client *http.Client) (send.Sender, error) {
	of := func(name string, dial func(secret string) (send.Sender, error)) send.Sender {
		return &fromSecret{file: filepath.Join(secrets, name), dial: dial}
	}
	switch {
	case s.Slack != nil:
		return of(s.Slack.Secret, func(token string) (send.Sender, error) {
			return send.NewSlack(s.Slack.Channel, token, s.Slack.URL, client), nil
		}), nil
	case s.Webhook != nil:
		return of(s.Webhook.Secret, func(url string) (send.Sender, error) { return send.NewWebhook(url, client), nil }), nil
	case s.Shoutrrr != nil:
		return of(s.Shoutrrr.Secret, func(url string) (send.Sender, error) { return send.NewShoutrrr(url) }), nil
	case s.SNS != nil:
		region, err := config.Region(s.SNS.Topic)
		if err != nil {
			return nil, err
		}
		return send.NewSNS(ctx, s.SNS.Topic, region, s.SNS.URL)
	case s.CloudEvents.Secret != "":
		return of(s.CloudEvents.Secret, func(url string) (send.Sender, error) { return send.NewCloudEvents(url, cluster, http.DefaultTransport) }), nil
	}
	return send.NewCloudEvents(s.CloudEvents.URL, cluster, http.DefaultTransport)
}

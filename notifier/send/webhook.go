package send

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/slack-go/slack"

	"windlass.dev/windlass/notifier/render"
)

// Webhook posts JSON to a URL.
type Webhook struct {
	url    string
	client *http.Client
}

// NewWebhook returns one for a URL, which is a secret.
func NewWebhook(url string, client *http.Client) *Webhook { return &Webhook{url: url, client: client} }

// Send implements Sender.
func (w *Webhook) Send(ctx context.Context, m render.Message) (string, error) {
	body, err := webhookBody(m)
	if err != nil {
		return "", &Error{text: fmt.Sprintf("webhook: encoding the message: %v", err), Refused: true}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return "", fail("webhook", err, w.url)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := w.client.Do(request)
	if err != nil {
		return "", fail("webhook", err, w.url)
	}
	defer func() {
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // so that the connection is used again
		_ = response.Body.Close()
	}()
	if err := answered("webhook", response.StatusCode, response.Header); err != nil {
		return "", err
	}
	return "", nil
}

// webhookBody is what Slack takes, or the JSON that a template made.
func webhookBody(m render.Message) ([]byte, error) {
	if m.Own && json.Valid([]byte(m.Text)) {
		return []byte(m.Text), nil
	}
	text, blocks := slackMessage(m)
	message := slack.WebhookMessage{Text: text}
	if len(blocks.BlockSet) > 0 {
		message.Blocks = &blocks
	}
	return json.Marshal(message)
}

package send

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"windlass.dev/windlass/notifier/happening"
	"windlass.dev/windlass/notifier/render"
	"windlass.dev/windlass/pkg/contract"
)

// Slack posts as a bot.
type Slack struct {
	client         *slack.Client
	channel, token string
}

// NewSlack returns one for a channel. An empty URL is Slack's own.
func NewSlack(channel, token, url string, client *http.Client) *Slack {
	options := []slack.Option{slack.OptionHTTPClient(client)}
	if url != "" {
		options = append(options, slack.OptionAPIURL(strings.TrimSuffix(url, "/")+"/"))
	}
	return &Slack{client: slack.New(token, options...), channel: channel, token: token}
}

// What Slack answers where a message cannot be changed, such as one in a channel that was left for
// another, and where it takes this message never. A channel that it does not find, or that the bot
// is not in, is neither: people invite the bot, and what waits is posted.
// https://docs.slack.dev/reference/methods/chat.postMessage#errors
var (
	notThere = []string{"message_not_found", "cant_update_message", "edit_window_closed", "channel_not_found", "is_archived", "is_inactive", "not_in_channel"}
	refusals = []string{"is_archived", "invalid_blocks", "invalid_blocks_format", "msg_too_long", "no_text", "msg_blocks_too_long", "invalid_arguments", "too_many_attachments"}
)

// Send implements Sender.
func (s *Slack) Send(ctx context.Context, m render.Message) (string, error) {
	options := slackOptions(m)
	if channel, ts, ok := strings.Cut(m.Ref, "/"); ok {
		_, _, _, err := s.client.UpdateMessageContext(ctx, channel, ts, options...)
		var refused slack.SlackErrorResponse
		if err == nil {
			return m.Ref, nil
		}
		if !errors.As(err, &refused) || !slices.Contains(notThere, refused.Err) {
			return "", s.failed(err)
		}
		// Somebody has deleted it, say: what there is to tell is told anew.
	}
	channel, ts, err := s.client.PostMessageContext(ctx, s.channel, options...)
	if err != nil {
		return "", s.failed(err)
	}
	return channel + "/" + ts, nil
}

func (s *Slack) failed(err error) error {
	failed := fail("Slack", err, s.token)
	var limited *slack.RateLimitedError
	var refused slack.SlackErrorResponse
	switch {
	case errors.As(err, &limited):
		failed.After = min(limited.RetryAfter, mostAfter)
	case errors.As(err, &refused):
		failed.Refused = slices.Contains(refusals, refused.Err)
	}
	return failed
}

func slackOptions(m render.Message) []slack.MsgOption {
	text, blocks := slackMessage(m)
	return []slack.MsgOption{slack.MsgOptionText(text, false), slack.MsgOptionBlocks(blocks.BlockSet...), slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl()}
}

// The most that Slack takes.
// https://docs.slack.dev/reference/block-kit/blocks/
const mostHeader, mostSection, mostField, mostFields = 150, 3000, 2000, 10

// mostFacts is how many are shown, in sections of ten.
const mostFacts = 40

var signs = map[happening.Severity]string{happening.Info: "🔵", happening.Warning: "🟠", happening.Critical: "🔴"}

// slackMessage is a message as Block Kit, with a text for notifications. What a template made is
// taken as it is: a text, or JSON with text or blocks.
func slackMessage(m render.Message) (string, slack.Blocks) {
	if m.Own {
		var own struct {
			Text   string       `json:"text"`
			Blocks slack.Blocks `json:"blocks"`
		}
		if err := json.Unmarshal([]byte(m.Text), &own); err == nil && (own.Text != "" || len(own.Blocks.BlockSet) > 0) {
			return cmp.Or(own.Text, m.Title), own.Blocks
		}
		return m.Text, slack.Blocks{}
	}
	sign := signs[m.Severity]
	if m.Ended {
		sign = "⚪"
	}
	title := sign + " " + m.Title
	set := []slack.Block{slack.NewHeaderBlock(slack.NewTextBlockObject(slack.PlainTextType, contract.Shorten(title, mostHeader), true, false))}
	if m.Text != "" {
		set = append(set, slack.NewSectionBlock(slack.NewTextBlockObject(slack.MarkdownType, contract.Shorten(render.ForSlack.Replace(m.Text), mostSection), false, true), nil, nil))
	}
	facts := m.Facts
	if more := len(facts) - mostFacts; more > 0 {
		facts = append(slices.Clone(facts[:mostFacts-1]), render.Fact{Name: "And more", Value: fmt.Sprintf("%d others", more+1)})
	}
	for some := range slices.Chunk(facts, mostFields) {
		var fields []*slack.TextBlockObject
		for _, f := range some {
			fields = append(fields, slack.NewTextBlockObject(slack.MarkdownType, contract.Shorten("*"+render.ForSlack.Replace(f.Name)+"*\n"+render.ForSlack.Replace(f.Value), mostField), false, true))
		}
		set = append(set, slack.NewSectionBlock(nil, fields, nil))
	}
	return render.ForSlack.Replace(title + ": " + m.Text), slack.Blocks{BlockSet: set}
}

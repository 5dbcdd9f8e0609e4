package send

import (
	"context"
	"errors"
	"net/http"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"windlass.dev/windlass/notifier/happening"
	"windlass.dev/windlass/notifier/render"
)

// CloudEvents posts structured events to a URL. Who reads them knows by source and id which it
// has had.
type CloudEvents struct {
	client cloudevents.Client
	source string
	url    string
	last   *header
}

// header keeps that of the last answer: the SDK's result does not have it.
type header struct {
	next http.RoundTripper
	last http.Header
}

func (h *header) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := h.next.RoundTrip(r)
	if err == nil {
		h.last = response.Header
	}
	return response, err
}

// NewCloudEvents returns one for a URL, which may be a secret. The source is the cluster's name.
func NewCloudEvents(url, cluster string, transport http.RoundTripper) (*CloudEvents, error) {
	last := &header{next: transport}
	client, err := cloudevents.NewClientHTTP(cloudevents.WithTarget(url), cehttp.WithClient(http.Client{Transport: last, CheckRedirect: NoRedirect}))
	if err != nil {
		return nil, fail("CloudEvents", err, url)
	}
	return &CloudEvents{client: client, source: "windlass/" + cluster, url: url, last: last}, nil
}

// body is the data of an event.
type body struct {
	Title      string                `json:"title"`
	Text       string                `json:"text"`
	Severity   string                `json:"severity"`
	Ended      bool                  `json:"ended"`
	Facts      []render.Fact         `json:"facts,omitempty"`
	Happenings []happening.Happening `json:"happenings,omitempty"`
}

// Send implements Sender.
func (c *CloudEvents) Send(ctx context.Context, m render.Message) (string, error) {
	event := cloudevents.NewEvent()
	event.SetID(m.ID)
	event.SetSource(c.source)
	event.SetType("dev.windlass." + m.Kind)
	event.SetTime(time.Now())
	if len(m.Of) == 1 {
		event.SetSubject(m.Of[0].ID)
	}
	if err := event.SetData(cloudevents.ApplicationJSON, body{Title: m.Title, Text: m.Text, Severity: m.Severity.String(), Ended: m.Ended, Facts: m.Facts, Happenings: m.Of}); err != nil {
		return "", &Error{text: "CloudEvents: encoding the message: " + err.Error(), Refused: true}
	}
	c.last.last = nil
	err := c.client.Send(cloudevents.ContextWithTarget(cloudevents.WithEncodingStructured(ctx), c.url), event)
	var result *cehttp.Result
	switch {
	case cloudevents.IsACK(err):
		return "", nil
	case errors.As(err, &result):
		if failed := answered("CloudEvents", result.StatusCode, c.last.last); failed != nil {
			return "", failed
		}
		return "", nil
	}
	return "", fail("CloudEvents", err, c.url)
}

package send

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"windlass.dev/windlass/notifier/render"
	"windlass.dev/windlass/pkg/awscall"
	"windlass.dev/windlass/pkg/contract"
)

// SNS publishes to a topic.
type SNS struct {
	client *sns.Client
	topic  string
}

// NewSNS returns one for a topic of a region, by its ARN, with the credentials of this pod. An
// empty URL is AWS's own endpoint.
func NewSNS(ctx context.Context, topic, region, url string) (*SNS, error) {
	config, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(region),
		awsconfig.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
		awsconfig.WithAPIOptions([]func(*middleware.Stack) error{awscall.KeepAnswer}))
	if err != nil {
		return nil, fail("SNS", err)
	}
	return &SNS{client: sns.NewFromConfig(config, func(o *sns.Options) {
		if url != "" {
			o.BaseEndpoint = aws.String(url)
		}
	}), topic: topic}, nil
}

// mostSubject is the most that SNS takes, of ASCII without line ends.
// https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
const mostSubject = 99

// snsRefusals are what SNS answers where it never takes this message.
var snsRefusals = []string{"InvalidParameter", "InvalidParameterValue", "ValidationException"}

// Send implements Sender. In a FIFO topic the message's id keeps it from being there twice.
func (s *SNS) Send(ctx context.Context, m render.Message) (string, error) {
	text := func(value string) types.MessageAttributeValue {
		return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(value)}
	}
	input := &sns.PublishInput{
		TopicArn: aws.String(s.topic), Subject: aws.String(subject(m.Title)), Message: aws.String(m.Plain()),
		MessageAttributes: map[string]types.MessageAttributeValue{"kind": text(m.Kind), "severity": text(m.Severity.String())},
	}
	if strings.HasSuffix(s.topic, ".fifo") {
		input.MessageGroupId, input.MessageDeduplicationId = aws.String(m.Kind), aws.String(m.ID)
	}
	if _, err := s.client.Publish(ctx, input); err != nil {
		failed := fail("SNS", err)
		var api smithy.APIError
		failed.Refused = errors.As(err, &api) && slices.Contains(snsRefusals, api.ErrorCode())
		return "", failed
	}
	return "", nil
}

func subject(title string) string {
	ascii := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, title)
	return contract.Shorten("Windlass: "+strings.TrimSpace(ascii), mostSubject-len("…"))
}

package asg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	smithy "github.com/aws/smithy-go"
)

// What a failed call means for whoever asked for it; test with errors.Is.
var (
	// ErrDenied: IAM does not allow the call.
	ErrDenied = errors.New("access denied")
	// ErrThrottled: too many calls; the bucket is shared by the whole account
	// and region.
	ErrThrottled = errors.New("throttled")
	// ErrUnavailable: AWS was not reached, or failed itself (5xx).
	ErrUnavailable = errors.New("unavailable")
	// ErrCredentials: there are none, or AWS does not accept them.
	ErrCredentials = errors.New("no valid AWS credentials")
	// ErrRefused: Auto Scaling does not do that, as asked, and will not if it is
	// asked again: beyond a group's bounds, say.
	ErrRefused = errors.New("refused")
	// ErrMissing: what the call is about does not exist.
	ErrMissing = errors.New("not found")
	// ErrChanged: the group is not as the action expects; nothing was done.
	ErrChanged = errors.New("the group changed in between")
	// ErrNotOurs: another cluster owns the group, or people want it observed. It is an ErrChanged.
	ErrNotOurs = fmt.Errorf("%w, and is not ours", ErrChanged)
	// ErrTooEarly: the instance does not wait for the hook yet.
	ErrTooEarly = errors.New("the instance does not wait for the hook yet")
	// ErrAlready: the instance does not wait for that hook, or no more.
	ErrAlready = errors.New("completed already")
	// ErrBusy: AWS does not do that just now, though it would a moment later: the
	// instance is being changed by somebody else, or there are too many calls.
	ErrBusy = errors.New("AWS is busy")
	// ErrUnasked: the group could not be read, so that nobody was asked to end an instance.
	ErrUnasked = errors.New("not asked")
	// ErrUnsent: AWS was not asked to launch, or did not listen.
	ErrUnsent = errors.New("nothing was launched")
	// ErrUnderWay: AWS was asked to launch and has not answered yet.
	ErrUnderWay = errors.New("no answer yet")
	// ErrUnanswered: AWS was asked to launch, and whether it did is not known.
	ErrUnanswered = errors.New("no answer")
	// ErrStillBusy: AWS carries that very launch out, or another one of the group.
	// It comes with ErrUnanswered.
	ErrStillBusy = errors.New("AWS is busy with it")
)

// CallError is a call that AWS refused or did not answer. Its text has no
// request id and no local address, so that the same trouble always has the
// same text.
type CallError struct {
	// Call is the right that IAM asks for: autoscaling:SetDesiredCapacity.
	Call string
	// Code and Message are AWS's; Code is empty where it did not answer.
	Code, Message string
	// Class is one of the errors above, or nil.
	Class error
	// err is what the SDK returned.
	err error
}

func (e *CallError) Error() string {
	if e.Denied() {
		return e.refusal()
	}
	if e.Code == "" {
		return fmt.Sprintf("%s: %s", e.Call, e.Message)
	}
	return fmt.Sprintf("%s: %s: %s", e.Call, e.Code, e.Message)
}

// Unwrap gives the class and the SDK's own error.
func (e *CallError) Unwrap() []error {
	if e.Class == nil {
		return []error{e.err}
	}
	return []error{e.Class, e.err}
}

// Denied reports whether a right is missing.
func (e *CallError) Denied() bool { return errors.Is(e.Class, ErrDenied) }

// Unheard reports whether a call may have had its effect although it failed: AWS did not answer,
// or answered that it was in trouble.
func Unheard(err error) bool {
	var call *CallError
	return errors.As(err, &call) && (call.Code == "" || errors.Is(err, ErrUnavailable))
}

// Unasked is why a group could not be read right before it was to be changed.
func Unasked(err error) error {
	if errors.Is(err, ErrChanged) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnasked, err)
}

// explain turns the SDK's error of a call into a CallError; nil stays nil.
func explain(call string, err error) error {
	if err == nil {
		return nil
	}
	e := &CallError{Call: call, err: err}
	var api smithy.APIError
	if errors.As(err, &api) {
		e.Code, e.Message = api.ErrorCode(), firstSentence(api.ErrorMessage())
		e.Class = classify(e.Code, api.ErrorFault())
		return e
	}
	if errors.Is(err, context.Canceled) {
		e.Message = "cancelled"
		return e
	}
	e.Class, e.Message = ErrUnavailable, unreached(err)
	if noCredentials(err) {
		e.Class = ErrCredentials
	}
	return e
}

// Codes by meaning: https://docs.aws.amazon.com/autoscaling/ec2/APIReference/CommonErrors.html
// and https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
var (
	deniedCodes = []string{"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "Client.UnauthorizedOperation", "NotAuthorized", "OptInRequired"}
	throttled   = []string{"Throttling", "ThrottlingException", "ThrottledException", "RequestLimitExceeded", "RequestThrottled", "RequestThrottledException", "TooManyRequestsException", "PriorRequestNotComplete", "SlowDown", "BandwidthLimitExceeded"}
	credentials = []string{"AuthFailure", "InvalidClientTokenId", "ExpiredToken", "ExpiredTokenException", "UnrecognizedClientException", "SignatureDoesNotMatch", "IncompleteSignature", "MissingAuthenticationToken", "InvalidSignatureException", "RequestExpired"}
	unavailable = []string{"ServiceUnavailable", "InternalFailure", "InternalError", "InternalServerError", "Unavailable", "RequestTimeout"}
)

func classify(code string, fault smithy.ErrorFault) error {
	switch {
	case slices.Contains(deniedCodes, code):
		return ErrDenied
	case slices.Contains(throttled, code):
		return ErrThrottled
	case slices.Contains(credentials, code):
		return ErrCredentials
	case strings.Contains(code, "NotFound"):
		return ErrMissing
	case code == "ValidationError":
		return ErrRefused
	case slices.Contains(unavailable, code), fault == smithy.FaultServer:
		return ErrUnavailable
	}
	return nil
}

// stillBusy recognises the answers of LaunchInstances that leave open the
// outcome: the same call is being carried out already, or another one is in the
// way. To both the SDK's words are to try again with the same token.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_LaunchInstances.html#API_LaunchInstances_Errors
func stillBusy(code string) bool {
	return code == "IdempotentCallInProgress" || code == "ResourceContention"
}

// contended recognises that somebody else is changing the same group or instance
// at this moment. It is the one error of its own that a lifecycle action has.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_CompleteLifecycleAction.html
func contended(err error) bool {
	var call *CallError
	return errors.As(err, &call) && call.Code == "ResourceContention"
}

// firstSentence drops what is different each time: EC2 adds an encoded blob to
// a refusal.
func firstSentence(message string) string {
	message, _, _ = strings.Cut(message, " Encoded authorization failure message")
	return strings.TrimSpace(message)
}

// unreached returns why AWS did not answer, without the address of our own end.
func unreached(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	var op *net.OpError
	if errors.As(err, &op) {
		where := ""
		if op.Addr != nil {
			where = " " + op.Addr.String()
		}
		return fmt.Sprintf("%s%s: %v", op.Op, where, op.Err)
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// noCredentials recognises the SDK's failure to sign a request, which has no
// type of its own (aws/signer/v4 middleware, "failed to retrieve credentials").
func noCredentials(err error) bool {
	text := err.Error()
	return strings.Contains(text, "retrieve credentials") || strings.Contains(text, "get identity")
}

// noActiveAction recognises the one error that AWS gives for both "too early"
// and "done": https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_CompleteLifecycleAction.html
func noActiveAction(err error) bool {
	var call *CallError
	return errors.As(err, &call) && call.Code == "ValidationError" && strings.Contains(call.Message, "No active Lifecycle Action")
}

// Package awscall mends how the AWS SDK makes a call, for the clients of our programs.
package awscall

import (
	"context"
	"io"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// KeepAnswer keeps an answer that comes when the request's body has been sent, and net/http has not yet met
// its end. The SDK closes a body as soon as there is an answer, and the WriteTo of a body that is closed fails
// with io.EOF: net/http then takes the sending for failed, and closes the connection that the answer comes on.
// What has been done would count as failed. The Read of such a body has no such flaw, so that WriteTo is hidden.
//
// It is an API option of an aws.Config. See safeWriteToReadCloser of
// https://github.com/aws/smithy-go/blob/main/transport/http/internal/io/safe.go
func KeepAnswer(stack *middleware.Stack) error {
	return stack.Build.Add(middleware.BuildMiddlewareFunc("WindlassKeepAnswer",
		func(ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler) (middleware.BuildOutput, middleware.Metadata, error) {
			if request, ok := in.Request.(*smithyhttp.Request); ok {
				if body, ok := request.GetStream().(io.ReadSeeker); ok {
					plain, err := request.SetStream(struct{ io.ReadSeeker }{body})
					if err != nil {
						return middleware.BuildOutput{}, middleware.Metadata{}, err
					}
					in.Request = plain
				}
			}
			return next.HandleBuild(ctx, in)
		}), middleware.After)
}

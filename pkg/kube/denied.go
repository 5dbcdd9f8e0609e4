package kube

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Denied reports whether an admission webhook denies the request. It does so with whatever
// code it likes, so 404, 409, 422 and 429 do not mean then what they mean from the API
// server. The server itself begins the message, and names the webhook
// (k8s.io/apiserver, pkg/admission/plugin/webhook/errors). What an admission policy
// denies needs no such look: its codes are its own, and its answer names its causes.
func Denied(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	message := status.Status().Message
	return strings.HasPrefix(message, "admission webhook ") && strings.Contains(message, " denied the request")
}

package kube

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// PodGone reports whether an eviction or a deletion by UID was answered so because there is no
// pod of that name any more, or another one. A budget that was deleted just then is no
// pod, and a conflict of versions says nothing of the pod either.
func PodGone(pod string, err error) bool {
	var status apierrors.APIStatus
	switch {
	case !errors.As(err, &status), Denied(err), apierrors.IsUnexpectedServerError(err): // no answer of an API server
		return false
	case apierrors.IsNotFound(err):
		d := status.Status().Details
		return d != nil && d.Kind == "pods" && d.Name == pod
	case apierrors.IsConflict(err):
		return strings.Contains(err.Error(), "UID")
	}
	return false
}

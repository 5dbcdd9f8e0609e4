package kube

import (
	"errors"
	"net/http"

	"k8s.io/client-go/rest"
)

// MostBytes is the most of one answer that a bounded client reads: tenants make pods and budgets of a
// megabyte each, and as many as they like. It is more than the pods of the largest node and five thousand
// budgets take.
const MostBytes = 8 << 20

// PodsPerPage fit into MostBytes, whatever they are: the API server keeps no object of more than 1.5 MiB.
const PodsPerPage = 5

// Bound has clients made from a config refuse what is too large of an answer, but for watches: each of
// their frames has a bound of its own.
func Bound(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{next} })
}

type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(r)
	if err == nil && r.URL.Query().Get("watch") != "true" {
		response.Body = http.MaxBytesReader(nil, response.Body, MostBytes)
	}
	return response, err
}

// TooLarge reports whether an answer was refused for its size.
func TooLarge(err error) bool {
	_, is := errors.AsType[*http.MaxBytesError](err)
	return is
}

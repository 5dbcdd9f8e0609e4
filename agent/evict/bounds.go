package evict

import (
	"errors"
	"net/http"
)

// mostBytes is the most of one answer that is read: tenants make pods and budgets of a megabyte each, and
// as many as they like, and the agent has 64 MiB in all. It is more than the pods of the largest
// node and five thousand budgets take.
const mostBytes = 8 << 20

// podsPerPage fit into mostBytes, whatever they are: the API server keeps no object of more than 1.5 MiB.
const podsPerPage = 5

// bounded refuses what is too large of an answer, but for watches: each of their frames has a bound of
// its own.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(r)
	if err == nil && r.URL.Query().Get("watch") != "true" {
		response.Body = http.MaxBytesReader(nil, response.Body, mostBytes)
	}
	return response, err
}

// tooLarge reports whether an answer was refused for its size.
func tooLarge(err error) bool {
	_, is := errors.AsType[*http.MaxBytesError](err)
	return is
}

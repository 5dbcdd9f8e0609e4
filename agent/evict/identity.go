package evict

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"
)

// identity sends requests as the node itself, where the API server allows that,
// and as the agent's account elsewhere.
//
// The account is one for all nodes. As its node the agent can see and evict the
// pods of that node and of no other: the node authorizer and the admission plugin
// NodeRestriction, which confine kubelets, confine it. The server lets an account
// be the node that its token is bound to from Kubernetes 1.36 on.
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-auth/5284-constrained-impersonation
type identity struct {
	user string
	next http.RoundTripper

	// refused: when the server was last asked, it did not take us for the user.
	refused atomic.Bool
	told    sync.Once
}

func newIdentity(node string) *identity { return &identity{user: "system:node:" + node} }

// wrap returns a configuration whose requests pass through the identity. It
// shares its connection with those of the original.
func (i *identity) wrap(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		i.next = next
		return i
	})
	return c
}

// RoundTrip sends a request as the node. If the node has no right to it, or we
// none to be the node, it is sent again as the account, and so is every later one,
// until the account, too, is refused: a server that has just
// started refuses what it grants in a second. An eviction that is sent again lacks
// contract.LabelAsAccount; it may be denied, and has it when it is next asked for.
func (i *identity) RoundTrip(r *http.Request) (*http.Response, error) {
	if i.refused.Load() {
		return i.asAccount(r)
	}
	response, err := i.next.RoundTrip(i.asNode(r))
	if err != nil {
		return nil, err
	}
	why, err := missingRight(response)
	if err != nil {
		return nil, err
	}
	if why == "" {
		return response, nil
	}
	i.refused.Store(true)
	i.told.Do(func() {
		slog.Info("impersonating the node is not allowed, using the service account", "node", i.user, "answer", why)
	})
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return i.asAccount(again)
}

// asNode returns the request with the header that makes it the node's. It stands
// alone: with a group or an extra beside it the server takes the request for
// another kind of impersonation, and it adds the group of all nodes by itself.
func (i *identity) asNode(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	r.Header.Set(authenticationv1.ImpersonateUserHeader, i.user)
	return r
}

// retry has the next request sent as the node, whatever was said before: API
// servers are upgraded under agents that run for months.
func (i *identity) retry() { i.refused.Store(false) }

func (i *identity) asAccount(r *http.Request) (*http.Response, error) {
	response, err := i.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	why, err := missingRight(response)
	if err != nil {
		return nil, err
	}
	if why != "" {
		i.retry()
	}
	return response, nil
}

// unauthorized finds the sentence in which the API server reports that a user has no
// right, such as `User "a" cannot impersonate resource "users"`. What admission
// denies, the pod of another node above all, is worded otherwise, and is the
// answer. In JSON the quotes are escaped, in protobuf they are not.
var unauthorized = regexp.MustCompile(`User \\?"[^"\\]*\\?" cannot \S+ resource \\?"[^"\\]*\\?"`)

// missingRight returns what an answer says of a right that is missing; empty where
// it says something else. The answer can still be read.
func missingRight(response *http.Response) (why string, err error) {
	if response.StatusCode != http.StatusForbidden {
		return "", nil
	}
	body, err := io.ReadAll(response.Body)
	if closed := response.Body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return "", err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return strings.ReplaceAll(string(unauthorized.Find(body)), `\"`, `"`), nil
}

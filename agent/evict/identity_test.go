package evict

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/pkg/contract"
)

// What a 1.36 kube-apiserver says, and an older one.
const (
	mayNotBeNode   = `User "system:serviceaccount:w:windlass-agent" cannot impersonate-on:associated-node:create resource "pods/eviction" in API group "" in the namespace "shop"`
	mayNotBeAny    = `User "system:serviceaccount:w:windlass-agent" cannot impersonate resource "users" in API group "" at the cluster scope`
	nodeMayNot     = `User "system:node:n" cannot list resource "pods" in API group "" at the cluster scope`
	accountMayNot  = `User "system:serviceaccount:w:windlass-agent" cannot create resource "pods/eviction" in API group "" in the namespace "shop"`
	podOfOther     = `node n can only evict pods with spec.nodeName set to itself`
	deniedByPolicy = `ValidatingAdmissionPolicy 'p' with binding 'p' denied request: the agent cannot have resource "x"`
)

// refuser answers evictions by who asks, and records who did: "node", "account",
// or "account, marked".
type refuser struct {
	asNode, asAccount string // the words of a 403; "" for a 201
	asked             []string
}

func (s *refuser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var eviction policyv1.Eviction
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &eviction)
	}
	if err != nil || eviction.Name != "web-1" {
		s.asked = append(s.asked, "cut: "+string(body))
	}
	who, refusal := "account", s.asAccount
	switch impersonated := r.Header["Impersonate-User"]; {
	case slices.Equal(impersonated, []string{"system:node:n"}):
		who, refusal = "node", s.asNode
	case len(impersonated) > 0:
		who = impersonated[0]
	}
	if eviction.Labels[contract.LabelAsAccount] == "true" {
		who += ", marked"
	}
	s.asked = append(s.asked, who)
	if refusal == "" {
		w.WriteHeader(http.StatusCreated)
		return
	}
	write(w, http.StatusForbidden, statusOf(apierrors.NewForbidden(corev1.Resource("pods"), "web-1", errors.New(refusal))))
}

func TestEvictsAsItsNode(t *testing.T) {
	for _, tc := range []struct {
		name   string
		server refuser
		want   []drain.Outcome // of one eviction after the other
		asked  []string
	}{
		{"allowed", refuser{}, []drain.Outcome{drain.Accepted, drain.Accepted}, []string{"node", "node"}},
		{"an older server", refuser{asNode: mayNotBeAny}, []drain.Outcome{drain.Accepted, drain.Accepted},
			[]string{"node", "account", "account, marked"}},
		{"no right to be the node", refuser{asNode: mayNotBeNode}, []drain.Outcome{drain.Accepted, drain.Accepted},
			[]string{"node", "account", "account, marked"}},
		{"nodes have no rights", refuser{asNode: nodeMayNot}, []drain.Outcome{drain.Accepted, drain.Accepted},
			[]string{"node", "account", "account, marked"}},
		{"a pod of another node", refuser{asNode: podOfOther}, []drain.Outcome{drain.Forbidden, drain.Forbidden}, []string{"node", "node"}},
		{"a policy denies", refuser{asNode: deniedByPolicy}, []drain.Outcome{drain.Forbidden, drain.Forbidden}, []string{"node", "node"}},
		{"a policy denies the account", refuser{asNode: mayNotBeAny, asAccount: deniedByPolicy}, []drain.Outcome{drain.Forbidden, drain.Forbidden},
			[]string{"node", "account", "account, marked"}},
		{"neither has the right", refuser{asNode: mayNotBeAny, asAccount: accountMayNot}, []drain.Outcome{drain.Forbidden, drain.Forbidden},
			[]string{"node", "account", "node", "account"}},
	} {
		client := clientOf(t, &tc.server)
		var got []drain.Outcome
		for range tc.want {
			got = append(got, client.Evict(t.Context(), drain.Evict{Namespace: "shop", Name: "web-1", UID: "u1"}).Outcome)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: answers (-want +got):\n%s", tc.name, diff)
		}
		if diff := cmp.Diff(tc.asked, tc.server.asked); diff != "" {
			t.Errorf("%s: asked as (-want +got):\n%s", tc.name, diff)
		}
	}
}

// A server that starts refuses everybody for a moment, and is asked as the node
// again when it does no more.
func TestComesBackToItsNode(t *testing.T) {
	s := &refuser{asNode: mayNotBeAny, asAccount: accountMayNot}
	client := clientOf(t, s)
	step := drain.Evict{Namespace: "shop", Name: "web-1", UID: "u1"}
	if got := client.Evict(t.Context(), step); got.Outcome != drain.Forbidden {
		t.Errorf("answer %+v", got)
	}
	s.asNode, s.asAccount = "", ""
	if got := client.Evict(t.Context(), step); got.Outcome != drain.Accepted {
		t.Errorf("answer %+v", got)
	}
	if diff := cmp.Diff([]string{"node", "account", "node"}, s.asked); diff != "" {
		t.Errorf("asked as (-want +got):\n%s", diff)
	}
}

// Each drain begins by asking as the node: the server may have been upgraded.
func TestAsksAsItsNodeInEachDrain(t *testing.T) {
	asked := make(chan string, 10)
	client := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/pods") {
			return // budgets
		}
		asked <- r.Header.Get("Impersonate-User")
		write(w, http.StatusForbidden, statusOf(apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New(mayNotBeAny))))
	}))
	client.identity.refused.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		client.WatchPods(ctx, slog.New(slog.DiscardHandler), NewPods(func() {}))
	}()
	if got := <-asked; got != "system:node:n" {
		t.Errorf("the first list is asked for as %q", got)
	}
	if got := <-asked; got != "" {
		t.Errorf("what the node was refused is asked for as %q", got)
	}
	cancel()
	<-ended
}

// A refusal is understood in protobuf too, which is what a server answers a list
// with.
func TestUnderstandsRefusalsInProtobuf(t *testing.T) {
	var asked []string
	client := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Impersonate-User"))
		if len(asked) > 1 {
			write(w, http.StatusOK, &corev1.Node{})
			return
		}
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
		w.WriteHeader(http.StatusForbidden)
		_, err := io.WriteString(w, "k8s\x00\n\x0c\n\x02v1\x12\x06Status\x12\x10"+mayNotBeAny)
		if err != nil {
			t.Error(err)
		}
	}))
	if _, err := client.Node(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"system:node:n", ""}, asked); diff != "" {
		t.Errorf("asked as (-want +got):\n%s", diff)
	}
}

// What only the account may do is asked for as the account.
func TestWritesAsItsAccount(t *testing.T) {
	var asked []string
	client := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.Header.Get("Impersonate-User"))
		write(w, http.StatusOK, &corev1.Node{})
	}))
	if _, err := client.Patch(t.Context(), "n", "application/json-patch+json", []byte("[]"), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	client.Evict(t.Context(), drain.Evict{Namespace: "shop", Name: "web-1", UID: "u1", Delete: true})
	if diff := cmp.Diff([]string{"PATCH ", "DELETE "}, asked); diff != "" {
		t.Errorf("asked as (-want +got):\n%s", diff)
	}
}

// Both clients are one connection: an agent on each of a thousand nodes has one.
func TestSharesItsConnection(t *testing.T) {
	i := newIdentity("n")
	config := &rest.Config{Host: "https://127.0.0.1:1"}
	plain, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rest.TransportFor(i.wrap(config)); err != nil {
		t.Fatal(err)
	}
	if i.next != plain {
		t.Errorf("the node's requests go through %v, the account's through %v", i.next, plain)
	}
}

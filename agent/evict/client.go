package evict

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"windlass.dev/windlass/pkg/kube"
)

// Client asks the API server about one node.
type Client struct {
	// api asks as the agent's account: to write its Node and Events, to see
	// budgets, and to delete a pod.
	api rest.Interface
	// own asks as the node itself, where that may be: to read its Node, to see its
	// pods, and to evict one. identity says whether it may.
	own      rest.Interface
	identity *identity
	node     string
}

var (
	_ kube.NodePatcher  = (*Client)(nil)
	_ kube.EventCreator = (*Client)(nil)
)

// scheme has the kinds that are sent or received, and no others.
var scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Node{}, &corev1.Pod{}, &corev1.PodList{}, &corev1.Event{})
	s.AddKnownTypes(policyv1.SchemeGroupVersion, &policyv1.PodDisruptionBudget{}, &policyv1.PodDisruptionBudgetList{})
	metav1.AddToGroupVersion(s, corev1.SchemeGroupVersion)
	metav1.AddToGroupVersion(s, metav1.SchemeGroupVersion)
	if err := metav1.AddMetaToScheme(s); err != nil {
		panic(fmt.Sprintf("registering metadata kinds: %v", err)) // it has no way to fail
	}
	return s
}

// New returns a client for the node of that name. Nothing is sent yet.
func New(config *rest.Config, node string) (*Client, error) {
	c := rest.CopyConfig(config)
	c.APIPath = "/api"
	c.GroupVersion = &corev1.SchemeGroupVersion
	kube.Bound(c)
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	api, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("making a client of the API server: %w", err)
	}
	identity := newIdentity(node)
	own, err := rest.RESTClientFor(identity.wrap(c))
	if err != nil {
		return nil, fmt.Errorf("making a client of the API server for node %s: %w", node, err)
	}
	return &Client{api: api, own: own, identity: identity, node: node}, nil
}

// callTimeout bounds one request: for an eviction the server itself tries for ten
// seconds to write a budget that others write to as well, and to give up what a
// busy server has begun makes it busier. A silent connection is noticed before.
const callTimeout = 30 * time.Second

// selfReviews answers everybody who they are.
const selfReviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

// UserName asks the API server by what name it knows the agent's account.
func (c *Client) UserName(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	question, err := json.Marshal(authenticationv1.SelfSubjectReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectReview"},
	})
	if err != nil {
		return "", err
	}
	body, err := c.api.Post().AbsPath(selfReviews).
		SetHeader("Content-Type", runtime.ContentTypeJSON).SetHeader("Accept", runtime.ContentTypeJSON).
		Body(question).MaxRetries(0).Do(ctx).Raw()
	if err != nil {
		return "", fmt.Errorf("asking by what name the API server knows us: %w", err)
	}
	var review authenticationv1.SelfSubjectReview
	if err := json.Unmarshal(body, &review); err != nil {
		return "", fmt.Errorf("reading by what name the API server knows us: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}

// CreateWithEventNamespaceWithContext writes an Event to the namespace that it
// names.
func (c *Client) CreateWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event) (*corev1.Event, error) {
	out := &corev1.Event{}
	err := c.api.Post().Namespace(event.Namespace).Resource("events").Body(event).MaxRetries(0).Do(ctx).Into(out)
	return out, err
}

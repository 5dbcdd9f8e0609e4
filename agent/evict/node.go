package evict

import (
	"context"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Metadata is what is known of the Node without having read it.
type Metadata struct {
	// Exists is false once the Node was deleted.
	Exists      bool
	Version     string
	Annotations map[string]string
	Labels      map[string]string
}

// Node reads the Node.
func (c *Client) Node(ctx context.Context) (*corev1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	node := &corev1.Node{}
	if err := c.own.Get().Resource("nodes").Name(c.node).MaxRetries(0).Do(ctx).Into(node); err != nil {
		return nil, fmt.Errorf("reading node %s: %w", c.node, err)
	}
	return node, nil
}

// Patch writes to a Node; see kube.Send.
func (c *Client) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, _ metav1.PatchOptions, subresources ...string) (*corev1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	node := &corev1.Node{}
	err := c.api.Patch(kind).Resource("nodes").Name(name).SubResource(subresources...).Body(data).MaxRetries(0).Do(ctx).Into(node)
	if err != nil {
		return nil, err
	}
	return node, nil
}

// metadataOnly asks the server to leave out spec and status: what an idle agent
// hears of its Node is two kilobytes every five minutes.
const metadataOnly = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
	"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// WatchNode calls saw with every change of the Node's metadata until ctx ends,
// beginning with what they are. It is the one thing that an idle agent asks of
// the API server: one request in three quarters of an hour.
func (c *Client) WatchNode(ctx context.Context, logger *slog.Logger, saw func(Metadata)) {
	follow(ctx, &source{
		what: "node " + c.node,
		open: func(ctx context.Context, version string) (watch.Interface, error) {
			return c.own.Get().Resource("nodes").
				SetHeader("Accept", metadataOnly).
				Param("watch", "true").
				Param("allowWatchBookmarks", "true").
				Param("fieldSelector", "metadata.name="+c.node).
				Param("resourceVersion", version).
				Param("timeoutSeconds", watchSeconds()).
				MaxRetries(0).
				Watch(ctx)
		},
		take: func(e watch.Event) {
			object, ok := e.Object.(*metav1.PartialObjectMetadata)
			if !ok {
				logger.Error("node watch returned an unexpected type", "type", fmt.Sprintf("%T", e.Object))
				return
			}
			saw(Metadata{
				Exists:      e.Type != watch.Deleted,
				Version:     object.ResourceVersion,
				Annotations: object.Annotations,
				Labels:      object.Labels,
			})
		},
	}, logger)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
)

// chosen are the nodes that a command is about.
type chosen struct{ selector string }

func (s *chosen) register(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&s.selector, "selector", "l", "", "also the nodes with these labels")
}

// read finds them, each once and in the order in which they were named.
func (s *chosen) read(ctx context.Context, r reader, names []string) ([]corev1.Node, error) {
	if len(names) == 0 && s.selector == "" {
		return nil, errors.New("no node: name some, or choose them by --selector")
	}
	var list []corev1.Node
	for _, name := range names {
		node, err := r.named(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("reading node %s: %w", name, err)
		}
		list = appendNode(list, *node)
	}
	if s.selector == "" {
		return list, nil
	}
	err := pages(func(options metav1.ListOptions) (metav1.ListInterface, error) {
		found, err := r.client.CoreV1().Nodes().List(ctx, options)
		if err != nil {
			return found, err
		}
		for _, node := range found.Items {
			list = appendNode(list, node)
		}
		return found, nil
	}, metav1.ListOptions{LabelSelector: s.selector})
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the nodes of --selector=%s: %w", s.selector, err)
	case len(list) == 0:
		return nil, fmt.Errorf("--selector=%s: there is no such node", s.selector)
	}
	return list, nil
}

// named is the node of a name, or the only one on a host of that name, as ip-10-0-1-2: tables and
// top show nodes by their hosts.
func (r reader) named(ctx context.Context, name string) (*corev1.Node, error) {
	for _, kind := range []string{"node/", "nodes/", "no/"} { // as kubectl takes them, and as its -o name and ours print them
		name = strings.TrimPrefix(name, kind)
	}
	node, away := r.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if !apierrors.IsNotFound(away) {
		return node, away
	}
	var w view.World
	if err := r.nodes(ctx, &w); err != nil {
		return nil, err
	}
	w.Nodes = slices.DeleteFunc(w.Nodes, func(n corev1.Node) bool { return view.ShortName(n.Name) != name })
	switch len(w.Nodes) {
	case 0:
		return nil, away
	case 1:
		return &w.Nodes[0], nil
	}
	return nil, fmt.Errorf("%d nodes are called so, such as %s and %s: say the whole name", len(w.Nodes), w.Nodes[0].Name, w.Nodes[1].Name)
}

func appendNode(list []corev1.Node, node corev1.Node) []corev1.Node {
	if slices.ContainsFunc(list, func(n corev1.Node) bool { return n.Name == node.Name }) {
		return list
	}
	return append(list, node)
}

// annotate writes one annotation of a node, or removes it where the value is nil, if that is
// still as it was read, and returns the node as it is then.
func (r reader) annotate(ctx context.Context, node *corev1.Node, key string, value *string) (written *corev1.Node, err error) {
	was := kube.StateOf(node)
	want := was.Clone()
	if value == nil {
		delete(want.Annotations, key)
	} else {
		want.Annotations[key] = *value
	}
	written, err = kube.Send(ctx, r.client.CoreV1().Nodes(), kube.NewNodePatch(was, want, kube.GuardKeys))
	switch {
	case errors.Is(err, kube.ErrChanged):
		return nil, fmt.Errorf("node %s: somebody else wrote %s meanwhile: look at it, and ask again", node.Name, key)
	case err != nil:
		return nil, fmt.Errorf("writing %s of node %s: %w", key, node.Name, err)
	}
	return written, nil
}

// user is who asks, for those who read a request: as the API server knows them.
func (r reader) user(ctx context.Context) string {
	review, err := r.client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || review.Status.UserInfo.Username == "" {
		return name // a cluster may forbid it, and the request is as good without
	}
	return review.Status.UserInfo.Username
}

// heldBecause is the value of a hold for which nobody gave a reason.
const heldBecause = "true"

func (c *cli) holdCommand() *cobra.Command {
	reason := ""
	var cmd *cobra.Command
	cmd = c.nodesCommand("hold", "Keep nodes from being scaled down.", func(ctx context.Context, r reader, n *corev1.Node) (string, error) {
		return hold(ctx, r, n, reason, cmd.Flags().Changed("reason"))
	})
	cmd.Long = "Keep nodes from being scaled down, by the annotation " + contract.AnnotationHold + ". A scale-down that is under way is cancelled. Notices of AWS are served all the same."
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if reason == "false" || reason == "" {
			return fmt.Errorf("--reason=%s would hold nothing: say why", reason)
		}
		return nil
	}
	cmd.Flags().StringVar(&reason, "reason", heldBecause, "why, for those who find the annotation")
	return cmd
}

func (c *cli) unholdCommand() *cobra.Command {
	return c.nodesCommand("unhold", "Let nodes be scaled down again.", unhold)
}

// hold leaves the hold of somebody else as it is, unless a reason was given: then that takes its place.
func hold(ctx context.Context, r reader, n *corev1.Node, reason string, given bool) (said string, err error) {
	was, held := n.Annotations[contract.AnnotationHold]
	held = held && was != "false"
	switch {
	case held && was == reason:
		return "held already", nil
	case held && !given:
		return "held already: " + contract.OneLine(was), nil
	}
	_, err = r.annotate(ctx, n, contract.AnnotationHold, &reason)
	if held {
		return "held; the reason was: " + contract.OneLine(was), err
	}
	return "held", err
}

func unhold(ctx context.Context, r reader, n *corev1.Node) (said string, err error) {
	rest := map[string]string{}
	for key, value := range n.Annotations {
		if key != contract.AnnotationHold {
			rest[key] = value
		}
	}
	if _, held := n.Annotations[contract.AnnotationHold]; held {
		if _, err := r.annotate(ctx, n, contract.AnnotationHold, nil); err != nil {
			return "", err
		}
	}
	if by, held := contract.Held(rest); held {
		return "", fmt.Errorf("node %s is held by annotation %s, too, which this does not remove", n.Name, by)
	}
	return "not held", nil
}

// nodesCommand does one thing to nodes that people choose.
func (c *cli) nodesCommand(verb, short string, do func(context.Context, reader, *corev1.Node) (said string, err error)) *cobra.Command {
	var nodes chosen
	cmd := &cobra.Command{
		Use:               verb + " NODE...",
		Short:             short,
		ValidArgsFunction: c.completeNodes,
		RunE: func(cmd *cobra.Command, names []string) error {
			return c.forEach(cmd.Context(), nodes, names, do)
		},
	}
	nodes.register(cmd)
	return cmd
}

// forEach does something to each node, and says what; one that fails does not stop the others.
func (c *cli) forEach(ctx context.Context, nodes chosen, names []string, do func(context.Context, reader, *corev1.Node) (said string, err error)) error {
	r, err := c.reader()
	if err != nil {
		return err
	}
	list, err := nodes.read(ctx, r, names)
	if err != nil {
		return err
	}
	var failed []error
	for i := range list {
		said, err := do(ctx, r, &list[i])
		if err == nil {
			_, err = fmt.Fprintf(c.Out, "node/%s %s\n", list[i].Name, said)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func (c *cli) completeNodes(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	list := slices.DeleteFunc(begins(c.nodes(cmd.Context()), begun), func(name string) bool { return slices.Contains(args, name) })
	return list, cobra.ShellCompDirectiveNoFileComp
}

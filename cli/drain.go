package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
)

// drainOptions are the flags of drain.
type drainOptions struct {
	nodes    chosen
	output   output
	reason   string
	preview  bool
	wait     bool
	parallel int
	timeout  time.Duration
}

func (c *cli) drainCommand() *cobra.Command {
	o := &drainOptions{}
	cmd := &cobra.Command{
		Use:   "drain NODE...",
		Short: "Ask that nodes be drained, and say what leaves and what blocks.",
		Long: `Ask that nodes be drained, by the annotation ` + contract.AnnotationDrainRequest + `, and say what leaves and what blocks.

The agent of each node begins at once to move its pods away: a person's request waits for no
permit and for no turn. With --wait, --parallel bounds how many drain at a time, and this ends when all are
drained: with status 0, or with 1 if a drain failed, was taken off or is not done within --timeout.
undrain ends a drain.`,
		Example: `  kubectl windlass drain ip-10-0-1-2 --reason=upgrade --preview   # what would leave
  kubectl windlass drain -l role=batch --reason=upgrade --wait --parallel=3`,
		ValidArgsFunction: c.completeNodes,
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return c.drain(cmd.Context(), o, names)
		},
	}
	o.output.register(cmd)
	o.nodes.register(cmd)
	f := cmd.Flags()
	f.StringVar(&o.reason, "reason", "", "why, for those who read the request, its Events and its report")
	f.BoolVar(&o.preview, "preview", false, "only say what would leave and what would block")
	f.BoolVar(&o.wait, "wait", false, "wait until all are drained, and show how far they are")
	f.IntVar(&o.parallel, "parallel", 1, "with --wait: how many are asked for at once")
	f.DurationVar(&o.timeout, "timeout", 0, "with --wait: for how long at the most; 0 waits until all are drained")
	return cmd
}

func (o *drainOptions) check(cmd *cobra.Command) error {
	for _, flag := range []string{"parallel", "timeout"} {
		if cmd.Flags().Changed(flag) && !o.wait {
			return fmt.Errorf("--%s is for --wait", flag)
		}
	}
	switch {
	case o.preview && o.wait:
		return errors.New("--preview asks for nothing that one could --wait for")
	case o.parallel < 1:
		return fmt.Errorf("--parallel=%d: want 1 at the least", o.parallel)
	case o.timeout < 0:
		return fmt.Errorf("--timeout=%s: want a time such as 30m", o.timeout)
	}
	return nil
}

func (c *cli) drain(ctx context.Context, o *drainOptions, names []string) error {
	r, err := c.reader()
	if err != nil {
		return err
	}
	nodes, err := o.nodes.read(ctx, r, names)
	if err != nil {
		return err
	}
	previews, err := r.previews(ctx, c.now(), nodes)
	if err != nil {
		return err
	}
	if err := o.output.print(c.Out, previews); err != nil || o.preview {
		return err
	}
	request := r.request(ctx, c.now(), o.reason)
	if o.wait {
		return c.drainAndWait(ctx, o, r, nodes, previews, request)
	}
	var failed []error
	for i := range nodes {
		_, err := r.ask(ctx, &nodes[i], request)
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// request is one of whoever asks.
func (r reader) request(ctx context.Context, now time.Time, reason string) contract.Request {
	request := contract.Request{Kind: contract.KindRequest, Reason: cmp.Or(reason, "no reason was given"), By: r.user(ctx), At: contract.At(now)}
	request.ID = contract.RequestID(request.Reason)
	return request
}

// ask writes a request, unless the node has another one, and returns the node that has it.
func (r reader) ask(ctx context.Context, n *corev1.Node, request contract.Request) (*corev1.Node, error) {
	if value, asked := n.Annotations[contract.AnnotationDrainRequest]; asked {
		was, err := contract.ParseRequest(value)
		switch {
		case err != nil:
			return nil, fmt.Errorf("node %s has a request that cannot be read (%w): kubectl windlass undrain %s removes it", n.Name, err, n.Name)
		case was.ID == request.ID:
			return n, nil // it is asked for already
		}
		return nil, fmt.Errorf("node %s is being drained already: %s asked for it (%s)", n.Name, cmp.Or(was.By, "somebody"), cmp.Or(was.Reason, string(was.Kind)))
	}
	value := request.String()
	return r.annotate(ctx, n, contract.AnnotationDrainRequest, &value)
}

// previews asks the rules of agents about each pod of the nodes.
func (r reader) previews(ctx context.Context, now time.Time, nodes []corev1.Node) (view.Previews, error) {
	var budgets []policyv1.PodDisruptionBudget
	err := pages(func(options metav1.ListOptions) (metav1.ListInterface, error) {
		list, err := r.client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, options)
		if err == nil {
			budgets = append(budgets, list.Items...)
		}
		return list, err
	}, metav1.ListOptions{})
	if err != nil {
		return view.Previews{}, fmt.Errorf("reading budgets: %w", err)
	}
	judge := view.NewJudge(now, budgets)
	all := view.Previews{Nodes: []view.Preview{}}
	for i := range nodes {
		var pods []view.PreviewPod
		err := pages(func(options metav1.ListOptions) (metav1.ListInterface, error) {
			list, err := r.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				pods = append(pods, judge.Of(&list.Items[i]))
			}
			return list, nil
		}, metav1.ListOptions{FieldSelector: "spec.nodeName=" + nodes[i].Name})
		if err != nil {
			return view.Previews{}, fmt.Errorf("reading the pods of node %s: %w", nodes[i].Name, err)
		}
		all.Nodes = append(all.Nodes, view.NewPreview(nodes[i].Name, pods))
	}
	return all, nil
}

func (c *cli) undrainCommand() *cobra.Command {
	return c.nodesCommand("undrain", "Take requests of people to drain nodes off them; their agents undo what they did.", undrain)
}

func undrain(ctx context.Context, r reader, n *corev1.Node) (said string, err error) {
	value, asked := n.Annotations[contract.AnnotationDrainRequest]
	kind, draining := contract.Draining(n.Spec.Taints)
	switch {
	case asked:
	case draining && kind == contract.KindRequest:
		return "has no request to drain it any more, and its agent has yet to undo what it did", nil
	case draining:
		return "", fmt.Errorf("node %s drains for a notice of kind %s, which no request stands for", n.Name, kind)
	default:
		return "has no request to drain it", nil
	}
	request, err := contract.ParseRequest(value)
	if err == nil && request.Kind == contract.KindScaleDown {
		return "", fmt.Errorf("node %s is scaled down: kubectl windlass hold %s cancels that", n.Name, n.Name)
	}
	if err == nil && request.Kind == contract.KindASG {
		return "", fmt.Errorf("the instance of node %s is being ended by Auto Scaling (%s): nothing undoes that", n.Name, request.ID)
	}
	if by, ends := n.Annotations[contract.AnnotationTerminating]; ends {
		return "", fmt.Errorf("the instance of node %s is being terminated (%s): nothing undoes that", n.Name, by)
	}
	_, err = r.annotate(ctx, n, contract.AnnotationDrainRequest, nil)
	if draining && kind != contract.KindRequest {
		return fmt.Sprintf("has no request to drain it any more, and drains on for a notice of kind %s", kind), err
	}
	return "is not to be drained any more", err
}

// bar shows how many of so many pods have left.
func bar(left, all int) string {
	const width = 20
	gone := width
	if all > 0 {
		gone = width * max(0, all-left) / all
	}
	return "[" + strings.Repeat("#", gone) + strings.Repeat(".", width-gone) + "]"
}

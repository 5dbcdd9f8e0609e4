package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/prices"
)

func (c *cli) statusCommand() *cobra.Command {
	o := output{}
	watch := false
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show groups, pending pods, drains, faults with what mends them, and the last hour.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := c.reader()
			if err != nil {
				return err
			}
			show := func(ctx context.Context) error {
				w := view.World{Now: c.now()}
				_, eventsErr := r.events(ctx, &w, view.Recent(w.Now))
				if err := errors.Join(r.status(ctx, &w), r.nodes(ctx, &w), eventsErr); err != nil {
					return err
				}
				return o.print(c.Out, view.NewStatus(w))
			}
			return c.show(cmd, r, o, watch, show)
		},
	}
	o.register(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show it again whenever windlass-status changes")
	return cmd
}

// show prints once, or, to watch, again after each change of windlass-status.
func (c *cli) show(cmd *cobra.Command, r reader, o output, watch bool, print func(context.Context) error) error {
	if !watch {
		return print(cmd.Context())
	}
	return r.onChange(cmd.Context(), o.again(c.Out, print))
}

func (c *cli) whyCommand() *cobra.Command {
	o := output{}
	watch := false
	cmd := &cobra.Command{
		Use:   "why POD|NODE|GROUP",
		Short: "Say why a pod is pending, why a node stays or goes, why a group does not grow or shrink.",
		Example: `  kubectl windlass why api-7d5c9            # the pod, node or group of that name
  kubectl windlass why shop/api-7d5c9       # a pod of namespace shop
  kubectl windlass why node/ip-10-0-1-2.eu-west-1.compute.internal
  kubectl windlass why group/web`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeSubject,
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, err := c.namespace()
			if err != nil {
				return err
			}
			candidates, err := view.Parse(args[0], namespace)
			if err != nil {
				return err
			}
			r, err := c.reader()
			if err != nil {
				return err
			}
			show := func(ctx context.Context) error {
				why, err := r.why(ctx, c.now(), args[0], candidates)
				if err != nil {
					return err
				}
				return o.print(c.Out, why)
			}
			return c.show(cmd, r, o, watch, show)
		},
	}
	o.register(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "say it again whenever windlass-status changes")
	return cmd
}

// why answers about the one of several candidates that exists.
func (r reader) why(ctx context.Context, now time.Time, text string, candidates []view.Subject) (view.Why, error) {
	w := view.World{Now: now}
	if err := r.status(ctx, &w); err != nil {
		return view.Why{}, err
	}
	candidates = w.Named(candidates)
	for i, s := range candidates {
		if s.Kind == view.KindNode && !w.Exists(s) { // a node without a verdict may be named by its host, too
			if node, err := r.named(ctx, s.Name); err == nil {
				candidates[i].Name, s.Name = node.Name, node.Name
			}
		}
		namespace, name, _ := strings.Cut(s.Name, "/")
		if err := r.subject(ctx, &w, s, namespace, name); err != nil {
			return view.Why{}, err
		}
	}
	s, err := w.Resolve(text, candidates)
	if err != nil {
		return view.Why{}, err
	}
	for i := range w.Pods {
		if on := w.Pods[i].Spec.NodeName; s.Kind == view.KindPod && on != "" {
			if err := r.node(ctx, &w, on); err != nil {
				return view.Why{}, err
			}
		}
	}
	return view.NewWhy(w, s), nil
}

func (c *cli) costCommand() *cobra.Command {
	o := output{}
	var rates view.Rates
	priceFile, watch := "", false
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Show what the nodes cost now, and for what.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkRates(cmd, &rates, priceFile); err != nil {
				return err
			}
			r, err := c.reader()
			if err != nil {
				return err
			}
			return c.show(cmd, r, o, watch, func(ctx context.Context) error {
				w := view.World{Now: c.now()}
				if err := errors.Join(r.verdicts(ctx, &w), r.nodes(ctx, &w), r.requests(ctx, &w)); err != nil {
					return err
				}
				return o.print(c.Out, view.NewCost(w, rates))
			})
		},
	}
	o.register(cmd)
	f := cmd.Flags()
	f.BoolVarP(&watch, "watch", "w", false, "show it again whenever windlass-status changes")
	f.StringVar(&priceFile, "price-file", "", "a file with prices that override the built-in ones, in place of the scaler's prices: a region, an instance type and US dollars an hour on each line")
	f.Float64Var(&rates.SpotFactor, "spot-price-factor", 0, "what a spot instance is assumed to cost, as a share of its on-demand price, in place of what EC2 reports, too; what the scaler goes by if 0")
	f.Float64Var(&rates.Discount, "discount-factor", 1, "what you pay on demand as a share of the list price, such as 0.72 with a savings plan of 28%")
	return cmd
}

func checkRates(cmd *cobra.Command, r *view.Rates, file string) error {
	if f := r.SpotFactor; cmd.Flags().Changed("spot-price-factor") && !(f > 0 && f <= 1) {
		return fmt.Errorf("--spot-price-factor=%v: want a share above 0, and 1 at the most", f)
	}
	if f := r.Discount; !(f > 0 && f <= 1) {
		return fmt.Errorf("--discount-factor=%v: want a share above 0, and 1 at the most", f)
	}
	if file == "" {
		return nil
	}
	var err error
	r.Book, r.Source, err = prices.ReadFile(file, os.ReadFile)
	return err
}

func (c *cli) eventsCommand() *cobra.Command {
	o := output{}
	watch, all := false, false
	since := 3 * time.Hour
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Tell what happened, in order: growth, drains, terminations, and who asked.",
		Long:  "Tell what happened, in order: growth, drains, terminations, and who asked.\n\nThe API server keeps Events for an hour unless its --event-ttl says otherwise.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if since <= 0 {
				return fmt.Errorf("--since=%s: want a time such as 90m", since)
			}
			r, err := c.reader()
			if err != nil {
				return err
			}
			w := view.World{Now: c.now()}
			from := w.Now.Add(-since)
			versions, err := r.events(cmd.Context(), &w, func(e *corev1.Event) bool { return view.Tells(e, from, all) })
			if err := cmp.Or(err, r.nodes(cmd.Context(), &w)); err != nil {
				return err
			}
			r.leader(cmd.Context(), &w)
			if err := o.print(c.Out, view.NewStory(w, from, all)); err != nil || !watch {
				return err
			}
			return r.follow(cmd.Context(), versions, func(e *corev1.Event) error {
				if !view.Tells(e, time.Time{}, all) {
					return nil
				}
				return o.more(c.Out, r.entry(cmd.Context(), e))
			})
		},
	}
	o.register(cmd)
	cmd.Flags().DurationVar(&since, "since", since, "how far back")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on with what happens then")
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also tell why something was not done, such as why a node stays")
	return cmd
}

package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd/api"

	"windlass.dev/windlass/cli/view"
)

// What cannot be read has no completions: a completion has nowhere to say why.

func (c *cli) completeFlags(root *cobra.Command) {
	for flag, names := range map[string]func(context.Context, string) []string{
		"namespace": c.namespaces, "windlass-namespace": c.namespaces,
		"context": configured(c, func(k api.Config) []string { return slices.Sorted(maps.Keys(k.Contexts)) }),
		"cluster": configured(c, func(k api.Config) []string { return slices.Sorted(maps.Keys(k.Clusters)) }),
		"user":    configured(c, func(k api.Config) []string { return slices.Sorted(maps.Keys(k.AuthInfos)) }),
	} {
		complete := func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			return begins(names(cmd.Context(), begun), begun), cobra.ShellCompDirectiveNoFileComp
		}
		if err := root.RegisterFlagCompletionFunc(flag, complete); err != nil {
			panic(err) // a flag that is not there, or has one already
		}
	}
}

func begins(names []string, begun string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, begun) })
}

// configured completes what stands in the kubeconfig.
func configured(c *cli, names func(api.Config) []string) func(context.Context, string) []string {
	return func(context.Context, string) []string {
		config, err := c.flags.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil
		}
		return names(config)
	}
}

// completeSubject completes pods, nodes and groups, with their kind or without.
func (c *cli) completeSubject(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var list []string
	kind, _, named := strings.Cut(begun, "/")
	for _, one := range []struct {
		kind  string
		names func(context.Context) []string
	}{{view.KindPod, c.pods}, {view.KindNode, c.nodes}, {view.KindGroup, c.groups}} {
		switch {
		case named && kind == one.kind:
			for _, name := range one.names(cmd.Context()) {
				list = append(list, kind+"/"+name)
			}
		case !named:
			list = append(list, one.names(cmd.Context())...)
		}
	}
	return begins(list, begun), cobra.ShellCompDirectiveNoFileComp
}

func (c *cli) namespaces(ctx context.Context, _ string) []string {
	client, err := c.connect()
	if err != nil {
		return nil
	}
	list, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	return namesOf(list.Items, func(i int) string { return list.Items[i].Name })
}

func (c *cli) pods(ctx context.Context) []string {
	namespace, err := c.namespace()
	if err != nil {
		return nil
	}
	client, err := c.connect()
	if err != nil {
		return nil
	}
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	return namesOf(list.Items, func(i int) string { return list.Items[i].Name })
}

func (c *cli) nodes(ctx context.Context) []string {
	client, err := c.connect()
	if err != nil {
		return nil
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	return namesOf(list.Items, func(i int) string { return list.Items[i].Name })
}

func (c *cli) groups(ctx context.Context) []string {
	r, err := c.reader()
	if err != nil {
		return nil
	}
	var w view.World
	if err := r.status(ctx, &w); err != nil {
		return nil
	}
	return namesOf(w.Verdicts.Groups, func(i int) string { return w.Verdicts.Groups[i].Name })
}

func namesOf[T any](list []T, name func(int) string) (names []string) {
	for i := range list {
		names = append(names, name(i))
	}
	return names
}

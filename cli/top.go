package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"windlass.dev/windlass/cli/top"
	"windlass.dev/windlass/cli/top/feed"
	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/telemetry"
)

// repaint is how long a view rests between two changes of the cluster.
const repaint = 250 * time.Millisecond

func (c *cli) topCommand() *cobra.Command {
	o := top.Options{}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch nodes, pending pods and drains live; drain and hold nodes.",
		Long: `Watch nodes with what their pods request, their price and stage, pending pods and what happens.

? shows the keys. What is written is asked about first.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.top(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Sort, "sort", top.Sorts()[0], "the order of the nodes: "+strings.Join(top.Sorts(), ", "))
	f.StringVar(&o.Filter, "filter", "", "show only nodes with this text, such as m5.large, or with group=, zone=, stage= or type=, such as \"group=web stage=drain\"")
	if err := cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(top.Sorts(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // it is registered twice
	}
	if err := cmd.RegisterFlagCompletionFunc("filter", c.completeFilter); err != nil {
		panic(err)
	}
	return cmd
}

// completeFilter completes what a filter compares, and groups.
func (c *cli) completeFilter(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	list := []string{"group=", "stage=", "type=", "zone="}
	switch {
	case strings.HasPrefix(begun, "group="):
		list = nil
		for _, name := range c.groups(cmd.Context()) {
			list = append(list, "group="+name)
		}
	case strings.HasPrefix(begun, "stage="):
		list = nil
		for _, stage := range view.Stages {
			list = append(list, "stage="+string(stage))
		}
	}
	return begins(list, begun), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func (c *cli) top(ctx context.Context, o top.Options) error {
	if _, err := top.New(o); err != nil { // before anything is read
		return err
	}
	if !terminal(c.In) || !terminal(c.Out) {
		return errors.New("top wants a terminal: status -w and events -w go on without one")
	}
	// What client-go logs and an API server warns of must not stand in the view.
	telemetry.SetDefault(slog.New(slog.DiscardHandler))
	c.flags = c.flags.WithWarningPrinter(genericiooptions.IOStreams{ErrOut: io.Discard})
	r, err := c.reader()
	if err != nil {
		return err
	}
	if err := r.status(ctx, &view.World{}); err != nil { // said while there is no view yet; logs in, too
		return err
	}
	aside, err := setAside()
	if err != nil {
		return err
	}
	return errors.Join(c.live(ctx, o), aside(c.ErrOut))
}

// live is the view, which has the terminal for itself.
func (c *cli) live(ctx context.Context, o top.Options) error {
	c.unattended = true
	r, err := c.reader()
	if err != nil {
		return err
	}
	if err := r.status(ctx, &view.World{}); err != nil { // a login plugin that wants the terminal
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cluster := feed.New(r.client, r.system, r.now)
	o.Why, o.Hands = cluster.Why, hands{ctx, r, c.now}
	model, err := top.New(o)
	if err != nil {
		return err
	}
	program := tea.NewProgram(model, tea.WithContext(ctx), tea.WithInput(c.In), tea.WithOutput(c.Out))
	fed := make(chan error, 1)
	go func() {
		defer program.Quit()
		fed <- cluster.Run(ctx, repaint, func(w top.World) { program.Send(top.Changed(w)) })
	}()
	_, err = program.Run()
	interrupted := errors.Is(err, tea.ErrInterrupted) || errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil
	cancel()
	if interrupted {
		err = nil
	}
	return errors.Join(err, <-fed)
}

// mostAside is how much is kept of what login plugins write.
const mostAside = 4 << 10

// setAside keeps what is written to the standard error output off the view: client-go gives that to
// login plugins. It returns what ends that, and prints the last of it.
func setAside() (end func(io.Writer) error, err error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("setting the standard error output aside: %w", err)
	}
	was := os.Stderr
	os.Stderr = to
	kept := make(chan []byte, 1)
	go func() {
		var last []byte
		buffer := make([]byte, mostAside)
		for {
			n, err := from.Read(buffer)
			last = append(last, buffer[:n]...)
			last = last[max(0, len(last)-mostAside):]
			if err != nil {
				kept <- last
				return
			}
		}
	}()
	return func(out io.Writer) error {
		os.Stderr = was
		// A plugin that still runs has the other end, too, and is not waited for. Windows knows no
		// deadline of a pipe.
		late := from.SetReadDeadline(time.Now().Add(time.Second))
		if errors.Is(late, os.ErrNoDeadline) {
			late = nil
		}
		err := errors.Join(to.Close(), late)
		var last []byte
		select {
		case last = <-kept:
		case <-time.After(2 * time.Second):
			return err // the reader ends with the program
		}
		for line := range strings.Lines(string(last)) {
			if _, wrong := fmt.Fprintln(out, contract.OneLine(strings.TrimRight(line, "\r\n"))); wrong != nil {
				err = errors.Join(err, wrong)
			}
		}
		return errors.Join(err, from.Close())
	}, nil
}

func terminal(stream any) bool {
	file, is := stream.(*os.File)
	return is && term.IsTerminal(int(file.Fd()))
}

// hands do what the commands drain, undrain, hold and unhold do.
type hands struct {
	ctx context.Context
	r   reader
	now func() time.Time
}

func (h hands) node(name string) (*corev1.Node, error) {
	list, err := (&chosen{}).read(h.ctx, h.r, []string{name})
	if err != nil {
		return nil, err
	}
	return &list[0], nil
}

func (h hands) Preview(name string) (view.Previews, error) {
	return h.r.previews(h.ctx, h.now(), []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: name}}})
}

func (h hands) Drain(name string) (string, error) {
	node, err := h.node(name)
	if err != nil {
		return "", err
	}
	_, err = h.r.ask(h.ctx, node, h.r.request(h.ctx, h.now(), "by kubectl windlass top"))
	return "the drain of node " + name + " is asked for", err
}

func (h hands) Hold(name string) (string, error) {
	node, err := h.node(name)
	if err != nil {
		return "", err
	}
	said, err := hold(h.ctx, h.r, node, heldBecause, false)
	return "node " + name + " " + said, err
}

func (h hands) Undo(name string) (string, error) {
	var all []string
	for _, undo := range []struct {
		stands func(view.NodeLine) bool
		do     func(context.Context, reader, *corev1.Node) (string, error)
	}{
		{func(l view.NodeLine) bool { return l.Requested }, undrain},
		{func(l view.NodeLine) bool { return l.Hold == contract.AnnotationHold }, unhold},
	} {
		node, err := h.node(name) // as the one before has left it
		if err != nil {
			return "", err
		}
		if !undo.stands(view.NewNodeLine(node, nil, view.Load{})) {
			continue
		}
		said, err := undo.do(h.ctx, h.r, node)
		if err != nil && len(all) > 0 {
			err = fmt.Errorf("node %s %s; but: %w", name, strings.Join(all, ", "), err)
		}
		if err != nil {
			return "", err
		}
		all = append(all, said)
	}
	if len(all) == 0 {
		return "node " + name + " has nothing to undo any more", nil
	}
	return "node " + name + " " + strings.Join(all, ", "), nil
}

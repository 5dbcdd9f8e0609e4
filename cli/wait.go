package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
)

// errTime is that --timeout is over.
var errTime = errors.New("not drained within --timeout")

// errEnough ends a watch that has seen what it waits for.
var errEnough = errors.New("enough")

// errUnwatched: a drain goes on, and this does not see it any more.
var errUnwatched = errors.New("its drain goes on, and is not watched any more")

// drainAndWait asks for so many drains at once, and for the next when one has ended. One of which that is
// not seen any more may be open for long: no other is asked for then.
func (c *cli) drainAndWait(ctx context.Context, o *drainOptions, r reader, nodes []corev1.Node, previews view.Previews, request contract.Request) error {
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeout, errTime)
		defer cancel()
	}
	board := newBars(c.Out, previews)
	if o.output.form != asTable && o.output.form != asWide {
		board.out = c.ErrOut
	}
	turns := make(chan struct{}, o.parallel)
	asking, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	failed := make([]error, len(nodes))
	var all sync.WaitGroup
	for i := range nodes {
		select {
		case turns <- struct{}{}:
		case <-asking.Done():
		}
		if asking.Err() != nil {
			failed[i] = fmt.Errorf("node %s: not asked for: %w", nodes[i].Name, context.Cause(asking))
			continue
		}
		all.Go(func() {
			failed[i] = r.drainOne(ctx, nodes[i].Name, request, func(p view.Progress) { board.show(i, p) })
			if errors.Is(failed[i], errUnwatched) {
				stop(fmt.Errorf("node %s: %w", nodes[i].Name, errUnwatched))
			}
			<-turns
		})
	}
	all.Wait()
	return errors.Join(append(failed, board.err)...)
}

// drainOne asks for the drain of a node and waits for its end.
func (r reader) drainOne(ctx context.Context, name string, request contract.Request, show func(view.Progress)) error {
	nodes := r.client.CoreV1().Nodes()
	node, err := nodes.Get(ctx, name, metav1.GetOptions{}) // its turn may come late
	if apierrors.IsNotFound(err) {
		show(view.ProgressOf(name, request.ID, nil))
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading node %s: %w", name, err)
	}
	if node, err = r.ask(ctx, node, request); err != nil {
		return err
	}
	var last view.Progress
	look := func(node *corev1.Node) (ended bool) {
		now := view.ProgressOf(name, request.ID, node)
		if node == nil {
			now.Drain, now.Failed = last.Drain, "the node is gone, and the end of its drain was not seen"
		}
		last = now
		show(last)
		return last.Ended
	}
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	for !look(node) { // a request that stood already may have been answered
		err := r.watch(ctx, node.ResourceVersion, func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			return nodes.Watch(ctx, options)
		}, func(event watch.Event) error {
			node, is := event.Object.(*corev1.Node)
			if !is || node.Name != name {
				return nil
			}
			if look(node) || event.Type == watch.Deleted && look(nil) { // the last version may say that it is drained
				return errEnough
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			break
		}
		if ctx.Err() != nil {
			return fmt.Errorf("node %s: %w: %s; the request stands, and undrain removes it", name, context.Cause(ctx), progressText(last))
		}
		if err == nil || apierrors.IsGone(err) || apierrors.IsResourceExpired(err) {
			node, err = nodes.Get(ctx, name, metav1.GetOptions{}) // the server has forgotten what came meanwhile
			if apierrors.IsNotFound(err) {
				node, err = nil, nil
			}
		}
		if err != nil {
			return fmt.Errorf("node %s: %w: %w; the request stands, and undrain removes it", name, errUnwatched, err)
		}
	}
	if last.Failed != "" {
		return fmt.Errorf("node %s: not drained: %s", name, last.Failed)
	}
	return nil
}

// bars shows how far drains are: on a terminal one line for each, which changes, and elsewhere
// one for each change.
type bars struct {
	out      io.Writer
	terminal bool
	// size is the terminal's, in characters.
	size func() (width, height int, err error)

	mu    sync.Mutex
	pods  []int // that have to leave, by node
	lines []string
	ended []bool
	drawn int
	err   error
}

func newBars(out io.Writer, previews view.Previews) *bars {
	b := &bars{out: out, lines: make([]string, len(previews.Nodes)), ended: make([]bool, len(previews.Nodes))}
	for _, p := range previews.Nodes {
		b.pods = append(b.pods, len(p.Pods))
	}
	file, is := out.(*os.File)
	b.terminal = is && term.IsTerminal(int(file.Fd()))
	if b.terminal {
		b.size = func() (int, int, error) { return term.GetSize(int(file.Fd())) }
	}
	return b
}

func (b *bars) show(i int, p view.Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := p.Left
	if p.Uncounted {
		left = b.pods[i]
	}
	b.pods[i] = max(b.pods[i], left)
	name := p.Node
	if b.terminal {
		name = view.ShortName(name)
	}
	line := contract.OneLine(fmt.Sprintf("%s node/%s: %s", bar(left, b.pods[i]), name, progressText(p)))
	if b.lines[i] == line || b.err != nil {
		return
	}
	b.lines[i], b.ended[i] = line, p.Ended
	if !b.terminal {
		_, b.err = fmt.Fprintln(b.out, line)
		return
	}
	b.draw()
}

// draw draws the lines over those that were drawn before. A line that wrapped, or one more than the
// terminal is high, would be out of reach then.
func (b *bars) draw() {
	width, height, err := b.size()
	if err != nil {
		b.err = fmt.Errorf("asking for the terminal's size: %w", err)
		return
	}
	if width < 2 || height < 2 {
		width, height = 80, 24 // it does not know
	}
	text := ""
	if b.drawn > 0 {
		text = fmt.Sprintf("\x1b[%dA", b.drawn)
	}
	text += "\r\x1b[J"
	lines := b.chosen(max(1, height-1))
	for _, line := range lines {
		text += ansi.Truncate(line, width-1, "…") + "\n"
	}
	b.drawn = len(lines)
	_, b.err = io.WriteString(b.out, text)
}

// chosen are the lines that there is room for: drains under way first, and how many others there are.
func (b *bars) chosen(room int) (lines []string) {
	var under, over []string
	for i, line := range b.lines {
		switch {
		case line == "":
		case b.ended[i]:
			over = append(over, line)
		default:
			under = append(under, line)
		}
	}
	if len(under)+len(over) <= room {
		for _, line := range b.lines {
			if line != "" {
				lines = append(lines, line)
			}
		}
		return lines
	}
	lines = append(under, over...)[:room-1]
	return append(lines, fmt.Sprintf("and %d more nodes; %d drains have ended", len(under)+len(over)-len(lines), len(over)))
}

func progressText(p view.Progress) string {
	text := string(p.Phase)
	if p.Left > 0 {
		text += fmt.Sprintf(", pods left: %d", p.Left)
	}
	if len(p.BlockedBy) > 0 {
		text += ", blocked by " + strings.Join(p.BlockedBy, ", ")
	}
	if p.Failed != "" {
		text += ": " + p.Failed
	}
	return contract.OneLine(text)
}

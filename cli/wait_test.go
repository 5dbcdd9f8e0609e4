package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
)

// While the pods of a node are not counted yet, none has left.
func TestBarOfUncountedPods(t *testing.T) {
	var out strings.Builder
	b := newBars(&out, view.Previews{Nodes: []view.Preview{{Node: "a", Pods: make([]view.PreviewPod, 4)}}})
	for _, d := range []view.Drain{
		{Node: "a", Phase: contract.PhaseDraining, Uncounted: true},
		{Node: "a", Phase: contract.PhaseDraining, Left: 3},
		{Node: "a", Phase: contract.PhaseDraining},
	} {
		b.show(0, view.Progress{Drain: d})
	}
	want := "[....................] node/a: Draining\n[#####...............] node/a: Draining, pods left: 3\n[####################] node/a: Draining\n"
	if got := out.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestBarsOnATerminal: however many nodes drain and however long their names and what blocks them
// are, each has one line on the terminal, none is left from before, and nothing scrolls away.
func TestBarsOnATerminal(t *testing.T) {
	const width, height = 80, 24
	for _, nodes := range []int{1, 3, 23, 24, 60} {
		reads, writes, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		if err := pty.Setsize(writes, &pty.Winsize{Cols: width, Rows: height}); err != nil {
			t.Fatal(err)
		}
		emulator := vt.NewEmulator(width, height)
		seen := make(chan error, 1)
		go func() {
			_, err := io.Copy(emulator, reads)
			seen <- err
		}()
		names := make([]string, nodes)
		previews := view.Previews{}
		for i := range names {
			names[i] = fmt.Sprintf("ip-10-0-%d-7.eu-west-1.compute.internal", i)
			previews.Nodes = append(previews.Nodes, view.Preview{Node: names[i], Pods: make([]view.PreviewPod, 9)})
		}
		b := newBars(writes, previews)
		for left := 5; left >= 0; left-- {
			for i, name := range names {
				p := view.Progress{Drain: view.Drain{Node: name, Phase: contract.PhaseBlocked, Left: left, BlockedBy: []string{"shop/a-budget-with-a-very-long-name", "shop/another-budget-with-a-long-name"}}}
				if left == 0 && i%2 == 0 {
					p = view.Progress{Drain: view.Drain{Node: name, Phase: contract.PhaseDrained}, Ended: true}
				}
				b.show(i, p)
			}
		}
		if b.err != nil {
			t.Fatal(b.err)
		}
		if err := writes.Close(); err != nil {
			t.Fatal(err)
		}
		<-seen // EIO: nobody has it open to write any more
		if err := reads.Close(); err != nil {
			t.Fatal(err)
		}
		screen := emulator.String()
		lines := strings.Split(strings.TrimRight(screen, " \n"), "\n")
		if want := min(nodes, height-1); len(lines) != want || emulator.ScrollbackLen() > 0 {
			t.Errorf("%d nodes: %d lines, want %d, and %d scrolled away:\n%s", nodes, len(lines), want, emulator.ScrollbackLen(), screen)
			continue
		}
		for i, line := range lines {
			if i == len(lines)-1 && nodes > height-1 {
				if want := fmt.Sprintf("and %d more nodes; %d drains have ended", nodes-height+2, (nodes+1)/2); strings.TrimSpace(line) != want {
					t.Errorf("%d nodes: %q, want %q", nodes, line, want)
				}
			} else if strings.Count(screen, strings.Fields(line)[1]) != 1 || !strings.HasPrefix(line, "[") {
				t.Errorf("%d nodes: line %q in\n%s", nodes, line, screen)
			}
		}
	}
}

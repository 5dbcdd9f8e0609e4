package screen

import (
	"bytes"
	"fmt"
	"io"
	"slices"
)

// Terminal redraws a picture in place, on the terminal's other screen, so that
// what stood there before comes back at the end.
type Terminal struct {
	out     io.Writer
	colours bool
	last    []Line // nil before the first picture
	width   int
}

// NewTerminal draws on out. Nothing is written before the first Draw.
func NewTerminal(out io.Writer, colours bool) *Terminal {
	return &Terminal{out: out, colours: colours}
}

const (
	otherScreen = "\x1b[?1049h\x1b[?25l" // and no cursor
	firstScreen = "\x1b[?25h\x1b[?1049l"
	clearAll    = "\x1b[2J"
	clearLine   = "\x1b[2K"
	// A terminal that knows these shows all in between at once; others ignore
	// them. https://gist.github.com/christianparpart/d8a62cc1ab659194337d73e399004036
	beginFrame = "\x1b[?2026h"
	endFrame   = "\x1b[?2026l"
)

// Draw shows a picture: what is the same as in the last one is not written
// again, and the rest in one write, so that nothing flickers. width is that of
// the terminal; when it changes everything is drawn anew.
func (t *Terminal) Draw(lines []Line, width int) error {
	var b bytes.Buffer
	if t.last == nil {
		b.WriteString(otherScreen)
	}
	anew := t.last == nil || width != t.width || len(lines) != len(t.last)
	if anew {
		b.WriteString(clearAll)
	}
	for i, l := range lines {
		if !anew && slices.Equal(l, t.last[i]) {
			continue
		}
		fmt.Fprintf(&b, "\x1b[%d;1H%s%s", i+1, clearLine, t.print(l))
	}
	t.last, t.width = slices.Clone(lines), width
	if b.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(t.out, beginFrame+b.String()+endFrame)
	return err
}

// Close brings the first screen back and leaves the last picture on it.
func (t *Terminal) Close() error {
	if t.last == nil {
		return nil
	}
	var b bytes.Buffer
	b.WriteString(firstScreen)
	last := t.last
	for len(last) > 0 && last[len(last)-1].String() == "" {
		last = last[:len(last)-1]
	}
	for _, l := range last {
		b.WriteString(t.print(l) + "\n")
	}
	t.last = nil
	_, err := t.out.Write(b.Bytes())
	return err
}

func (t *Terminal) print(l Line) string {
	if t.colours {
		return l.Coloured()
	}
	return l.String()
}

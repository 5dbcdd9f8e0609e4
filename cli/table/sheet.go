// Package table prints what people ask for as text: a title, and columns below it.
//
//	sheet.go   lines and columns, in which no text of others commands the terminal
//	fit.go     how they fit a terminal
//	tables.go  each answer
package table

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"k8s.io/cli-runtime/pkg/printers"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
)

// Print prints an answer of package view for a terminal of so many columns, 0 for none. Wide tables
// leave nothing out, and are as wide as they are.
func Print(w io.Writer, wide bool, columns int, answer any) error {
	s := newSheet(w, wide, columns)
	switch a := answer.(type) {
	case view.Status:
		s.cut = true
		s.status(a)
	case view.Why:
		s.why(&a)
	case view.Cost:
		s.cost(a)
	case view.Story:
		s.cut = true
		s.story(a)
	case view.Previews:
		s.previews(a)
	case view.Check:
		s.check(a)
	case view.Planned:
		s.cut = true
		s.planned(a)
	}
	return s.err
}

// PrintEntry prints one more entry of a story.
func PrintEntry(w io.Writer, wide bool, columns int, e view.Entry) error {
	s := newSheet(w, wide, columns)
	line := contract.OneLine(strings.Join(s.entry(e), "   "))
	if s.columns > 0 {
		line = ansi.Truncate(shortNames(line), s.columns, "…")
	}
	s.print(line)
	return s.err
}

// sheet is a text of tables. It keeps the first error.
type sheet struct {
	out  io.Writer
	wide bool
	// columns are the terminal's; 0 where it is none. cut says that sentences of tables end where
	// the terminal does, and do not go on in the next line: for what is an overview.
	columns int
	cut     bool
	// now is when the answer was made, if that is known.
	now time.Time
	err error
	// begun says that something stands on it.
	begun bool
}

func newSheet(w io.Writer, wide bool, columns int) *sheet {
	if wide {
		columns = 0
	}
	return &sheet{out: w, wide: wide, columns: columns}
}

func (s *sheet) say(format string, args ...any) { s.hung(0, format, args...) }

// hung says a sentence whose further lines begin in that column.
func (s *sheet) hung(at int, format string, args ...any) {
	text := contract.OneLine(fmt.Sprintf(format, args...))
	if s.columns == 0 {
		s.print(text)
		return
	}
	for i, line := range words(text, s.columns-at, s.columns) {
		if i > 0 {
			line = strings.Repeat(" ", at) + line
		}
		s.print(line)
	}
}

func (s *sheet) print(line string) {
	s.begun = true
	if s.err == nil {
		_, s.err = fmt.Fprintln(s.out, line)
	}
}

// table prints rows below a title, and nothing without rows.
func (s *sheet) table(title string, head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	if s.begun {
		s.say("")
	}
	if title != "" {
		s.say("%s", title)
	}
	rows = append([][]string{head}, rows...)
	for _, row := range rows {
		for i := range row {
			row[i] = contract.OneLine(row[i])
		}
	}
	if s.columns > 0 {
		rows = fitted(rows, s.columns, s.cut)
	}
	w := printers.GetNewTabWriter(s.out)
	for _, row := range rows {
		s.line(w, row)
	}
	if err := w.Flush(); s.err == nil {
		s.err = err
	}
}

func (s *sheet) line(w io.Writer, cells []string) {
	s.begun = true
	if s.err == nil {
		_, s.err = fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
}

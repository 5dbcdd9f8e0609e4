// Package table prints what people ask for as text: a title, and columns below it.
//
//	sheet.go   lines and columns, in which no text of others commands the terminal
//	tables.go  each answer
package table

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
)

// Print prints an answer of package view; wide tables leave nothing out.
func Print(w io.Writer, wide bool, answer any) error {
	s := &sheet{out: w, wide: wide}
	switch a := answer.(type) {
	case view.Status:
		s.status(a)
	case view.Why:
		s.why(&a)
	case view.Cost:
		s.cost(a)
	case view.Story:
		s.story(a)
	case view.Previews:
		s.previews(a)
	case view.Check:
		s.check(a)
	case view.Planned:
		s.planned(a)
	}
	return s.err
}

// PrintEntry prints one more entry of a story.
func PrintEntry(w io.Writer, wide bool, e view.Entry) error {
	s := &sheet{out: w, wide: wide}
	s.say("%s", strings.Join(s.entry(e), "   "))
	return s.err
}

// sheet is a text of tables. It keeps the first error.
type sheet struct {
	out  io.Writer
	wide bool
	err  error
	// begun says that something stands on it.
	begun bool
}

func (s *sheet) say(format string, args ...any) {
	s.begun = true
	if s.err == nil {
		_, s.err = fmt.Fprintln(s.out, contract.OneLine(fmt.Sprintf(format, args...)))
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
	w := printers.GetNewTabWriter(s.out)
	for _, row := range append([][]string{head}, rows...) {
		s.line(w, row)
	}
	if err := w.Flush(); s.err == nil {
		s.err = err
	}
}

func (s *sheet) line(w io.Writer, cells []string) {
	for i := range cells {
		cells[i] = contract.OneLine(cells[i])
	}
	s.begun = true
	if s.err == nil {
		_, s.err = fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
}

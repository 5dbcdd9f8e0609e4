package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/cli/view"
)

// The forms in which an answer is printed.
const (
	asTable = "table"
	asWide  = "wide"
	asJSON  = "json"
	asYAML  = "yaml"
	asName  = "name"
)

var forms = []string{asTable, asWide, asJSON, asYAML, asName}

// output is the flag -o.
type output struct{ form string }

func (o *output) register(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.form, "output", "o", asTable, "the form of the answer: "+strings.Join(forms, ", "))
	if err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // it is registered twice
	}
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error { // before anything is read
		if !slices.Contains(forms, o.form) {
			return fmt.Errorf("--output=%q: want one of %s", o.form, strings.Join(forms, ", "))
		}
		return run(cmd, args)
	}
}

// answer is what a command prints.
type answer interface{ Names() []string }

func (o *output) print(w io.Writer, a answer) error {
	switch o.form {
	case asJSON:
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(a)
	case asYAML:
		text, err := yaml.Marshal(a)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	case asName:
		for _, name := range a.Names() {
			if _, err := fmt.Fprintln(w, oneLine(name)); err != nil {
				return err
			}
		}
		return nil
	}
	s := &sheet{out: w, wide: o.form == asWide}
	switch a := a.(type) {
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
	}
	return s.err
}

// between parts an answer from the next one.
func (o *output) between(w io.Writer) error {
	text := "\n"
	switch o.form {
	case asYAML:
		text = "---\n"
	case asJSON, asName:
		return nil
	}
	_, err := io.WriteString(w, text)
	return err
}

// more prints one more entry of a story.
func (o *output) more(w io.Writer, e view.Entry) error {
	if o.form != asTable && o.form != asWide {
		if err := o.between(w); err != nil {
			return err
		}
		return o.print(w, view.Story{Entries: []view.Entry{e}})
	}
	s := &sheet{out: w, wide: o.form == asWide}
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
		_, s.err = fmt.Fprintln(s.out, oneLine(fmt.Sprintf(format, args...)))
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
		cells[i] = oneLine(cells[i])
	}
	s.begun = true
	if s.err == nil {
		_, s.err = fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
}

// oneLine keeps what others have written from breaking the table, from commanding the terminal, and
// from changing the order in which letters are shown.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, text)
}

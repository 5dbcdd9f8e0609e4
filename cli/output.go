package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/cli/table"
	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
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
			if _, err := fmt.Fprintln(w, contract.OneLine(name)); err != nil {
				return err
			}
		}
		return nil
	}
	return table.Print(w, o.form == asWide, columns(w), a)
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

// again shows an answer with what parts it from the next one.
func (o *output) again(w io.Writer, show func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := show(ctx); err != nil {
			return err
		}
		return o.between(w)
	}
}

// more prints one more entry of a story.
func (o *output) more(w io.Writer, e view.Entry) error {
	if o.form != asTable && o.form != asWide {
		if err := o.between(w); err != nil {
			return err
		}
		return o.print(w, view.Story{Entries: []view.Entry{e}})
	}
	return table.PrintEntry(w, o.form == asWide, columns(w), e)
}

// columns is how wide the terminal is that something is printed on; 0 where it is none.
func columns(w io.Writer) int {
	if !terminal(w) {
		return 0
	}
	width, _, err := term.GetSize(int(w.(*os.File).Fd()))
	if err != nil {
		return 0 // as to a file: nothing is cut
	}
	return width
}

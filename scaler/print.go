package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// The forms in which a plan is printed.
const (
	asTable = "table"
	asYAML  = "yaml"
	asJSON  = "json"
)

var outputs = []string{asTable, asYAML, asJSON}

// printout is a plan for people and programs.
type printout struct {
	// At is when the snapshot was taken, Wake when to evaluate again.
	At time.Time `json:"at"`
	// Faults are what of the cluster may not be read.
	Faults []string `json:"faults,omitempty"`
	// Others are the programs of the cluster that do what this one does.
	Others   []string           `json:"otherPrograms,omitempty"`
	Actions  []actionLine       `json:"actions"`
	Verdicts []*verdict.Verdict `json:"verdicts"`
	Wake     time.Time          `json:"wake,omitzero"`
}

// actionLine is an action: its kind, the text that logs and Events have, and
// its fields.
type actionLine struct {
	Kind string        `json:"kind"`
	Text string        `json:"text"`
	Do   action.Action `json:"do"`
}

func newPrintout(s fleet.Snapshot, p plan.Plan) printout {
	out := printout{At: s.Now, Faults: s.Faults, Others: p.Others, Actions: []actionLine{}, Verdicts: p.Verdicts, Wake: p.Wake}
	for _, a := range p.Actions {
		out.Actions = append(out.Actions, actionLine{Kind: action.TraitsOf(a).Kind, Text: a.String(), Do: a})
	}
	return out
}

func (p printout) write(w io.Writer, form string) error {
	switch form {
	case asJSON:
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(p)
	case asYAML:
		text, err := yaml.Marshal(p)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
	return p.table(w)
}

func (p printout) table(w io.Writer) error {
	for _, fault := range p.Faults {
		fmt.Fprintln(w, "fault:", fault)
	}
	for _, other := range p.Others {
		fmt.Fprintln(w, "other:", other)
	}
	if len(p.Actions) == 0 {
		fmt.Fprintln(w, "nothing to do")
	}
	for _, a := range p.Actions {
		fmt.Fprintln(w, a.Text)
	}
	for _, part := range []struct {
		of    verdict.SubjectKind
		title string
	}{{verdict.OfGroup, "GROUP"}, {verdict.OfPod, "POD"}, {verdict.OfNode, "NODE"}} {
		if err := p.part(w, part.of, part.title); err != nil {
			return err
		}
	}
	if !p.Wake.IsZero() {
		fmt.Fprintf(w, "\nnext evaluation by %s\n", p.Wake.UTC().Format(time.RFC3339))
	}
	return nil
}

// part prints the verdicts of one kind, with a line for each detail.
func (p printout) part(w io.Writer, of verdict.SubjectKind, title string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	header := false
	for _, v := range p.Verdicts {
		if v.Of != of {
			continue
		}
		if !header {
			fmt.Fprintf(table, "\n%s\tREASON\tWHY\n", title)
			header = true
		}
		subject := fmt.Sprintf("%s\t%s", v.Name, v.Reason)
		for _, d := range v.Details {
			fmt.Fprintf(table, "%s\t%s\n", subject, d)
			subject = "\t"
		}
	}
	return table.Flush()
}

package view

import (
	_ "embed"
	"fmt"
	"strings"

	"windlass.dev/windlass/pkg/statuspage"
)

// Advice is what a reason means, and what people do about it.
type Advice struct {
	Meaning string `json:"meaning,omitempty"`
	Do      string `json:"do,omitempty"`
}

// reasons.txt is docs/reference/verdict-reasons.md line by line; make update writes it.
//
//go:embed reasons.txt
var reasons string

var advices = func() map[string]Advice {
	all := map[string]Advice{}
	for line := range strings.Lines(reasons) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 4 {
			panic(fmt.Sprintf("reasons.txt: %q", line)) // a part of the program, which a test reads
		}
		all[ref(fields[0], fields[1])] = Advice{fields[2], fields[3]}
	}
	return all
}()

// hookReason is the reason that a part of a group's verdict would be of, if it speaks of how a hook
// is set up: a weightier reason may hide it. Empty where it speaks of something else.
func hookReason(d statuspage.Detail) statuspage.Reason {
	switch {
	case d.Params["instance"] != nil, d.Params["hook"] == nil && d.Params["hooks"] == nil:
		return ""
	case d.Params["hook"] != nil:
		return "HookMisconfigured"
	}
	return "HookMissing"
}

// hidden are what people should mend of a group though its reason asks for nothing.
func hidden(g *statuspage.Group) (list []Fault) {
	for _, d := range g.Details {
		if reason := hookReason(d); reason != "" {
			list = append(list, Fault{ref(KindGroup, g.Name), d.Text, AdviceOn(KindGroup, reason).Do})
		}
	}
	for _, text := range g.Faults {
		list = append(list, Fault{ref(KindGroup, g.Name), text, AdviceOn(KindGroup, "Faulty").Do})
	}
	return list
}

// AdviceOn a verdict's reason; empty for one of a newer scaler.
func AdviceOn(kind string, reason statuspage.Reason) Advice {
	return advices[ref(kind, string(reason))]
}

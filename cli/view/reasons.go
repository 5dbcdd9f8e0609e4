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

// AdviceOn a verdict's reason; empty for one of a newer scaler.
func AdviceOn(kind string, reason statuspage.Reason) Advice {
	return advices[ref(kind, string(reason))]
}

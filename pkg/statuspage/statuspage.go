// Package statuspage is what stands in the ConfigMap windlass-status. The scaler writes it, and
// programs of ours that have no plan of their own read it.
//
//	statuspage.go  the page, for people
//	verdicts.go    every verdict, for programs
package statuspage

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/pkg/contract"
)

const (
	// Key is where the ConfigMap holds the page, as YAML.
	Key = "status"
	// MaxBytes is the most that a page has: an object of the API holds 1 MiB, and everybody
	// who watches it gets all of it at each change.
	MaxBytes = 256 << 10
	// MostFaults is how many the cluster, other programs, and each group show.
	MostFaults = 10
	// maxText is the most of a message.
	maxText = 1 << 10
)

// HeaderAsked is on the leader's answer to a question. A scaler that knows no questions answers
// each with its last plan, without this.
const HeaderAsked = "Windlass-Asked"

// Reason is a verdict in one word.
type Reason string

// Status is both: what people read, and what programs do.
type Status struct {
	Page     Page
	Verdicts Verdicts
}

// Page is what people read of a plan: groups in full, pending pods by class,
// nodes by reason.
type Page struct {
	// Written is when the page was, Leader who wrote it.
	Written time.Time `json:"written,omitzero"`
	Leader  string    `json:"leader,omitempty"`
	// Version is of the program that wrote it.
	Version string `json:"version,omitempty"`
	// DryRun is true where nothing of what is decided is done.
	DryRun bool `json:"dryRun,omitempty"`
	// Trouble is why nothing can be decided; all else is empty then. Without any
	// group it is why there is none.
	Trouble string `json:"trouble,omitempty"`
	// Faults are what of the cluster may not be read, and what is decided without it.
	Faults []string `json:"faults,omitempty"`
	// Others are the programs of the cluster that do what we do, and what people do about it.
	Others []string `json:"otherPrograms,omitempty"`
	Doing  []string `json:"doing,omitempty"`
	// Failing are actions that were tried in vain, and why.
	Failing []string    `json:"failing,omitempty"`
	Groups  []GroupLine `json:"groups"`
	Pods    []PodLine   `json:"waitingPods,omitempty"`
	Nodes   []NodeLine  `json:"nodes,omitempty"`
	// Omitted counts lines that found no room.
	Omitted int `json:"omitted,omitempty"`
}

// GroupLine is one group.
type GroupLine struct {
	Name        string `json:"name"`
	Min         int    `json:"min"`
	Max         int    `json:"max"`
	Desired     int    `json:"desired"`
	Ready       int    `json:"ready"`
	Terminating int    `json:"leaving,omitempty"`
	Reason      Reason `json:"reason"`
	Message     string `json:"message"`
	// PricePerHour is what a node of the group costs, the dearest of its templates, in US
	// dollars; 0 where that is not known.
	PricePerHour float64  `json:"pricePerHour,omitempty"`
	Faults       []string `json:"faults,omitempty"`
}

// PodLine is a class of pending pods: those with the same verdict.
type PodLine struct {
	Reason  Reason   `json:"reason"`
	Message string   `json:"message"`
	Count   int      `json:"count"`
	Pods    []string `json:"pods"`
}

// NodeLine is all nodes with the same reason, the first of them with their
// messages.
type NodeLine struct {
	Reason Reason            `json:"reason"`
	Count  int               `json:"count"`
	Nodes  map[string]string `json:"nodes"`
}

// Read finds the page in its ConfigMap.
func Read(object *corev1.ConfigMap) (Page, error) {
	var page Page
	if err := yaml.Unmarshal([]byte(object.Data[Key]), &page); err != nil {
		return Page{}, fmt.Errorf("config map %s: %w", contract.ConfigMapStatus, err)
	}
	return page, nil
}

// Encode prints a page as YAML that always has room in a ConfigMap: classes of pods
// that few belong to go first, then names of nodes, what is being done, and groups.
func (page Page) Encode() (string, error) {
	page.Trouble = Cut(page.Trouble)
	for page.letters() > MaxBytes && page.shrink() {
	}
	for {
		text, err := yaml.Marshal(page)
		if err != nil {
			return "", err
		}
		if len(text) <= MaxBytes || !page.shrink() {
			return string(text), nil
		}
	}
}

// letters is the least that the page takes as text; to count is much cheaper than
// to encode.
func (page *Page) letters() int {
	sum := 0
	for _, list := range [][]string{page.Faults, page.Others, page.Doing, page.Failing} {
		sum += total(list)
	}
	for _, g := range page.Groups {
		sum += len(g.Name) + len(g.Message) + total(g.Faults)
	}
	for _, p := range page.Pods {
		sum += len(p.Message) + total(p.Pods)
	}
	for _, n := range page.Nodes {
		for name, message := range n.Nodes {
			sum += len(name) + len(message)
		}
	}
	return sum
}

func total(texts []string) int {
	sum := 0
	for _, t := range texts {
		sum += len(t)
	}
	return sum
}

// shrink takes something out. It says whether there was anything left to take.
func (page *Page) shrink() bool {
	switch {
	case len(page.Pods) > 1:
		page.Pods = halved(page, page.Pods)
	case page.shrinkNodes():
	case len(page.Doing)+len(page.Failing) > 1:
		page.Doing, page.Failing = halved(page, page.Doing), halved(page, page.Failing)
	case len(page.Groups) > 0:
		page.Groups = halved(page, page.Groups)
	default:
		return false
	}
	return true
}

// halved is the first half of a list; what goes is counted.
func halved[T any](page *Page, list []T) []T {
	keep := len(list) / 2
	page.Omitted += len(list) - keep
	return slices.Clip(list[:keep])
}

// shrinkNodes takes the names of nodes out of the first line that has some; their count
// stays.
func (page *Page) shrinkNodes() bool {
	for i, line := range page.Nodes {
		if len(line.Nodes) == 0 {
			continue
		}
		page.Nodes = slices.Clone(page.Nodes) // the caller's page keeps its own
		page.Omitted += len(line.Nodes)
		page.Nodes[i].Nodes = nil
		return true
	}
	return false
}

// Cut shortens a text to what the page shows of one.
func Cut(text string) string { return contract.Shorten(text, maxText) }

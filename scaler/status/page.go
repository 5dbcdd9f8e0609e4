package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/act"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// The bounds of a page: an object of the API holds 1 MiB, and everybody who
// watches it gets all of it at each change.
const (
	maxPage    = 256 << 10
	maxDoing   = 50
	maxClasses = 1000
	podNames   = 3
	nodeNames  = 50
	// maxText is the most of a message, and maxFaults how many the cluster and each
	// group show.
	maxText   = 1 << 10
	maxFaults = 10
)

// Page is what people read of a plan: groups in full, pending pods by class,
// nodes by reason.
type Page struct {
	// Written is when the page was, Leader who wrote it.
	Written time.Time `json:"written,omitzero"`
	Leader  string    `json:"leader,omitempty"`
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
	Name        string         `json:"name"`
	Min         int            `json:"min"`
	Max         int            `json:"max"`
	Desired     int            `json:"desired"`
	Ready       int            `json:"ready"`
	Terminating int            `json:"leaving,omitempty"`
	Reason      verdict.Reason `json:"reason"`
	Message     string         `json:"message"`
	Faults      []string       `json:"faults,omitempty"`
}

// PodLine is a class of pending pods: those with the same verdict.
type PodLine struct {
	Reason  verdict.Reason `json:"reason"`
	Message string         `json:"message"`
	Count   int            `json:"count"`
	Pods    []string       `json:"pods"`
}

// NodeLine is all nodes with the same reason, the first of them with their
// messages.
type NodeLine struct {
	Reason verdict.Reason    `json:"reason"`
	Count  int               `json:"count"`
	Nodes  map[string]string `json:"nodes"`
}

// NewPage draws a page of a plan, and of what became of its actions.
func NewPage(s fleet.Snapshot, p plan.Plan, results []act.Result) Page {
	page := Page{Groups: []GroupLine{}}
	for _, a := range p.Actions {
		page.Doing = append(page.Doing, cut(a.String()))
	}
	for _, r := range results {
		if failed := r.Outcome == act.Failed || r.Outcome == act.Paused; failed && r.Err != nil {
			page.Failing = append(page.Failing, cut(fmt.Sprintf("%s: %v", r.Action, r.Err)))
		}
	}
	page.Doing, page.Failing = page.few(page.Doing), page.few(page.Failing)
	page.Faults, page.Others = page.faults(s.Faults), page.faults(p.Others)
	page.groups(s, p.Verdicts)
	page.pods(p.Verdicts)
	page.nodes(p.Verdicts)
	return page
}

// few cuts a list of actions, and counts what is cut.
func (page *Page) few(lines []string) []string {
	if n := len(lines) - maxDoing; n > 0 {
		page.Omitted += n
		return lines[:maxDoing]
	}
	return lines
}

func (page *Page) groups(s fleet.Snapshot, verdicts []verdict.Verdict) {
	ready := map[string]bool{}
	for i := range s.Nodes {
		if s.Nodes[i].Ready {
			ready[s.Nodes[i].InstanceID()] = true
		}
	}
	said := map[string]verdict.Verdict{}
	for _, v := range verdicts {
		if v.Of == verdict.OfGroup {
			said[v.Name] = v
		}
	}
	for _, g := range s.Groups {
		line := GroupLine{Name: g.Name, Min: g.Min, Max: g.Max, Desired: g.Desired, Faults: page.faults(g.Faults),
			Reason: said[g.Name].Reason, Message: cut(said[g.Name].Message())}
		for _, i := range g.Instances {
			if i.Live() && ready[i.ID] {
				line.Ready++
			}
			if i.Terminating() {
				line.Terminating++
			}
		}
		page.Groups = append(page.Groups, line)
	}
	slices.SortFunc(page.Groups, func(a, b GroupLine) int { return cmp.Compare(a.Name, b.Name) })
}

func (page *Page) pods(verdicts []verdict.Verdict) {
	type class struct {
		reason  verdict.Reason
		message string
	}
	classes, messages := map[class]*PodLine{}, verdict.Messages{}
	for _, v := range verdicts {
		if v.Of != verdict.OfPod {
			continue
		}
		key := class{v.Reason, cut(messages.Of(v))}
		line := classes[key]
		if line == nil {
			line = &PodLine{Reason: v.Reason, Message: key.message}
			classes[key] = line
		}
		line.Count++
		line.Pods = append(line.Pods, v.Name)
	}
	for _, line := range classes {
		slices.Sort(line.Pods)
		line.Pods = line.Pods[:min(podNames, len(line.Pods))]
		page.Pods = append(page.Pods, *line)
	}
	slices.SortFunc(page.Pods, func(a, b PodLine) int {
		return cmp.Or(-cmp.Compare(a.Count, b.Count), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	if n := len(page.Pods); n > maxClasses {
		page.Pods, page.Omitted = page.Pods[:maxClasses], page.Omitted+n-maxClasses
	}
}

func (page *Page) nodes(verdicts []verdict.Verdict) {
	reasons := map[verdict.Reason]map[string]string{}
	for _, v := range verdicts {
		if v.Of != verdict.OfNode {
			continue
		}
		if reasons[v.Reason] == nil {
			reasons[v.Reason] = map[string]string{}
		}
		reasons[v.Reason][v.Name] = cut(v.Message())
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		all := reasons[reason]
		line := NodeLine{Reason: reason, Count: len(all), Nodes: map[string]string{}}
		names := slices.Sorted(maps.Keys(all))
		for _, name := range names[:min(nodeNames, len(names))] {
			line.Nodes[name] = all[name]
		}
		page.Nodes = append(page.Nodes, line)
	}
}

// faults are the first of some, the others counted.
func (page *Page) faults(all []string) []string {
	n := len(all)
	if n > maxFaults {
		page.Omitted += n - maxFaults
		n = maxFaults
	}
	var few []string
	for _, fault := range all[:n] {
		few = append(few, cut(fault))
	}
	return few
}

// Encode prints a page as YAML that always has room in a ConfigMap: classes of pods
// that few belong to go first, then names of nodes, what is being done, and groups.
func (page Page) Encode() (string, error) {
	page.Trouble = cut(page.Trouble)
	for page.letters() > maxPage && page.shrink() {
	}
	for {
		text, err := yaml.Marshal(page)
		if err != nil {
			return "", err
		}
		if len(text) <= maxPage || !page.shrink() {
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

func cut(text string) string { return contract.Shorten(text, maxText) }

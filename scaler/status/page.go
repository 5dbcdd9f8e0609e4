package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/statuspage"
	"windlass.dev/windlass/scaler/act"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// What a page shows of long lists.
const (
	maxDoing   = 50
	maxClasses = 1000
	podNames   = 3
	nodeNames  = 50
	maxFaults  = statuspage.MostFaults
)

// sheet is a page that is being drawn.
type sheet struct{ statuspage.Page }

// NewPage draws a page of a plan, and of what became of its actions.
func NewPage(s fleet.Snapshot, p plan.Plan, results []act.Result) statuspage.Page {
	page := sheet{statuspage.Page{Groups: []statuspage.GroupLine{}}}
	for _, a := range p.Actions {
		page.Doing = append(page.Doing, statuspage.Cut(a.String()))
	}
	for _, r := range results {
		if failed := r.Outcome == act.Failed || r.Outcome == act.Paused; failed && r.Err != nil {
			page.Failing = append(page.Failing, statuspage.Cut(fmt.Sprintf("%s: %v", r.Action, r.Err)))
		}
	}
	page.Doing, page.Failing = page.few(page.Doing), page.few(page.Failing)
	page.Faults, page.Others = page.faults(s.Faults), page.faults(p.Others)
	page.groups(s, p.Verdicts)
	page.pods(p.Verdicts)
	page.nodes(p.Verdicts)
	return page.Page
}

// few cuts a list of actions, and counts what is cut.
func (page *sheet) few(lines []string) []string {
	if n := len(lines) - maxDoing; n > 0 {
		page.Omitted += n
		return lines[:maxDoing]
	}
	return lines
}

func (page *sheet) groups(s fleet.Snapshot, verdicts []*verdict.Verdict) {
	ready := readyInstances(s)
	said := map[string]verdict.Verdict{}
	for _, v := range verdicts {
		if v.Of == verdict.OfGroup {
			said[v.Name] = *v
		}
	}
	for _, g := range s.Groups {
		line := statuspage.GroupLine{Name: g.Name, Min: g.Min, Max: g.Max, Desired: g.Desired, Faults: page.faults(g.Faults), PricePerHour: g.Price(),
			Reason: said[g.Name].Reason, Message: statuspage.Cut(said[g.Name].Message())}
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
	slices.SortFunc(page.Groups, func(a, b statuspage.GroupLine) int { return cmp.Compare(a.Name, b.Name) })
}

func readyInstances(s fleet.Snapshot) map[string]bool {
	ready := map[string]bool{}
	for i := range s.Nodes {
		if s.Nodes[i].Ready {
			ready[s.Nodes[i].InstanceID()] = true
		}
	}
	return ready
}

func (page *sheet) pods(verdicts []*verdict.Verdict) {
	type class struct {
		reason  verdict.Reason
		message string
	}
	classes, messages := map[class]*statuspage.PodLine{}, verdict.Messages{}
	for _, v := range verdicts {
		if v.Of != verdict.OfPod {
			continue
		}
		key := class{v.Reason, statuspage.Cut(messages.Of(v))}
		line := classes[key]
		if line == nil {
			line = &statuspage.PodLine{Reason: v.Reason, Message: key.message}
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
	slices.SortFunc(page.Pods, func(a, b statuspage.PodLine) int {
		return cmp.Or(-cmp.Compare(a.Count, b.Count), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	if n := len(page.Pods); n > maxClasses {
		page.Pods, page.Omitted = page.Pods[:maxClasses], page.Omitted+n-maxClasses
	}
}

func (page *sheet) nodes(verdicts []*verdict.Verdict) {
	reasons := map[verdict.Reason]map[string]string{}
	for _, v := range verdicts {
		if v.Of != verdict.OfNode {
			continue
		}
		if reasons[v.Reason] == nil {
			reasons[v.Reason] = map[string]string{}
		}
		reasons[v.Reason][v.Name] = statuspage.Cut(v.Message())
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		all := reasons[reason]
		line := statuspage.NodeLine{Reason: reason, Count: len(all), Nodes: map[string]string{}}
		names := slices.Sorted(maps.Keys(all))
		for _, name := range names[:min(nodeNames, len(names))] {
			line.Nodes[name] = all[name]
		}
		page.Nodes = append(page.Nodes, line)
	}
}

// faults are the first of some, the others counted.
func (page *sheet) faults(all []string) []string {
	n := len(all)
	if n > maxFaults {
		page.Omitted += n - maxFaults
		n = maxFaults
	}
	var few []string
	for _, fault := range all[:n] {
		few = append(few, statuspage.Cut(fault))
	}
	return few
}

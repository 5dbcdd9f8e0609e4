package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
)

// mostSilence is how long after it has renewed its Lease a scaler is believed to lead. It renews
// every few seconds; clocks of people's machines differ.
const mostSilence = time.Minute

// Leader is what the scaler's Lease says.
type Leader struct {
	Holder  string    `json:"holder,omitempty"`
	Renewed time.Time `json:"renewed,omitzero"`
}

// AsOf is how far an answer can be trusted.
type AsOf struct {
	// Written is when windlass-status was, and Seconds how long ago that is.
	Written time.Time `json:"written,omitzero"`
	Seconds int       `json:"seconds,omitempty"`
	// Renewed is when the scaler renewed its Lease; Old says that nobody leads, and since when.
	Renewed time.Time `json:"leaseRenewed,omitzero"`
	Old     string    `json:"old,omitempty"`
	// Missing says what the answer lacks, and why.
	Missing []string `json:"missing,omitempty"`
}

// AsOf says how far answers about a world can be trusted.
func (w *World) AsOf() AsOf {
	a := AsOf{Written: w.Page.Written, Missing: slices.Clone(w.Missing)}
	if !a.Written.IsZero() {
		a.Seconds = max(0, int(w.Now.Sub(a.Written).Seconds()))
	}
	if w.Leader != nil {
		a.Renewed = w.Leader.Renewed
		switch silence := w.Now.Sub(a.Renewed); {
		case w.Leader.Holder == "":
			a.Old = "no scaler leads: what follows is old"
		case silence > mostSilence:
			a.Old = fmt.Sprintf("the scaler has not renewed its lease for %s: what follows is old", duration.HumanDuration(silence))
		}
	}
	o := w.Verdicts.Omitted
	for _, lack := range []struct {
		n    int
		text string
	}{
		{o.Nodes, "%d nodes are not listed: windlass-status has no room for them"},
		{o.Messages, "of %d nodes the reason is listed alone: windlass-status has no room for more"},
		{o.Groups, "%d groups are not listed: windlass-status has no room for them"},
		{o.PodClasses, "%d classes of pending pods are not listed: windlass-status has no room for them"},
	} {
		if lack.n > 0 {
			a.Missing = append(a.Missing, fmt.Sprintf(lack.text, lack.n))
		}
	}
	return a
}

// Now is when an answer was made; zero where it is not known how old it is.
func (a AsOf) Now() time.Time {
	if a.Written.IsZero() {
		return time.Time{}
	}
	return a.Written.Add(time.Duration(a.Seconds) * time.Second)
}

// String is the age of an answer.
func (a AsOf) String() string {
	if a.Written.IsZero() {
		return "as of an unknown time"
	}
	text := "as of " + duration.HumanDuration(time.Duration(a.Seconds)*time.Second) + " ago"
	if a.Old == "" && time.Duration(a.Seconds)*time.Second > mostSilence && !a.Renewed.IsZero() {
		text += ", and unchanged since"
	}
	return text
}

// VerdictsOf are those that the page has: what there is of a scaler that writes no other.
func VerdictsOf(page statuspage.Page) (v statuspage.Verdicts) {
	said := func(reason statuspage.Reason, message string) statuspage.Verdict {
		verdict := statuspage.Verdict{Reason: reason}
		if message != "" {
			verdict.Details = []statuspage.Detail{{Text: message}}
		}
		return verdict
	}
	for _, g := range page.Groups {
		v.Groups = append(v.Groups, statuspage.Group{
			Name: g.Name, Min: g.Min, Max: g.Max, Desired: g.Desired, Ready: g.Ready, Terminating: g.Terminating,
			PricePerHour: g.PricePerHour, Faults: g.Faults, Verdict: said(g.Reason, g.Message),
		})
	}
	for _, line := range page.Nodes {
		for _, name := range slices.Sorted(maps.Keys(line.Nodes)) {
			v.Nodes = append(v.Nodes, statuspage.Node{Name: name, Verdict: said(line.Reason, line.Nodes[name])})
		}
		v.Omitted.Nodes += max(0, line.Count-len(line.Nodes))
	}
	for _, p := range page.Pods {
		v.Pods = append(v.Pods, statuspage.Pods{Count: p.Count, Names: p.Pods, Verdict: said(p.Reason, p.Message)})
	}
	return v
}

// noRoom says why there is no verdict on a node, where that is known.
func (w *World) noRoom() (message, do string) {
	if w.Verdicts.Omitted.Nodes > 0 {
		return "it is one of the nodes for which windlass-status has no room", "its Events say why it stays: kubectl describe node; or ask the scaler itself: " + contract.AppScaler + " plan -o json"
	}
	if w.Page.DryRun {
		return "there is no verdict on it: the dry run assumes that Windlass has removed it, or it is new", "nothing; windlass-scaler compare has what would have been done"
	}
	return "there is no verdict on it yet", "ask again in some seconds; if that lasts, see whether windlass-scaler runs and what its log says"
}

// counts are the nodes by reason: of verdicts, or of the page where those are not all.
func counts(w World) []ReasonCount {
	all := map[statuspage.Reason]int{}
	for i := range w.Verdicts.Nodes {
		all[w.Verdicts.Nodes[i].Reason]++
	}
	for _, line := range w.Page.Nodes {
		all[line.Reason] = max(all[line.Reason], line.Count)
	}
	list := []ReasonCount{}
	for reason, n := range all {
		list = append(list, ReasonCount{reason, n})
	}
	slices.SortFunc(list, func(a, b ReasonCount) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Reason, b.Reason)) })
	return list
}

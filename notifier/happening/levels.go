package happening

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
)

// Reasons of the status page that matter here; scaler/plan/verdict has all.
const (
	groupAtMax           statuspage.Reason = "AtMax"
	podGroupsUnavailable statuspage.Reason = "GroupsUnavailable"
)

// mostText is the most bytes of a text.
const mostText = 500

// faultEvents begin the subjects of faults that Events report; those of others the page shows.
const faultEvents = "event "

func (h *Happening) isEventFault() bool {
	return h.Kind == Fault && strings.HasPrefix(h.Subject, faultEvents)
}

// faultEvent: something failed that people should know of. The same about the same is one.
func (f *fold) faultEvent(e Event) {
	about := cmp.Or(e.Facts.Group, e.Object)
	subject := faultEvents + e.Reason + " " + about
	h := f.lasting(Fault, subject)
	if h == nil {
		h = f.begin(Happening{Kind: Fault, Subject: subject, Phase: Lasting, Began: e.At, Group: e.Facts.Group})
		if e.Kind == "Node" {
			h.Node = e.Object
		}
	} else {
		h.Count++
		h.change(e.At)
	}
	h.Text = contract.Shorten(e.Reason+": "+e.Text, mostText)
}

// levels takes in what lasts while it is seen. Without a page nothing is said of what a page
// shows, and without Nodes nothing of what they show.
func (f *fold) levels() {
	if f.world.Nodes != nil {
		f.level(DrainBlocked, f.blocked(), func(*Happening) bool { return true })
	}
	if page := f.world.Page; page != nil {
		f.level(AtMax, atMax(page, f.world.Waiting), func(h *Happening) bool { return complete(page, h.Group) })
		list, all := faults(page)
		f.level(Fault, list, func(h *Happening) bool {
			return h.Subject == trouble || all && complete(page, h.Group) && !full(page, h.Group)
		})
	}
}

// complete reports whether a page would show what it has to say of a group, or of the cluster. A
// page of trouble shows nothing else.
func complete(page *statuspage.Page, group string) bool {
	return page.Trouble == "" && (group == "" || page.Omitted == 0 || slices.ContainsFunc(page.Groups, func(g statuspage.GroupLine) bool { return g.Name == group }))
}

// full reports whether a page may have no room for more faults of a group, or of the cluster.
func full(page *statuspage.Page, group string) bool {
	if group == "" {
		return len(page.Faults) >= statuspage.MostFaults || len(page.Others) >= statuspage.MostFaults
	}
	return slices.ContainsFunc(page.Groups, func(g statuspage.GroupLine) bool { return g.Name == group && len(g.Faults) >= statuspage.MostFaults })
}

// level compares what is seen of a kind with what lasts of it. What could not be seen lasts on.
func (f *fold) level(kind Kind, seen []Happening, visible func(*Happening) bool) {
	now := f.world.Now
	subjects := make(map[string]bool, len(seen))
	for _, fact := range seen {
		subjects[fact.Subject] = true
		h := f.lasting(kind, fact.Subject)
		if h == nil {
			if !f.room() {
				continue
			}
			fact.Kind, fact.Phase, fact.Began, fact.Hidden = kind, Lasting, now, true
			h = f.begin(fact)
		}
		h.Missed, f.seen[h.ID] = time.Time{}, true
		h.Pods, h.BlockedBy, h.Text, h.Namespaces, h.Deadline, h.For = fact.Pods, fact.BlockedBy, fact.Text, fact.Namespaces, fact.Deadline, fact.For
		if h.Hidden && !now.Before(h.Began.Add(holds)) {
			h.Hidden = false
			h.change(now)
			f.begun(h)
		}
	}
	f.Happenings = slices.DeleteFunc(f.Happenings, func(h Happening) bool {
		return h.Kind == kind && h.Hidden && !subjects[h.Subject]
	})
	for i := range f.Happenings {
		h := &f.Happenings[i]
		if h.Kind != kind || h.Over() || h.isEventFault() || subjects[h.Subject] {
			continue
		}
		if !visible(h) {
			h.Missed = time.Time{}
			continue
		}
		h.missed(false, now)
		if !now.Before(h.Missed.Add(misses)) {
			h.end(Over, h.Missed)
			if kind == DrainBlocked {
				f.Totals.BlockedFor += h.Ended.Sub(h.Began)
			}
		}
	}
}

// blocked are the drains of which nothing but refused evictions is left.
func (f *fold) blocked() []Happening {
	var seen []Happening
	for _, n := range sorted(f.world.Nodes) {
		if r := n.Report; r != nil && r.Phase == contract.PhaseBlocked {
			seen = append(seen, Happening{Subject: n.Name, Node: n.Name, Notice: string(r.Kind), BlockedBy: r.BlockedBy[:min(len(r.BlockedBy), mostNames)], For: r.Owners[:min(len(r.Owners), mostNames)],
				Pods: r.Left, Deadline: r.Deadline.Time, Text: contract.Shorten(r.Message, mostText), Namespaces: namespaces(r.BlockedBy)})
		}
	}
	return seen
}

// namespaces of what is named as namespace/name, perhaps with words before that, as in pod shop/web-1.
func namespaces(names []string) []string {
	var list []string
	for _, name := range names {
		before, _, ok := strings.Cut(name, "/")
		if namespace := before[strings.LastIndex(before, " ")+1:]; ok && len(validation.IsDNS1123Label(namespace)) == 0 {
			list = union(list, []string{namespace})
		}
	}
	return list
}

// atMax are the groups at their maximum that pending pods would fit.
func atMax(page *statuspage.Page, by map[string]Waiting) []Happening {
	waiting, names := 0, []string(nil)
	for _, p := range page.Pods {
		if p.Reason == podGroupsUnavailable {
			waiting += p.Count
			names = union(names, p.Pods)
		}
	}
	var seen []Happening
	for _, g := range page.Groups {
		if g.Reason == groupAtMax {
			pods, names := waiting, names
			if by != nil {
				pods, names = by[g.Name].Pods, by[g.Name].For
			}
			seen = append(seen, Happening{Subject: g.Name, Group: g.Name, To: g.Max, Pods: pods, For: names, Namespaces: namespaces(names), Text: contract.Shorten(g.Message, mostText)})
		}
	}
	return seen
}

// trouble is the subject of why nothing can be decided.
const trouble = "trouble"

// faults of the page, and whether those are all that it shows. Texts that differ in numbers only
// are of one fault.
func faults(page *statuspage.Page) ([]Happening, bool) {
	byText := map[string]Happening{}
	add := func(group, text string) {
		if text == "" || len(byText) >= mostFaults {
			return
		}
		subject := group + " " + strings.Map(digitless, contract.Shorten(text, mostText))
		if _, there := byText[subject]; !there {
			byText[subject] = Happening{Subject: "page " + hash(subject), Group: group, Text: contract.Shorten(text, mostText)}
		}
	}
	if page.Trouble != "" {
		byText[trouble] = Happening{Subject: trouble, Text: contract.Shorten(page.Trouble, mostText)}
	}
	for _, list := range [][]string{page.Faults, page.Others} {
		for _, text := range list {
			add("", text)
		}
	}
	for _, g := range page.Groups {
		for _, text := range g.Faults {
			add(g.Name, text)
		}
	}
	return sorted(byText), len(byText) < mostFaults
}

func digitless(r rune) rune {
	if '0' <= r && r <= '9' {
		return -1
	}
	return r
}

// sorted are the values of a map in the order of its keys.
func sorted[V any](m map[string]V) []V {
	list := make([]V, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[key])
	}
	return list
}

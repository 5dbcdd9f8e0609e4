package table

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
)

// narrow is how much of a sentence a table shows that is not wide.
const narrow = 90

func (s *sheet) text(text string) string {
	if s.wide || s.columns > 0 && s.cut { // it ends where the terminal does
		return text
	}
	return contract.Shorten(text, narrow)
}

// dash stands for nothing.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func number(n int) string { return strconv.Itoa(n) }

func dollars(sum float64) string { return strconv.FormatFloat(sum, 'f', 2, 64) }

// price is that of one node, of which the cents are few.
func price(sum float64) string {
	if sum == 0 {
		return "unknown"
	}
	return strconv.FormatFloat(sum, 'f', 4, 64)
}

func percent(share float64) string { return strconv.FormatFloat(share*100, 'f', 0, 64) + "%" }

func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

func (s *sheet) clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return view.ClockFrom(s.now, t)
}

func capacity(spot, both bool) string {
	switch {
	case spot:
		return "spot"
	case both:
		return view.SpotOrOnDemand
	}
	return "on demand"
}

func (s *sheet) status(v view.Status) {
	s.now = v.AsOf.Now()
	s.old(v.AsOf)
	s.say("windlass-status of %s UTC, by %s, %s", moment(v.Written), dash(v.Leader), v.AsOf)
	if v.DryRun {
		s.say("dry run: nothing of this is done")
	}
	var rows [][]string
	head := []string{"GROUP", "MIN", "DESIRED", "MAX", "READY", "UPCOMING", "TERMINATING", "REASON", "BACK-OFF"}
	if s.wide {
		head = append(head, "CAPACITY", "$/H", "WHY")
	}
	for _, g := range v.Groups {
		row := []string{g.Name, number(g.Min), number(g.Desired), number(g.Max), number(g.Ready), number(g.Upcoming), number(g.Terminating), string(g.Reason), dash(g.Rests())}
		if s.wide {
			row = append(row, capacity(g.Spot, g.Both), price(g.PricePerHour), g.Message)
		}
		rows = append(rows, row)
	}
	s.table("", head, rows)
	s.pending(v)
	s.drains(v.Drains)
	rows = nil
	for _, n := range v.Nodes {
		rows = append(rows, []string{string(n.Reason), number(n.Count)})
	}
	s.table("Nodes", []string{"REASON", "NODES"}, rows)
	rows = nil
	for _, h := range v.Done {
		rows = append(rows, []string{h.Event, number(h.Count), s.clock(h.Last), s.text(h.Latest)})
	}
	s.table("Last hour", []string{"EVENT", "TIMES", "LAST", "WHAT"}, rows)
	rows = nil
	for _, f := range v.Faults {
		rows = append(rows, []string{f.Of, s.text(f.Text), dash(s.text(f.Do))})
	}
	s.table("To mend", []string{"OF", "WHAT", "DO"}, rows)
	s.missing(v.AsOf)
	s.eventsOmitted(v.EventsOmitted)
}

func (s *sheet) eventsOmitted(n int) {
	if n > 0 {
		s.say("")
		s.say("%d older Events are not shown: there are too many", n)
	}
}

func (s *sheet) pending(v view.Status) {
	var rows [][]string
	for _, p := range v.Pending {
		row := []string{string(p.Reason), number(p.Count), p.Example, s.text(p.Message)}
		if s.wide {
			row = append(row, dash(p.Do))
		}
		rows = append(rows, row)
	}
	head := []string{"REASON", "PODS", "SUCH AS", "WHY"}
	if s.wide {
		head = append(head, "DO")
	}
	s.table("Pending pods", head, rows)
}

func (s *sheet) drains(list []view.Drain) {
	var rows [][]string
	head := []string{"NODE", "KIND", "PHASE", "LEFT", "BLOCKED BY", "SINCE", "DEADLINE"}
	if s.wide {
		head = append(head, "GROUP", "BY", "REASON")
	}
	for _, d := range list {
		row := []string{d.Node, dash(string(d.Kind)), string(d.Phase), left(d), dash(cmp.Or(strings.Join(d.BlockedBy, ", "), d.Failed)), s.clock(d.Since), s.clock(d.Deadline)}
		if s.wide {
			row = append(row, dash(d.Group), dash(d.By), dash(d.Reason))
		}
		rows = append(rows, row)
	}
	s.table("Drains", head, rows)
}

func left(d view.Drain) string {
	if d.Uncounted {
		return dash("")
	}
	return number(d.Left)
}

// old says first what makes all of an answer doubtful.
func (s *sheet) old(a view.AsOf) {
	if a.Old != "" {
		s.say("%s", a.Old)
		s.say("")
	}
}

func (s *sheet) missing(a view.AsOf) {
	if len(a.Missing) > 0 {
		s.say("")
	}
	for _, text := range a.Missing {
		s.say("missing: %s", text)
	}
}

func (s *sheet) why(v *view.Why) {
	if v.AsOf != nil {
		s.now = v.AsOf.Now()
		s.old(*v.AsOf)
		defer func() {
			s.say("")
			s.say("%s", v.AsOf)
			s.missing(*v.AsOf)
		}()
	}
	head := v.Subject.String()
	if v.Reason != "" {
		head += ": " + string(v.Reason)
	}
	if v.Meaning != "" {
		head += " (" + v.Meaning + ")"
	}
	s.say("%s", head)
	switch {
	case v.Pod != nil:
		s.whyPod(v)
	case v.Node != nil:
		s.details(v)
		s.whyNode(v)
	case v.Group != nil:
		s.details(v)
		s.whyGroup(v.Group)
	}
	if v.Do != "" {
		s.say("what to do: %s", v.Do)
	}
	for _, other := range v.Related {
		s.say("")
		s.why(other)
	}
}

// details prints the verdict line by line, and of what each speaks.
func (s *sheet) details(v *view.Why) {
	if len(v.Details) == 0 && v.Message != "" {
		s.hung(2, "  %s", v.Message)
	}
	for _, d := range v.Details {
		line := "  " + d.Text
		if s.wide && len(d.Of) > 0 {
			line += "  [" + strings.Join(d.Of, " ") + "]"
		}
		s.hung(2, "%s", line)
	}
}

func (s *sheet) whyPod(v *view.Why) {
	p := v.Pod
	if p.Grows != "" {
		s.say("  group %s grows for it", p.Grows)
	}
	if len(p.Groups) == 0 {
		s.details(v)
	}
	if len(p.Gates) > 0 {
		s.hung(2, "  gates: %s", strings.Join(p.Gates, ", "))
	}
	var rows [][]string
	for _, g := range p.Groups {
		rows = append(rows, []string{g.Group, g.Text, g.Size})
	}
	if len(rows) > 0 {
		s.table("", []string{"GROUP", "WHY NOT", "IT HAS"}, rows)
		s.rest(v)
	}
	if p.Alike > 1 {
		s.say("the same is true of %d pending pods", p.Alike)
	}
}

// rest prints what a pod's verdict says beside the groups.
func (s *sheet) rest(v *view.Why) {
	for _, d := range v.Details {
		named := false
		for _, g := range v.Pod.Groups {
			named = named || d.Text == g.Group+": "+g.Text
		}
		if !named {
			s.say("%s", d.Text)
		}
	}
}

func (s *sheet) whyNode(v *view.Why) {
	n := v.Node
	var facts []string
	for _, f := range []struct{ name, value string }{{"group", n.Group}, {"type", n.Type}, {"zone", n.Zone}} {
		if f.value != "" {
			facts = append(facts, f.name+" "+f.value)
		}
	}
	if n.PricePerHour > 0 {
		facts = append(facts, fmt.Sprintf("%s, %s $/h, %s $ a month", capacity(n.Spot, n.Both), price(n.PricePerHour), dollars(n.PricePerHour*view.HoursAMonth)))
	} else {
		facts = append(facts, "price unknown")
	}
	s.hung(2, "  %s", strings.Join(facts, ", "))
	if n.Hold != "" {
		text := "held by annotation " + n.Hold
		if n.HeldBecause != "" {
			text += ": " + n.HeldBecause
		}
		if n.Hold == contract.AnnotationHold {
			text += "; kubectl windlass unhold " + v.Name + " removes it"
		}
		s.hung(2, "  %s", text)
	}
	if !n.Unneeded.IsZero() {
		s.say("  marked unneeded since %s", s.clock(n.Unneeded))
	}
	for _, notice := range n.Notices {
		s.say("  notice %s", notice)
	}
	if n.Drain != nil {
		if !s.wide && n.Drain.By != "" { // wide tables have both
			s.hung(2, "  %s asked for its drain: %s", n.Drain.By, dash(n.Drain.Reason))
		}
		s.drains([]view.Drain{*n.Drain})
	}
}

func (s *sheet) whyGroup(g *view.WhyGroup) {
	s.say("  %d ready of %d desired (min %d, max %d), %d upcoming, %d terminating; %s, %s $/h for a node", g.Ready, g.Desired, g.Min, g.Max, g.Upcoming, g.Terminating, capacity(g.Spot, g.Both), price(g.PricePerHour))
	for _, fault := range g.Faults {
		if !strings.Contains(g.Message, fault) {
			s.hung(2, "  %s", fault)
		}
	}
	var rows [][]string
	for _, b := range g.BackOffs {
		rows = append(rows, []string{dash(b.Zone), b.Cause, s.clock(b.Until)})
	}
	s.table("Back-off", []string{"ZONE", "AFTER", "UNTIL"}, rows)
	rows = nil
	for _, p := range g.Pending {
		rows = append(rows, []string{number(p.Count), p.Example, s.text(p.Text)})
	}
	s.table("Pending pods that it does not grow for", []string{"PODS", "SUCH AS", "WHY NOT"}, rows)
	rows = nil
	for _, n := range g.Nodes {
		row := []string{string(n.Reason), number(n.Count), dollars(n.PricePerHour), n.Example, s.text(n.Message)}
		if s.wide {
			row = append(row, dash(n.Do))
		}
		rows = append(rows, row)
	}
	head := []string{"REASON", "NODES", "$/H", "SUCH AS", "WHY"}
	if s.wide {
		head = append(head, "DO")
	}
	s.table("Nodes, and why they stay", head, rows)
}

func (s *sheet) cost(c view.Cost) {
	s.old(c.AsOf)
	s.say("%d nodes cost %s $/h, %s $ a month", c.Nodes, dollars(c.DollarsPerHour), dollars(c.DollarsPerMonth))
	s.say("%s", c.AsOf)
	s.say("prices: %s", dash(c.Prices))
	if !c.SpotAt.IsZero() {
		s.say("spot: what EC2 reported by type and zone at %s UTC, for %d nodes; the other spot nodes as assumed", moment(c.SpotAt), c.SpotReported)
	}
	if c.SpotNote != "" {
		s.say("%s", c.SpotNote)
	}
	s.say("assumed: spot at %s of the list price, on demand at %s of it", percent(c.SpotFactor), percent(c.Discount))
	s.say("idle: %s of cpu and %s of memory is not requested, %s $/h; headroom keeps nodes for %s $/h; spot saves %s $/h", percent(c.Idle.CPU), percent(c.Idle.Memory), dollars(c.Idle.DollarsPerHour), dollars(c.Headroom), dollars(c.SpotSaving))
	if c.Unpriced > 0 {
		s.say("nodes without a known price: %d, which the sums lack; --price-file gives it", c.Unpriced)
	}
	s.costs("GROUP", c.Groups, false)
	s.costs("CAPACITY", c.Capacity, false)
	s.costs("REASON", c.Reasons, true)
	var rows [][]string
	for _, l := range c.Levers {
		rows = append(rows, []string{dollars(l.DollarsPerHour), l.What, l.Do})
	}
	s.table("What would lower it, each by itself", []string{"$/H UP TO", "WHAT", "DO"}, rows)
	s.missing(c.AsOf)
}

func (s *sheet) costs(title string, parts []view.CostOf, why bool) {
	head := []string{title, "NODES", "$/H", "$/MONTH", "IDLE $/H"}
	if why {
		head = append(head, "MOST BY")
		if s.wide {
			head = append(head, "DO")
		}
	}
	var rows [][]string
	for _, p := range parts {
		row := []string{p.Name, number(p.Nodes), dollars(p.DollarsPerHour), dollars(p.DollarsPerMonth), dollars(p.IdlePerHour)}
		if why {
			most := "-"
			if p.MostBy != "" {
				most = fmt.Sprintf("%s (%d)", p.MostBy, p.MostNodes)
			}
			row = append(row, most)
			if s.wide {
				row = append(row, dash(p.Do))
			}
		}
		rows = append(rows, row)
	}
	s.table("", head, rows)
}

func (s *sheet) story(v view.Story) {
	s.old(v.AsOf)
	defer s.missing(v.AsOf)
	if len(v.Entries) == 0 {
		s.say("nothing happened that an Event tells of")
		return
	}
	s.now = v.Entries[len(v.Entries)-1].At
	var rows [][]string
	for _, e := range v.Entries {
		rows = append(rows, s.entry(e))
	}
	s.table("", []string{"TIME", "EVENT", "OF", "ASKED BY", "WHAT"}, rows)
	s.eventsOmitted(v.Omitted)
}

func (s *sheet) entry(e view.Entry) []string {
	at := s.clock(e.At)
	if s.wide {
		at = moment(e.At)
	}
	return []string{at, e.Event, e.Object, dash(e.By), s.text(e.Text)}
}

func (s *sheet) previews(v view.Previews) {
	var rows [][]string
	for _, n := range v.Nodes {
		if len(n.Pods) == 0 {
			rows = append(rows, []string{n.Node, "-", "Leave", "no pod has to leave"})
		}
		for _, p := range n.Pods {
			why := dash(p.Why)
			if p.Budget != "" {
				why = "PDB " + p.Budget + ": " + p.Why
			}
			rows = append(rows, []string{n.Node, p.Pod, string(p.Outcome), s.text(why)})
		}
	}
	s.table("", []string{"NODE", "POD", "WHAT", "WHY"}, rows)
}

// check prints sentences in full, with what mends them below: there are few, and people act on them.
func (s *sheet) check(v view.Check) {
	var rows [][]string
	for _, f := range v.Findings {
		rows = append(rows, []string{string(f.Severity), string(f.Area), f.Of, f.Text, dash(f.Do)})
		if s.wide {
			continue
		}
		of := ""
		if f.Of != "-" {
			of = f.Of + ": "
		}
		s.hung(20, "%-9s %-9s %s%s", f.Severity, f.Area, of, f.Text)
		if f.Do != "" {
			s.hung(20, "%20s%s", "do: ", f.Do)
		}
	}
	if s.wide {
		s.table("", []string{"SEVERITY", "AREA", "OF", "WHAT", "DO"}, rows)
	}
	if v.Errors+v.Unknown == 0 { // else the program's error has it
		s.say("errors: 0, warnings: %d", v.Warnings)
	}
}

func (s *sheet) planned(p view.Planned) {
	asked := ""
	if len(p.Set) > 0 {
		asked = " with " + strings.Join(p.Set, ", ")
	}
	s.say("what %s would do at %s UTC%s; its last evaluation was at %s", contract.AppScaler, moment(p.Plan.At), asked, moment(p.Last))
	for _, text := range slices.Concat(p.Plan.Faults, p.Plan.Others) {
		s.say("to mend: %s", text)
	}
	if len(p.Plan.Actions) == 0 {
		s.say("nothing to do")
	}
	added := slices.Clone(p.New)
	for _, a := range p.Plan.Actions {
		mark := " "
		if i := slices.Index(added, a.Text); i >= 0 {
			mark, added = "+", slices.Delete(added, i, i+1)
		}
		s.say("%s %s", mark, a.Text)
	}
	for _, text := range p.Gone {
		s.say("- %s", text)
	}
	var rows [][]string
	head := []string{"OF", "LAST", "NOW", "WHY"}
	if s.wide {
		head = append(head, "DO")
	}
	for _, c := range p.Changed {
		row := []string{c.Of, dash(string(c.Was)), dash(string(c.Is)), dash(s.text(c.Message))}
		if s.wide {
			row = append(row, dash(c.Do))
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		s.say("every verdict is as it was")
	}
	s.table("Verdicts that change", head, rows)
}

// Package render puts messages into words: a title, a sentence, and facts beside it; or what a
// template of the user's makes of them.
//
//	render.go    what a message says
//	template.go  text/template, with the fields of the Node Termination Handler
package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"windlass.dev/windlass/notifier/delivery"
	"windlass.dev/windlass/notifier/happening"
	"windlass.dev/windlass/pkg/contract"
)

// Message is what every service can show in its way.
type Message struct {
	Title string
	// Text is one sentence, Facts stand beside it. Text is what a template made where Own is set.
	Text     string
	Own      bool
	Facts    []Fact
	Severity happening.Severity
	// Ref is what the service calls the message that this replaces; empty for a new one. Ended:
	// nothing more will come of it.
	Ref   string
	Ended bool
	// ID tells this message of this phase from every other, for services that ask for a name.
	ID string
	// Of is what it is about, for programs; none in a digest.
	Of []happening.Happening
	// Kind is that of what it is about, or "digest".
	Kind string
}

// Fact is a name and a value.
type Fact struct{ Name, Value string }

// Cluster is what a message says of the cluster.
type Cluster struct {
	Name string
	// Nodes is how many Nodes there are; Hourly what they cost in an hour, in US dollars, 0
	// where not known.
	Nodes  int
	Hourly float64
}

// Of puts a message into words.
func Of(m delivery.Message, c Cluster) Message {
	out := Message{Severity: m.Severity(), Ref: m.Ref, Ended: m.Ended(), Of: m.Of, Kind: string(m.Kind())}
	switch {
	case m.Digest != nil:
		out.digest(m.Digest)
	case len(m.Of) == 1:
		out.one(&m.Of[0])
	default:
		out.several(m.Of)
	}
	out.Title, out.Text = contract.OneLine(out.Title), contract.OneLine(out.Text)
	out.ID = id(m)
	out.fact("Cluster", c.Name)
	if c.Nodes > 0 {
		out.fact("Nodes", strconv.Itoa(c.Nodes))
	}
	if m.Digest != nil && c.Hourly > 0 {
		out.fact("Cost", Dollars(c.Hourly)+" an hour")
	}
	return out
}

func id(m delivery.Message) string {
	if m.Digest != nil {
		return "digest-" + m.Digest.Until.UTC().Format(time.RFC3339)
	}
	text := m.Of[0].ID
	revision := 0
	for i := range m.Of {
		revision += m.Of[i].Revision
	}
	return fmt.Sprintf("%s.%d.%d", text, len(m.Of), revision)
}

// fact adds one. What tenants name stands in it, and must not look like other facts.
func (m *Message) fact(name, value string) {
	if value != "" {
		m.Facts = append(m.Facts, Fact{name, contract.OneLine(value)})
	}
}

func (m *Message) moment(name string, at time.Time) {
	if !at.IsZero() {
		m.fact(name, at.UTC().Format(time.RFC3339))
	}
}

// titles of a happening while it lasts, and of its end by phase; the rest is the kind's.
var titles = map[happening.Kind]map[happening.Phase]string{
	happening.ScaleUp:      {happening.Launching: "Scaling up", happening.Ready: "Scaled up", happening.Overdue: "Nodes are not Ready in time", happening.Failed: "Scale-up failed", happening.Over: "Scale-up not seen to its end"},
	happening.ScaleDown:    {happening.Draining: "Scaling down", happening.Terminated: "Scaled down", happening.Cancelled: "Scale-down cancelled"},
	happening.Interruption: {happening.Noticed: "Notice for a node", happening.Draining: "Node drains", happening.Drained: "Node drained", happening.Gone: "Node gone before it was drained", happening.Failed: "Drain failed", happening.Cancelled: "Notice cancelled"},
	happening.DrainBlocked: {happening.Lasting: "Drain blocked", happening.Over: "Drain no longer blocked"},
	happening.LaunchFailed: {happening.Failed: "Launch failed", happening.Over: "Launches fail no more"},
	happening.AtMax:        {happening.Lasting: "Group at its maximum, pods pending", happening.Over: "Group no longer short"},
	happening.Fault:        {happening.Lasting: "Fault", happening.Over: "Fault over"},
}

// Title of a happening.
func Title(h *happening.Happening) string { return cmp.Or(titles[h.Kind][h.Phase], string(h.Kind)) }

func (m *Message) one(h *happening.Happening) {
	m.Title = Title(h)
	switch h.Kind {
	case happening.ScaleUp:
		m.Title += ": " + h.Group
		m.Text = fmt.Sprintf("group %s grows %d→%d", h.Group, h.From, h.To)
		switch h.Phase {
		case happening.Ready:
			m.Text = fmt.Sprintf("group %s grew %d→%d, and all nodes are Ready after %s", h.Group, h.From, h.To, took(h))
		case happening.Overdue:
			m.Text = fmt.Sprintf("group %s grew %d→%d, and after %s some nodes are not Ready", h.Group, h.From, h.To, took(h))
		case happening.Over:
			m.Text = fmt.Sprintf("group %s grew %d→%d, and whether the nodes came could not be seen", h.Group, h.From, h.To)
		case happening.Failed:
			m.Text = fmt.Sprintf("group %s does not grow beyond %d: no node has come in %s", h.Group, h.To, took(h))
		}
		m.fact("Zone", h.Zone)
	case happening.ScaleDown:
		m.scaleDown(h)
	case happening.Interruption:
		m.Title += ": " + h.Node
		m.Text = cmp.Or(h.Text, "notice: "+h.Notice)
		m.fact("Notice", h.Notice)
		m.fact("Instance", h.Instance)
		m.moment("Deadline", h.Deadline)
		if h.Over() && h.Phase == happening.Drained {
			m.fact("Drained in", took(h))
		}
	case happening.DrainBlocked:
		m.Title += ": " + h.Node
		m.Text = cmp.Or(h.Text, "evictions are refused")
		m.fact("Blocked by", strings.Join(h.BlockedBy, ", "))
		m.fact("Pods of", strings.Join(h.For, ", "))
		m.moment("Since", h.Began)
		m.moment("Deadline", h.Deadline)
	case happening.LaunchFailed:
		m.Title += ": " + h.Group
		m.Text = cmp.Or(h.Text, "no cause is known")
		m.fact("Zone", h.Zone)
		if !h.Over() {
			m.moment("Next try", h.Until)
		}
	case happening.AtMax:
		m.Title += ": " + h.Group
		m.Text = cmp.Or(h.Text, "it is at its maximum, and pods are pending that fit its nodes")
		m.fact("Maximum", strconv.Itoa(h.To))
	default:
		m.Text = h.Text
		m.fact("Group", h.Group)
		m.fact("Node", h.Node)
	}
	if h.Pods > 0 {
		m.fact("Pods", counted(h.Pods, h.For))
	}
	if h.Count > 1 {
		m.fact("Times", strconv.Itoa(h.Count))
	}
}

func (m *Message) scaleDown(h *happening.Happening) {
	tally := h.Tally()
	m.Title = fmt.Sprintf("%s: %s", m.Title, cmp.Or(h.Group, "nodes"))
	m.Text = fmt.Sprintf("%s of group %s: %s", nodes(len(h.Members)), h.Group, phases(tally))
	if h.Over() {
		m.Text += ", in " + took(h)
	}
	m.fact("Names", counted(len(h.Members), h.Names))
	if h.Saved > 0 {
		m.fact("Saved", Dollars(h.Saved)+" an hour")
	}
}

// phases counts nodes by phase, in the order in which they come.
func phases(tally map[happening.Phase]int) string {
	var list []string
	for _, p := range []happening.Phase{happening.Draining, happening.Drained, happening.Terminated, happening.Gone, happening.Cancelled, happening.Failed} {
		if n := tally[p]; n > 0 {
			list = append(list, fmt.Sprintf("%d %s", n, p))
		}
	}
	return strings.Join(list, ", ")
}

// several is a burst: one message with a count.
func (m *Message) several(list []happening.Happening) {
	byTitle, groups, names := map[string]int{}, []string(nil), []string(nil)
	var order []string
	for i := range list {
		h := &list[i]
		t := Title(h)
		if byTitle[t] == 0 {
			order = append(order, t)
		}
		byTitle[t]++
		if h.Group != "" && !slices.Contains(groups, h.Group) {
			groups = append(groups, h.Group)
		}
		if h.Node != "" && !slices.Contains(names, h.Node) {
			names = append(names, h.Node)
		}
	}
	m.Title = fmt.Sprintf("%d times %s", len(list), list[0].Kind)
	var parts []string
	for _, t := range order {
		parts = append(parts, fmt.Sprintf("%d× %s", byTitle[t], t))
	}
	m.Text = strings.Join(parts, ", ")
	if len(groups) > 0 {
		m.fact("Groups", counted(len(groups), groups))
	}
	if len(names) > 0 {
		m.fact("Names", counted(len(names), names))
	}
}

func (m *Message) digest(d *delivery.Summary) {
	m.Kind, m.Title = "digest", "Digest of "+d.Until.Sub(d.Since).Round(time.Hour).String()
	m.Text = fmt.Sprintf("%s launched, %s terminated", nodes(d.NodesUp), nodes(d.NodesDown))
	if d.Saved > 0 {
		m.Text += ", which cost " + Dollars(d.Saved) + " an hour"
	}
	for _, kind := range happening.Kinds {
		if n := d.Begun[kind]; n > 0 {
			m.fact(string(kind), strconv.Itoa(n))
		}
	}
	var notices []string
	for kind, n := range d.Notices {
		notices = append(notices, fmt.Sprintf("%d %s", n, kind))
	}
	slices.Sort(notices)
	m.fact("Interruptions", strings.Join(notices, ", "))
	if d.BlockedFor > 0 {
		m.fact("Blocked for", d.BlockedFor.Round(time.Second).String())
	}
	var lasting []string
	for i := range d.Lasting {
		h := &d.Lasting[i]
		lasting = append(lasting, Title(h)+" "+cmp.Or(h.Group, h.Node))
	}
	if len(lasting) > 0 {
		m.fact("Lasting", counted(len(lasting), lasting))
	}
	if d.Shed > 0 {
		m.fact("Without room", strconv.Itoa(d.Shed))
	}
}

// counted is how many there are, and the first of them.
func counted(n int, names []string) string {
	const most = 5
	some := names[:min(len(names), most)]
	switch {
	case len(some) == 0:
		return strconv.Itoa(n)
	case n > len(some):
		return fmt.Sprintf("%d: %s and %d more", n, strings.Join(some, ", "), n-len(some))
	}
	return fmt.Sprintf("%d: %s", n, strings.Join(some, ", "))
}

func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

func took(h *happening.Happening) string { return h.Ended.Sub(h.Began).Round(time.Second).String() }

// Dollars prints money.
func Dollars(d float64) string { return fmt.Sprintf("%.2f $", d) }

// Plain is a message for services that show no more than text.
func (m Message) Plain() string {
	if m.Own {
		return m.Text
	}
	var b strings.Builder
	b.WriteString(m.Title)
	if m.Text != "" {
		b.WriteString("\n" + m.Text)
	}
	for _, f := range m.Facts {
		b.WriteString("\n" + f.Name + ": " + f.Value)
	}
	return b.String()
}

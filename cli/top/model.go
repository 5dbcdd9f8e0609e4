// Package top is the live view: a model of bubbletea, to which a feed tells how the cluster is. It
// asks nobody by itself but through what Options has, and writes only what people confirmed.
//
//	model.go   what is known, selected and asked; what messages do to it
//	keys.go    what keys do
//	rows.go    which nodes are shown, in which order
//	screen.go  all of it as lines of a width
//	cells.go   columns, bars and colours
package top

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"windlass.dev/windlass/cli/table"
	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
)

// World is a moment of a cluster. Who gives it to a model does not change it any more.
type World struct {
	// Lines are the nodes, by name; what is the same as in the last World may be the same line.
	Lines   []*view.NodeLine
	Pending []view.PendingLine
	Groups  []view.Group
	// Recent is what happened last, the latest last.
	Recent []view.Entry
	// Faults are what people should mend.
	Faults []view.Fault
	// Problem is why this may be out of date; empty where all is known.
	Problem string
}

// Hands do to a node what people confirmed, and say what they did.
type Hands interface {
	// Preview is what a drain would do.
	Preview(node string) (view.Previews, error)
	Drain(node string) (said string, err error)
	Hold(node string) (said string, err error)
	// Undo removes the request to drain a node, and the hold.
	Undo(node string) (said string, err error)
}

// Options are what a model begins with.
type Options struct {
	// Why answers about a node or a pod.
	Why func(view.Subject) (view.Why, error)
	// Hands is nil where people may only look.
	Hands Hands
	// Sort is one of Sorts, and Filter as people type it.
	Sort, Filter string
}

// Messages to a model.
type (
	// Changed is the cluster as it is from now on.
	Changed World
	// Caption stands above all else, line by line.
	Caption []string
	// Tick says what time it is.
	Tick time.Time

	told struct {
		text string
		err  error
	}
	answered struct {
		key      int // of Model, when it was asked
		title    string
		answer   any // as in pane
		about    view.Subject
		question *question
		err      error
	}
)

// question is what people confirm or not.
type question struct {
	ask string
	do  func() (said string, err error)
}

// pane stands in place of the rows.
type pane struct {
	title string
	// answer is a text, or an answer of package view.
	answer   any
	about    view.Subject
	question *question
	port     viewport.Model
}

// Model is the view. It is a tea.Model.
type Model struct {
	options       Options
	world         World
	caption       []string
	now           time.Time
	width, height int

	order    int
	reversed bool
	filter   filter
	typed    string // the filter as it stands there
	typing   bool

	shown    []int // into world.Lines
	at       int   // into shown
	selected string
	first    int // of shown that is on the screen
	sums     sums
	drained  map[string]int // the most pods that were left in a drain under way

	onPending bool
	pendingAt int
	waiting   string // the Example of what is selected there

	pane *pane
	said string
	// saidFor is for how many ticks more it stands, and last what was said last.
	saidFor int
	last    string
	// keys counts those that were pressed: an answer is shown to who still waits for it, so that
	// none replaces a question that one is about to say yes to.
	keys int
}

// New is a view that knows nothing yet.
func New(o Options) (*Model, error) {
	m := &Model{options: o}
	if o.Sort != "" {
		if m.order = slices.Index(Sorts(), o.Sort); m.order < 0 {
			return nil, fmt.Errorf("--sort=%q: want one of %s", o.Sort, strings.Join(Sorts(), ", "))
		}
	}
	m.typed, m.filter = o.Filter, newFilter(o.Filter)
	return m, nil
}

// Init is of tea.Model.
func (m *Model) Init() tea.Cmd { return tick() }

// tick keeps the clock and the ages going.
func tick() tea.Cmd { return tea.Tick(time.Second, func(t time.Time) tea.Msg { return Tick(t) }) }

// View is of tea.Model.
func (m *Model) View() tea.View {
	v := tea.NewView(m.Screen())
	v.AltScreen = true
	return v
}

// Update is of tea.Model.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case Changed:
		m.world = World(msg)
		m.rebuild()
	case Caption:
		m.caption = msg
	case Tick:
		m.now = time.Time(msg)
		if m.saidFor--; m.saidFor <= 0 {
			m.said = ""
		}
		return m, tick()
	case told:
		m.say(msg.text, msg.err)
	case answered:
		if msg.key != m.keys {
			break
		}
		if msg.err != nil {
			m.say("", msg.err)
			break
		}
		m.said = ""
		m.open(pane{title: msg.title, answer: msg.answer, about: msg.about, question: msg.question})
	case tea.KeyPressMsg:
		return m, m.key(msg)
	}
	return m, nil
}

// open puts a pane in place of the rows.
func (m *Model) open(p pane) {
	p.port = viewport.New()
	p.port.KeyMap = paneKeys
	m.pane = &p
}

// say shows what came of something in the line for that.
func (m *Model) say(text string, err error) {
	if err != nil {
		text = "error: " + err.Error()
	}
	m.said, m.last, m.saidFor = text, text, saidTicks
}

// saidTicks is how long that hides what else stands in that line.
const saidTicks = 8

// subject is what is selected.
func (m *Model) subject() (view.Subject, bool) {
	switch {
	case m.pane != nil:
		return m.pane.about, m.pane.about.Name != ""
	case m.onPending && m.pendingAt < len(m.world.Pending):
		return view.Subject{Kind: view.KindPod, Name: m.world.Pending[m.pendingAt].Example}, true
	case !m.onPending && len(m.shown) > 0:
		return view.Subject{Kind: view.KindNode, Name: m.selected}, true
	}
	return view.Subject{}, false
}

// node is the selected one, as it is now.
func (m *Model) node() (*view.NodeLine, error) {
	if m.options.Hands == nil {
		return nil, errors.New("here one can only look")
	}
	s, selected := m.subject()
	if !selected || s.Kind != view.KindNode {
		return nil, errors.New("select a node first: tab goes from the pending pods to the nodes")
	}
	at, there := slices.BinarySearchFunc(m.world.Lines, s.Name, func(l *view.NodeLine, name string) int { return strings.Compare(l.Name, name) })
	if !there {
		return nil, fmt.Errorf("there is no node %s any more", s.Name)
	}
	return m.world.Lines[at], nil
}

// ask gets an answer beside the view, which goes on.
func (m *Model) ask(answer func() answered) tea.Cmd {
	key := m.keys
	return func() tea.Msg {
		a := answer()
		a.key = key
		return a
	}
}

// why asks about what is selected.
func (m *Model) why() tea.Cmd {
	s, selected := m.subject()
	if !selected || m.options.Why == nil {
		return nil
	}
	return m.ask(func() answered {
		why, err := m.options.Why(s)
		if err != nil {
			return answered{err: err}
		}
		return answered{title: "why " + s.String(), answer: why, about: s}
	})
}

// drain shows what a drain would do, and asks.
func (m *Model) drain() tea.Cmd {
	n, err := m.node()
	if err != nil {
		m.say("", err)
		return nil
	}
	m.say("reading what a drain of "+view.ShortName(n.Name)+" would do", nil)
	return m.ask(func() answered {
		previews, err := m.options.Hands.Preview(n.Name)
		if err != nil {
			return answered{err: err}
		}
		return confirm(n, "drain", previews, m.options.Hands.Drain)
	})
}

func (m *Model) hold() tea.Cmd {
	n, err := m.node()
	switch {
	case err == nil && n.Hold != "":
		m.say(fmt.Sprintf("node %s is held already, by annotation %s", view.ShortName(n.Name), n.Hold), nil)
		return nil
	case err != nil:
		m.say("", err)
		return nil
	}
	text := "The node is not scaled down until somebody undoes that; a scale-down that is under way is cancelled. Notices of AWS are served all the same."
	return m.ask(func() answered { return confirm(n, "hold", text, m.options.Hands.Hold) })
}

func (m *Model) undo() tea.Cmd {
	n, err := m.node()
	if err != nil {
		m.say("", err)
		return nil
	}
	if n.Requested && n.Drain.Kind == contract.KindScaleDown {
		m.say("node "+view.ShortName(n.Name)+" is scaled down: h holds it, which cancels that", nil)
		return nil
	}
	var text []string
	if n.Requested {
		text = append(text, "The request to drain the node is removed, and its agent undoes what it did.")
	}
	if n.Hold == contract.AnnotationHold {
		text = append(text, "The hold is removed: the node may be scaled down again.")
	}
	if len(text) == 0 {
		m.say("node "+view.ShortName(n.Name)+" has no request to drain it and no hold", nil)
		return nil
	}
	return m.ask(func() answered {
		return confirm(n, "undo that of", strings.Join(text, "\n"), m.options.Hands.Undo)
	})
}

// confirm puts a question below what says what will happen.
func confirm(n *view.NodeLine, what string, answer any, do func(node string) (string, error)) answered {
	q := &question{what + " node " + view.ShortName(n.Name), func() (string, error) { return do(n.Name) }}
	return answered{title: what + " node " + n.Name, answer: answer, about: view.Subject{Kind: view.KindNode, Name: n.Name}, question: q}
}

// printed is an answer as the commands print it, in lines of a width.
func printed(answer any, width int) string {
	text, is := answer.(string)
	if !is {
		var b strings.Builder
		if err := table.Print(&b, false, width, answer); err != nil {
			return err.Error() // a Builder takes everything
		}
		text = b.String()
	}
	return ansi.Wrap(text, width, " ")
}

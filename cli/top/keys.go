package top

import (
	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"
)

func bind(shown, what string, keys ...string) key.Binding {
	return key.NewBinding(key.WithKeys(keys...), key.WithHelp(shown, what))
}

var (
	keyUp      = bind("↑/k", "one up", "up", "k")
	keyDown    = bind("↓/j", "one down", "down", "j")
	keyPageUp  = bind("pgup", "a page up", "pgup")
	keyPageDn  = bind("pgdn", "a page down", "pgdown", "space")
	keyTop     = bind("g/home", "to the first", "g", "home")
	keyBottom  = bind("G/end", "to the last", "G", "end")
	keyTab     = bind("tab", "nodes, pending pods", "tab")
	keyFilter  = bind("/", "filter", "/")
	keySort    = bind("s", "sort", "s")
	keyReverse = bind("r", "reverse the order", "r")
	keyWhy     = bind("enter", "why", "enter")
	keyMore    = bind("m", "more", "m")
	keyDrain   = bind("d", "drain", "d")
	keyUndo    = bind("u", "undo", "u")
	keyHold    = bind("h", "hold", "h")
	keyHelp    = bind("?", "help", "?")
	keyQuit    = bind("q", "quit", "q", "ctrl+c")
	keyBack    = bind("esc", "back", "esc", "q")
	keyYes     = bind("y", "yes", "y")
	keyNo      = bind("n", "no", "n", "esc")
)

// What is offered at the foot, as far as there is room.
var (
	ofRows     = []key.Binding{keyHelp, keyQuit, keyFilter, keySort, keyWhy, keyDrain, keyUndo, keyHold, keyMore, keyTab}
	ofPane     = []key.Binding{keyBack, keyUp, keyDown, keyPageUp, keyPageDn}
	ofQuestion = []key.Binding{keyYes, keyNo, keyUp, keyDown, keyPageUp, keyPageDn}
	all        = [][]key.Binding{
		{keyUp, keyDown, keyPageUp, keyPageDn, keyTop, keyBottom, keyTab},
		{keyFilter, keySort, keyReverse, keyWhy, keyMore, keyHelp, keyQuit},
		{keyDrain, keyUndo, keyHold, keyBack},
	}
)

var paneKeys = viewport.KeyMap{Up: keyUp, Down: keyDown, PageUp: keyPageUp, PageDown: keyPageDn}

func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	m.keys++
	switch {
	case k.String() == "ctrl+c":
		return tea.Quit
	case m.typing:
		m.typeFilter(k)
		return nil
	case m.pane != nil:
		return m.keyInPane(k)
	}
	m.said = ""
	return m.keyInRows(k)
}

func (m *Model) keyInRows(k tea.KeyPressMsg) tea.Cmd {
	page := max(1, m.rowsShown()-1)
	switch {
	case key.Matches(k, keyQuit):
		return tea.Quit
	case key.Matches(k, keyUp):
		m.step(-1)
	case key.Matches(k, keyDown):
		m.step(1)
	case key.Matches(k, keyPageUp):
		m.step(-page)
	case key.Matches(k, keyPageDn):
		m.step(page)
	case key.Matches(k, keyTop):
		m.step(-len(m.shown) - len(m.world.Pending))
	case key.Matches(k, keyBottom):
		m.step(len(m.shown) + len(m.world.Pending))
	case key.Matches(k, keyTab):
		m.onPending = !m.onPending && len(m.world.Pending) > 0
		m.selectPending(m.pendingAt)
	case key.Matches(k, keyFilter):
		m.typing = true
	case key.Matches(k, keySort):
		m.order, m.reversed = (m.order+1)%len(orders), false
		m.rebuild()
	case key.Matches(k, keyReverse):
		m.reversed = !m.reversed
		m.rebuild()
	case key.Matches(k, keyHelp):
		m.open(pane{title: "keys", answer: helpText()})
	case key.Matches(k, keyMore):
		m.open(pane{title: "messages", answer: m.messages()})
	case key.Matches(k, keyBack):
		m.setFilter("")
	default:
		return m.act(k)
	}
	return nil
}

// act is what is done about what is selected.
func (m *Model) act(k tea.KeyPressMsg) tea.Cmd {
	switch {
	case key.Matches(k, keyWhy):
		return m.why()
	case key.Matches(k, keyDrain):
		return m.drain()
	case key.Matches(k, keyUndo):
		return m.undo()
	case key.Matches(k, keyHold):
		return m.hold()
	}
	return nil
}

func (m *Model) keyInPane(k tea.KeyPressMsg) tea.Cmd {
	p := m.pane
	switch {
	case p.question != nil && key.Matches(k, keyYes):
		do := p.question.do
		m.pane = nil
		m.say("writing it", nil)
		return func() tea.Msg {
			said, err := do()
			return told{said, err}
		}
	case p.question != nil && key.Matches(k, keyNo, keyBack):
		m.pane = nil
		m.say("nothing was done", nil)
	case key.Matches(k, keyBack):
		m.pane, m.said = nil, ""
	case p.question == nil && key.Matches(k, keyDrain, keyUndo, keyHold):
		return m.act(k)
	default:
		p.port, _ = p.port.Update(k)
	}
	return nil
}

// typeFilter edits the filter; the rows follow at once.
func (m *Model) typeFilter(k tea.KeyPressMsg) {
	switch k.String() {
	case "enter":
		m.typing = false
	case "esc":
		m.typing = false
		m.setFilter("")
	case "backspace":
		if letters := []rune(m.typed); len(letters) > 0 {
			m.setFilter(string(letters[:len(letters)-1]))
		}
	default:
		if k.Text != "" && len(m.typed) < mostTyped {
			m.setFilter(m.typed + k.Text)
		}
	}
}

// mostTyped is the longest filter.
const mostTyped = 200

func (m *Model) setFilter(text string) {
	m.typed, m.filter = text, newFilter(text)
	m.rebuild()
}

// step moves the selection, among the nodes or the pending pods.
func (m *Model) step(by int) {
	if m.onPending {
		m.selectPending(m.pendingAt + by)
		return
	}
	m.selectAt(m.at + by)
}

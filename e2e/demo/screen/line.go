// Package screen says what a story.State has: as captions of a live view, or as the lines of a log
// that tell what changed from one State to the next. It is pure.
//
//	line.go      text with a tone
//	captions.go  State → what stands above kubectl windlass top
//	log.go       two States → the lines of a log
//	summary.go   Summary → lines
package screen

import (
	"strings"
	"unicode/utf8"
)

// Tone says what a piece of text means, and with colours how it looks.
type Tone int

// Tones of text.
const (
	Plain Tone = iota
	Title
	Faint
	Good
	Bad
)

// sgr is how a terminal is told of a tone.
// https://en.wikipedia.org/wiki/ANSI_escape_code#Select_Graphic_Rendition_parameters
var sgr = map[Tone]string{Title: "1", Faint: "2", Good: "32", Bad: "31"}

// Span is text of one tone.
type Span struct {
	Text string
	Tone Tone
}

// Line is one line.
type Line []Span

func text(tone Tone, s string) Line { return Line{{s, tone}} }

// String is the line without tones.
func (l Line) String() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.Text)
	}
	return strings.TrimRight(b.String(), " ")
}

// Coloured is the line for a terminal with colours.
func (l Line) Coloured() string {
	var b strings.Builder
	for _, s := range l {
		code := sgr[s.Tone]
		if code == "" || strings.TrimSpace(s.Text) == "" {
			b.WriteString(s.Text)
			continue
		}
		b.WriteString("\x1b[" + code + "m" + s.Text + "\x1b[0m")
	}
	return b.String()
}

// clip shortens a text to at most width characters.
func clip(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	if width <= 0 {
		return ""
	}
	return string([]rune(s)[:width-1]) + "…"
}

// pad fills or shortens a text to exactly width characters.
func pad(s string, width int) string {
	s = clip(s, width)
	return s + strings.Repeat(" ", width-utf8.RuneCountInString(s))
}

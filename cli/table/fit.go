package table

import (
	"regexp"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

const (
	// gap is what printers' tables have between columns, and leastColumn how wide one is with it.
	gap, leastColumn = 3, 6
	// leastSentence is how narrow a column of sentences becomes. A terminal that is narrower still
	// breaks lines where it likes.
	leastSentence = 20
)

// fitted are rows, the head first, of a table that is no wider than a terminal, as far as that can
// be: names of nodes are short, and columns of sentences narrow. Names are left whole, because
// people copy them.
func fitted(rows [][]string, columns int, cut bool) [][]string {
	if widths, _ := measure(rows); over(widths, columns) <= 0 {
		return rows
	}
	for _, row := range rows {
		for i := range row {
			row[i] = shortNames(row[i])
		}
	}
	widths, sentences := measure(rows)
	for over(widths, columns) > 0 {
		widest := -1
		for i, width := range widths {
			if sentences[i] && width > leastSentence && (widest < 0 || width > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	var out [][]string
	for _, row := range rows {
		out = append(out, folded(row, widths, cut)...)
	}
	return out
}

// folded is a row in lines whose cells have widths.
func folded(row []string, widths []int, cut bool) [][]string {
	lines := [][]string{make([]string, len(row))}
	for i, text := range row {
		parts := []string{text}
		switch {
		case ansi.StringWidth(text) <= widths[i]:
		case cut:
			parts = []string{ansi.Truncate(text, widths[i], "…")}
		default:
			parts = words(text, widths[i], widths[i])
		}
		for len(lines) < len(parts) {
			lines = append(lines, make([]string, len(row)))
		}
		for k, part := range parts {
			lines[k][i] = part
		}
	}
	return lines
}

// measure is how wide columns are, and which have sentences below their heads.
func measure(rows [][]string) (widths []int, sentences []bool) {
	for at, row := range rows {
		for i, text := range row {
			if i == len(widths) {
				widths, sentences = append(widths, 0), append(sentences, false)
			}
			widths[i] = max(widths[i], ansi.StringWidth(text))
			sentences[i] = sentences[i] || at > 0 && strings.Contains(text, " ")
		}
	}
	return widths, sentences
}

// over is by how much a table is wider than a terminal.
func over(widths []int, columns int) int {
	width := -columns
	for i, w := range widths {
		if i < len(widths)-1 {
			w = max(leastColumn, w+gap)
		}
		width += w
	}
	return width
}

// words is a text in lines of a width, the first of its own, that end between words. A word that is
// longer is broken.
func words(text string, width, first int) (lines []string) {
	line, room := "", first
	for i, word := range strings.Split(text, " ") {
		switch {
		case i == 0:
			line = word
		case ansi.StringWidth(line)+1+ansi.StringWidth(word) <= room:
			line += " " + word
		default:
			lines, line, room = append(lines, line), word, width
		}
		for width > 0 && ansi.StringWidth(line) > room {
			lines, line, room = append(lines, ansi.Truncate(line, room, "")), ansi.TruncateLeft(line, room, ""), width
		}
	}
	return append(lines, line)
}

// internal is the private DNS name of an instance, as view.ShortName has it in a word.
var internal = regexp.MustCompile(`\b([a-z0-9-]+)\.(?:[a-z0-9-]+\.)*internal\b`)

func shortNames(text string) string { return internal.ReplaceAllString(text, "$1") }

package contract

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shorten cuts a text that is to stand on an object to at most limit bytes, without
// breaking a character. What was cut ends with an ellipsis.
func Shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const more = "…"
	end := limit - len(more)
	for end > 0 && !utf8.RuneStart(text[end]) { // what others send may be no text at all
		end--
	}
	return text[:end] + more
}

// OneLine keeps what others have written from breaking a table, from commanding the terminal, and
// from changing the order in which letters are shown.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, text)
}

package contract

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShorten(t *testing.T) {
	const limit = 1024
	for _, text := range []string{"short", strings.Repeat("x", limit), strings.Repeat("x", limit+1), strings.Repeat("ü", 600), strings.Repeat("→", 400)} {
		got := Shorten(text, limit)
		if len(got) > limit || !utf8.ValidString(got) {
			t.Errorf("cut to %d bytes, valid %v", len(got), utf8.ValidString(got))
		}
		if len(text) <= limit && got != text {
			t.Errorf("%q was cut without need", text)
		}
		if len(text) > limit && len(got) < limit-8 {
			t.Errorf("cut to %d bytes: more than needed", len(got))
		}
	}
	if got := Shorten(strings.Repeat("\x80", 2*limit), limit); len(got) > limit {
		t.Errorf("what is no text was cut to %d bytes", len(got))
	}
}

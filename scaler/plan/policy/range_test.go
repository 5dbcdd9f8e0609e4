package policy

import "testing"

func TestParseRange(t *testing.T) {
	for text, want := range map[string]Range{"0:320000": {0, 320_000}, "5:5": {5, 5}} {
		if got, err := ParseRange(text); err != nil || got != want || got.String() != text {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "5", ":", "5:4", "-1:4", "a:b", "1:2:3", "0:9223372036854775807"} {
		if _, err := ParseRange(text); err == nil {
			t.Errorf("%q is a range", text)
		}
	}
}

package contract

import (
	"fmt"
	"strings"
	"time"
)

// Time is a moment to the second, printed as RFC 3339 in UTC. Annotations are
// read by people and compared as strings, so it has exactly one spelling.
type Time struct{ time.Time }

// At drops what Time does not print.
func At(t time.Time) Time {
	if t.IsZero() {
		return Time{}
	}
	return Time{t.UTC().Truncate(time.Second)}
}

// MarshalJSON prints the moment; the zero moment is an empty string.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte(`""`), nil
	}
	return []byte(`"` + t.UTC().Format(time.RFC3339) + `"`), nil
}

// UnmarshalJSON reads RFC 3339; an empty string is the zero moment.
func (t *Time) UnmarshalJSON(in []byte) error {
	text := strings.Trim(string(in), `"`)
	if text == "" || text == "null" {
		*t = Time{}
		return nil
	}
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("time %s is not RFC 3339 such as 2006-01-02T15:04:05Z", quoted(text))
	}
	if !IsDate(parsed) {
		return fmt.Errorf("time %s is not between %d and %d", quoted(text), firstDate.Year(), lastDate.Year())
	}
	*t = At(parsed)
	return nil
}

// Equal reports whether both are the same moment.
func (t Time) Equal(u Time) bool { return t.Time.Equal(u.Time) }

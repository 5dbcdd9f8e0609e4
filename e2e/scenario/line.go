package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"windlass.dev/windlass/pkg/fleet"
)

// line is one line of a scenario, in words.
type line struct {
	verb, name string
	words      []word
}

// word is a flag, with an empty value, or a key with its value.
type word struct{ key, value string }

func (w word) String() string {
	if w.value == "" {
		return w.key
	}
	return w.key + "=" + w.value
}

// Parse reads a scenario into a snapshot.
func Parse(text string) (fleet.Snapshot, error) {
	w := NewWorld()
	if err := w.Apply(text); err != nil {
		return fleet.Snapshot{}, err
	}
	return w.Snapshot, nil
}

// Apply reads further lines into the world. An error names the line and the
// word; the lines before it have been applied.
func (w *World) Apply(text string) error {
	for i, raw := range strings.Split(text, "\n") {
		if err := w.applyLine(raw); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return nil
}

func (w *World) applyLine(raw string) error {
	parts, err := split(raw)
	if err != nil || len(parts) == 0 {
		return err
	}
	l := line{verb: parts[0]}
	apply, ok := verbs[l.verb]
	if !ok {
		return fmt.Errorf("unknown verb %q: want one of %s", l.verb, strings.Join(slices.Sorted(maps.Keys(verbs)), ", "))
	}
	if len(parts) < 2 {
		return fmt.Errorf("%s: what follows is missing", l.verb)
	}
	for _, p := range parts[2:] {
		key, value, _ := strings.Cut(p, "=")
		l.words = append(l.words, word{key, value})
	}
	names, err := expand(parts[1])
	if err != nil {
		return fmt.Errorf("%s: %w", l.verb, err)
	}
	for _, name := range names {
		l.name = name
		if err := apply(w, l); err != nil {
			return fmt.Errorf("%s %s: %w", l.verb, name, err)
		}
	}
	return nil
}

// split cuts a line at its spaces, but not within double quotes, and drops the
// comment.
func split(raw string) ([]string, error) {
	var parts []string
	var part strings.Builder
	quoted, open := false, false
	flush := func() {
		if open {
			parts = append(parts, part.String())
		}
		part.Reset()
		open = false
	}
	for _, r := range raw {
		switch {
		case r == '"':
			quoted, open = !quoted, true
		case r == '#' && !quoted:
			flush()
			return parts, nil
		case (r == ' ' || r == '\t') && !quoted:
			flush()
		default:
			part.WriteRune(r)
			open = true
		}
	}
	if quoted {
		return nil, fmt.Errorf("a quote is not closed")
	}
	flush()
	return parts, nil
}

// expand turns app-1..3 into app-1, app-2 and app-3.
func expand(name string) ([]string, error) {
	before, last, ranged := strings.Cut(name, "..")
	if !ranged {
		return []string{name}, nil
	}
	stem := strings.TrimRight(before, "0123456789")
	from, errFrom := strconv.Atoi(before[len(stem):])
	to, errTo := strconv.Atoi(last)
	if errFrom != nil || errTo != nil || to < from {
		return nil, fmt.Errorf("%q is no range such as app-1..3", name)
	}
	var names []string
	for i := from; i <= to; i++ {
		names = append(names, stem+strconv.Itoa(i))
	}
	return names, nil
}

// table says what each word of a verb does to its thing.
type table[T any] map[string]func(thing *T, value string) error

// apply runs the words of a line.
func (t table[T]) apply(thing *T, words []word) error {
	for _, w := range words {
		set, ok := t[w.key]
		if !ok {
			return fmt.Errorf("unknown word %q: want one of %s", w, strings.Join(slices.Sorted(maps.Keys(t)), ", "))
		}
		if err := set(thing, w.value); err != nil {
			return fmt.Errorf("word %q: %w", w, err)
		}
	}
	return nil
}

// value finds a word's value, empty where it is absent.
func (l line) value(key string) string {
	for _, w := range l.words {
		if w.key == key {
			return w.value
		}
	}
	return ""
}

// without drops words by key.
func (l line) without(keys ...string) []word {
	var words []word
	for _, w := range l.words {
		if !slices.Contains(keys, w.key) {
			words = append(words, w)
		}
	}
	return words
}

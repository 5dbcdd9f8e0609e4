package notice

import (
	"strconv"
	"strings"
	"time"
)

// name makes the id of a notice that the metadata gave. It holds nothing that
// changes from one pass to the next, so that the same notice has the same id in
// every agent of the node.
func name(c Cause, instance string, detail ...string) string {
	return strings.Join(append([]string{string(c), instance}, detail...), ":")
}

// detail is what distinguishes the notices of one cause; empty where there is one
// only.
func detail(id string) string {
	parts := strings.SplitN(id, ":", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[2]
}

// instanceOf is the instance that a notice of the metadata is about.
func instanceOf(id string) string {
	_, rest, _ := strings.Cut(id, ":")
	instance, _, _ := strings.Cut(rest, ":")
	return instance
}

// OfMetadata says by its id which cause a notice has that the instance metadata
// gave; ok is false for the id of a request.
func OfMetadata(id string) (c Cause, ok bool) {
	word, _, cut := strings.Cut(id, ":")
	c = Cause(word)
	if !cut || c.Kind() == "" || c == ScaleDown || c == Request {
		return "", false
	}
	return c, true
}

// stamp prints a moment, for ids and for people.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Quote shortens a body, which may be anything, for use in a message.
func Quote(body string) string {
	const most = 120
	if len(body) > most {
		return strconv.Quote(body[:most]) + "…"
	}
	return strconv.Quote(body)
}

package migrate

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Differences is the page that rows of Change and Item are of.
const Differences = "docs/differences-from-cluster-autoscaler.md"

// Text is the report for people.
func (r Report) Text() string {
	var b strings.Builder
	part := func(title string, items []Item, line func(Item) string) {
		if len(items) == 0 {
			return
		}
		fmt.Fprintf(&b, "%s (%d)\n", title, len(items))
		for _, i := range items {
			fmt.Fprintf(&b, "  %s\n", line(i))
		}
		b.WriteString("\n")
	}
	part("NEEDS A DECISION", r.Decide, Item.inFull)
	part("NOT KNOWN", r.Unknown, Item.inFull)
	part("MEANS THE SAME", r.Same, Item.translated)
	part("NO COUNTERPART, AND NONE IS NEEDED", r.Nothing, Item.explained)
	if len(r.Changes) > 0 {
		fmt.Fprintf(&b, "BEHAVES OTHERWISE (%d)\n", len(r.Changes))
		for _, c := range r.Changes {
			fmt.Fprintf(&b, "  %s: %s", plain(c.Flag), plain(c.What))
			if c.Differs != "" {
				fmt.Fprintf(&b, "; see %q in %s", strings.ReplaceAll(c.Differs, "`", ""), Differences)
			}
			b.WriteString("\n")
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "TO BE DONE BY HAND (%d)\n", len(r.Todo))
	for i, todo := range r.Todo {
		fmt.Fprintf(&b, "  %d. %s\n", i+1, plain(todo))
	}
	return b.String()
}

// given is a thing as it was given, in one line.
func (i Item) given() string {
	what := plain(i.Name)
	if i.Of != "" && i.Name != "" {
		what = "--" + what
	} else if strings.Contains(i.Value, "\n") {
		return what // a value of a chart that has several
	}
	if i.Value != "" && what != "" {
		what += "="
	}
	return what + plain(i.Value)
}

// translated says what it is in Windlass, if that is another word.
func (i Item) translated() string {
	if given := i.given(); given != plain(i.Becomes) {
		return given + " → " + plain(i.Becomes)
	}
	return i.given()
}

func (i Item) explained() string {
	if i.Why == "" {
		return i.given()
	}
	return i.given() + ": " + plain(i.Why)
}

// inFull says where it stands, too, for whoever goes there.
func (i Item) inFull() string {
	if i.Where == "" {
		return i.explained()
	}
	return i.explained() + " (" + plain(i.Where) + ")"
}

// longest is how much of a value is shown; JSON has all of it.
const longest = 300

// plain shows a text that anybody may have written as one line.
func plain(text string) string {
	if letters := []rune(text); len(letters) > longest {
		text = string(letters[:longest]) + "…"
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			quoted := strconv.Quote(text)
			return quoted[1 : len(quoted)-1]
		}
	}
	return text
}

// comments has the report before YAML.
func (r Report) comments(apply string) string {
	var b strings.Builder
	b.WriteString("# Written by windlass-scaler migrate. To apply it: " + apply + ".\n#\n")
	for line := range strings.Lines(r.Text()) {
		b.WriteString(strings.TrimRight("# "+line, " \n") + "\n")
	}
	return b.String()
}

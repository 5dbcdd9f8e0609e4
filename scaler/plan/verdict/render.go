package verdict

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// String is what people read.
func (ds Details) String() string {
	var b strings.Builder
	ds.render(&b, ";")
	return b.String()
}

func (ds Details) render(b *strings.Builder, between string) {
	for i, d := range ds {
		if i > 0 {
			b.WriteString(between + " ")
		}
		d.render(b)
	}
}

// String is the sentence of one detail.
func (d Detail) String() string { return Details{d}.String() }

func (d Detail) render(b *strings.Builder) {
	for rest := d.Template; ; {
		before, after, more := strings.Cut(rest, "{")
		b.WriteString(before)
		if !more {
			return
		}
		var inside string
		inside, rest, _ = strings.Cut(after, "}")
		name, form, _ := strings.Cut(inside, ":")
		write(b, d.Param(name), form)
	}
}

func write(b *strings.Builder, value any, form string) {
	switch v := value.(type) {
	case string:
		b.WriteString(v)
	case int:
		if one, many, words := strings.Cut(form, "|"); words {
			b.WriteString(plural(v, one, many))
			return
		}
		b.WriteString(strconv.Itoa(v))
	case time.Time:
		b.WriteString(ClockTime(v))
	case time.Duration:
		b.WriteString(v.String())
	case []string:
		b.WriteString(named(v, form))
	case Details:
		v.render(b, cmp.Or(form, ";"))
	default:
		fmt.Fprint(b, "{", value, "}") // which no test lets pass
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// named lists names in one of the forms of Detail.
func named(names []string, form string) string {
	between := strings.TrimRight(form, "0123456789")
	if most, err := strconv.Atoi(form[len(between):]); err == nil && len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	switch between {
	case ",":
		return strings.Join(names, ", ")
	case "or":
		return joined(names, " or ")
	}
	return Listed(names)
}

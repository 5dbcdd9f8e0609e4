package verdict

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Detail is one thing that is said of a subject: a template for people, whose placeholders
// name the parameters. What varies is a parameter, so that all details with one template say
// the same of different things.
//
//	{pod}              the value
//	{left:pod|pods}    the word that goes with a number
//	{zones:,}          names between commas, {hooks:or} with "or" before the last
//	{nodes:,3}         the first three of them, and how many more there are
type Detail struct {
	Template string
	Params   []Param
}

// Param is a value under one of the names of params.go: a string, an int, a time.Time, a
// time.Duration, a []string or Details.
type Param struct {
	Name  string
	Value any
}

// Details come one after the other, the most important first; nil says nothing. They are never
// changed once they are made.
type Details []Detail

// Say makes one detail.
func Say(template string, params ...Param) Details {
	return Details{{template, params}}
}

// Quote says what others have said, in their words.
func Quote(cause string) Details { return Say("{cause}", Cause(cause)) }

// QuoteAll quotes each of some; nil where there is none.
func QuoteAll(causes []string) (all Details) {
	for _, cause := range causes {
		all = append(all, Quote(cause)...)
	}
	return all
}

// And goes on with the last detail's sentence.
func (ds Details) And(template string, params ...Param) Details {
	if len(ds) == 0 {
		return Say(template, params...)
	}
	ds = slices.Clone(ds)
	last := &ds[len(ds)-1]
	*last = Detail{last.Template + template, slices.Concat(last.Params, params)}
	return ds
}

// Then says something else after it.
func (ds Details) Then(others ...Details) Details {
	all := slices.Clip(ds)
	for _, other := range others {
		all = append(all, other...)
	}
	return all
}

// With says something else unless that is said already.
func (ds Details) With(others Details) Details {
	all := slices.Clip(ds)
	for _, d := range others {
		if !slices.ContainsFunc(all, d.Equal) {
			all = append(all, d)
		}
	}
	return all
}

// Replaced says one detail by another, also where it is part of a third.
func (ds Details) Replaced(was, by Detail) Details {
	ds = slices.Clone(ds)
	for i, d := range ds {
		if d.Equal(was) {
			ds[i] = by
			continue
		}
		ds[i].Params = slices.Clone(d.Params)
		for j, p := range d.Params {
			if inner, nested := p.Value.(Details); nested {
				ds[i].Params[j].Value = inner.Replaced(was, by)
			}
		}
	}
	return ds
}

// Sorted puts them in the order of their sentences.
func (ds Details) Sorted() Details {
	ds = slices.Clone(ds)
	slices.SortFunc(ds, func(a, b Detail) int { return strings.Compare(a.String(), b.String()) })
	return ds
}

// FirstOf is the first that says something.
func FirstOf(all ...Details) Details {
	for _, ds := range all {
		if ds != nil {
			return ds
		}
	}
	return nil
}

// Equal reports whether both say the same, of the same things.
func (ds Details) Equal(others Details) bool {
	if len(ds) > 0 && len(ds) == len(others) && &ds[0] == &others[0] {
		return true
	}
	return slices.EqualFunc(ds, others, Detail.Equal)
}

// Equal says so of one.
func (d Detail) Equal(other Detail) bool {
	if d.Template != other.Template || len(d.Params) != len(other.Params) {
		return false
	}
	for _, p := range d.Params {
		if !equalValues(p.Value, other.Param(p.Name)) {
			return false
		}
	}
	return true
}

func equalValues(a, b any) bool {
	switch a := a.(type) {
	case time.Time:
		b, same := b.(time.Time)
		return same && a.Equal(b)
	case []string:
		b, same := b.([]string)
		return same && slices.Equal(a, b)
	case Details:
		b, same := b.(Details)
		return same && a.Equal(b)
	}
	return a == b
}

// Param is the value under a name; nil where there is none.
func (d Detail) Param(name string) any {
	for _, p := range d.Params {
		if p.Name == name {
			return p.Value
		}
	}
	return nil
}

// Placeholders are the names in a template, each once.
func Placeholders(template string) []string {
	var names []string
	for _, part := range strings.Split(template, "{")[1:] {
		inside, _, _ := strings.Cut(part, "}")
		name, _, _ := strings.Cut(inside, ":")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// detailJSON is a detail as programs read it.
type detailJSON struct {
	Template string                     `json:"template"`
	Params   map[string]json.RawMessage `json:"params,omitempty"`
}

// MarshalJSON writes moments as RFC 3339 in UTC, and durations as Go prints them.
func (d Detail) MarshalJSON() ([]byte, error) {
	out := detailJSON{Template: d.Template, Params: make(map[string]json.RawMessage, len(d.Params))}
	for _, p := range d.Params {
		value := p.Value
		switch v := value.(type) {
		case time.Time:
			value = v.UTC().Format(time.RFC3339)
		case time.Duration:
			value = v.String()
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", p.Name, err)
		}
		out.Params[p.Name] = text
	}
	return json.Marshal(out)
}

// UnmarshalJSON refuses what could not be rendered.
func (d *Detail) UnmarshalJSON(text []byte) error {
	var in detailJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	names := Placeholders(in.Template)
	*d = Detail{Template: in.Template}
	for _, name := range names {
		value, err := parseValue(name, in.Params[name])
		if err != nil {
			return fmt.Errorf("template %q: %w", in.Template, err)
		}
		d.Params = append(d.Params, Param{name, value})
	}
	for name := range in.Params {
		if !slices.Contains(names, name) {
			return fmt.Errorf("template %q has no place for the parameter %s", in.Template, name)
		}
	}
	return nil
}

func parseValue(name string, text json.RawMessage) (any, error) {
	w, known := vocabulary[name]
	switch {
	case !known:
		return nil, fmt.Errorf("no parameter is called %q: see docs/reference/verdict-details.md", name)
	case text == nil:
		return nil, fmt.Errorf("the parameter %s is missing", name)
	}
	value, err := w.Kind.parse(text)
	if err != nil {
		return nil, fmt.Errorf("parameter %s: %w", name, err)
	}
	return value, nil
}

package notice

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// ParseResponses reads what people say about notices, over DefaultResponses.
//
//	policies     WORD=ignore, WORD=cordon, WORD=drain or WORD=drain@LEAD
//	lastChances  WORD=leave or WORD=delete
//
// WORD is a cause, or a kind, which stands for all of its causes; a cause's own
// word wins over its kind's, in whatever order they come. A drain without LEAD
// begins at once, one with it that long before the deadline. Drain requests are
// wishes to drain: they take no policy, but a last chance.
//
// The error names everything that is wrong, and the words that there are.
func ParseResponses(policies, lastChances []string) (Responses, error) {
	responses := DefaultResponses()
	return responses, errors.Join(
		responses.set("notice policy", policies, setDeed),
		responses.set("last chance", lastChances, setLastChance),
	)
}

// setter changes the response to a cause as a value says.
type setter func(c Cause, r Response, value string) (Response, error)

// set applies a list of WORD=VALUE.
func (r Responses) set(what string, list []string, change setter) error {
	values, err := split(what, list)
	errs := []error{err}
	for _, kindFirst := range []bool{true, false} {
		for _, word := range slices.Sorted(maps.Keys(values)) {
			causes, isKind := causesOf(word)
			if isKind != kindFirst {
				continue
			}
			errs = append(errs, r.setAll(what, word, values[word], causes, change))
		}
	}
	return errors.Join(errs...)
}

func (r Responses) setAll(what, word, value string, causes []Cause, change setter) error {
	for _, c := range causes {
		response, err := change(c, r[c], value)
		if err != nil {
			return fmt.Errorf("%s %q: %w", what, word+"="+value, err)
		}
		r[c] = response
	}
	return nil
}

// split cuts each of a list in word and value. Each word may stand there once.
func split(what string, list []string) (map[string]string, error) {
	values := map[string]string{}
	var errs []error
	for _, entry := range list {
		word, value, ok := strings.Cut(strings.TrimSpace(entry), "=")
		causes, _ := causesOf(word)
		before, twice := values[word]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("%s %q has no value: want WORD=VALUE", what, entry))
		case len(causes) == 0:
			errs = append(errs, fmt.Errorf("%s %q: nothing is called %q: want one of %s", what, entry, word, strings.Join(words(), ", ")))
		case twice && before != value:
			errs = append(errs, fmt.Errorf("%s: %q is both %q and %q: want one of them", what, word, before, value))
		default:
			values[word] = value
		}
	}
	return values, errors.Join(errs...)
}

// causesOf a word, in order of their spelling; none for an unknown one. A word
// that is a cause stands for itself alone.
func causesOf(word string) (causes []Cause, isKind bool) {
	if Cause(word).Kind() != "" {
		return []Cause{Cause(word)}, false
	}
	for _, c := range Causes() {
		if string(c.Kind()) == word {
			causes = append(causes, c)
		}
	}
	return causes, len(causes) > 0
}

// words lists all that a policy may be for.
func words() []string {
	var list []string
	for c, kind := range kinds {
		list = append(list, string(c), string(kind))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func setDeed(c Cause, r Response, value string) (Response, error) {
	if c == ScaleDown || c == Request {
		return r, errors.New("a drain request is a wish to drain and takes no policy; to keep a node, write " + contract.AnnotationHold + " on it")
	}
	deed, lead, timed := strings.Cut(value, "@")
	r.Do, r.Lead = Deed(deed), 0
	switch {
	case r.Do != Ignore && r.Do != Cordon && r.Do != Drain:
		return r, fmt.Errorf("%q is nothing that can be done: want %s, %s, %s or %s@LEAD", deed, Ignore, Cordon, Drain, Drain)
	case !timed:
		return r, nil
	case r.Do != Drain:
		return r, fmt.Errorf("only a drain is done by a time: want %s, or %s@LEAD", deed, Drain)
	case !c.dated():
		return r, fmt.Errorf("a notice of %s has no deadline to be ahead of: want %s", c, Drain)
	}
	var err error
	r.Lead, err = parseLead(lead)
	return r, err
}

func parseLead(value string) (time.Duration, error) {
	lead, err := time.ParseDuration(value)
	if err != nil || lead <= 0 {
		return 0, fmt.Errorf("the lead %q is not a duration such as 30m", value)
	}
	return lead, nil
}

// dated reports whether notices of the cause have a deadline from the start.
func (c Cause) dated() bool {
	return c.Kind() == contract.KindSpot || c.Kind() == contract.KindMaintenance
}

func setLastChance(_ Cause, r Response, value string) (Response, error) {
	r.LastChance = LastChance(value)
	if r.LastChance != Leave && r.LastChance != Delete {
		return r, fmt.Errorf("%q is no last chance: want %s or %s", value, Leave, Delete)
	}
	return r, nil
}

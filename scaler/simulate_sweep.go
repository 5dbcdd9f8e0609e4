package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/scaler/simulate"
)

// mostCombinations bounds a sweep: each takes as long as a simulation.
const mostCombinations = 64

// readSweep reads a file of flags with several values each, and combines them all. In a list
// within the list are the values of a flag that is given several times.
func readSweep(file string) ([]simulate.Variant, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var given map[string]any
	if err := yaml.UnmarshalStrict(text, &given); err != nil {
		return nil, err
	}
	choices := map[string][]any{}
	for written, value := range given {
		name := string(normalize(nil, strings.TrimLeft(written, "-")))
		if _, twice := choices[name]; twice {
			return nil, fmt.Errorf("--%s is there under two names", name)
		}
		values, several := value.([]any)
		if !several {
			values = []any{value}
		}
		if choices[name], err = distinct(values); err != nil {
			return nil, fmt.Errorf("--%s: %w", name, err)
		}
	}
	return combined(choices)
}

// distinct refuses an empty list, and a value that is there twice.
func distinct(values []any) ([]any, error) {
	seen := map[string]bool{}
	for _, v := range values {
		text := valueText(v)
		if seen[text] {
			return nil, fmt.Errorf("the value %s is there twice", text)
		}
		seen[text] = true
	}
	if len(values) == 0 {
		return nil, errors.New("want at least one value")
	}
	return values, nil
}

// valueText is a value as the report shows it.
func valueText(value any) string {
	several, is := value.([]any)
	if !is {
		return plain(value)
	}
	var parts []string
	for _, v := range several {
		parts = append(parts, plain(v))
	}
	return strings.Join(parts, ",")
}

// combined are all combinations, the values of the last flag changing first.
func combined(choices map[string][]any) ([]simulate.Variant, error) {
	names := slices.Sorted(maps.Keys(choices))
	count := 1
	for _, name := range names {
		if count *= len(choices[name]); count > mostCombinations {
			return nil, fmt.Errorf("there are more than %d combinations of values: want fewer values, or several sweeps", mostCombinations)
		}
	}
	if count == 1 {
		return nil, errors.New("want several values of a flag, as expander: [price, least-waste]; --compare takes files of single ones")
	}
	var variants []simulate.Variant
	for n := range count {
		given, swept := map[string]any{}, map[string]string{}
		var shown []string
		for i, rest := len(names)-1, n; i >= 0; i-- {
			values := choices[names[i]]
			v := values[rest%len(values)]
			rest /= len(values)
			given[names[i]] = v
			if len(values) > 1 {
				swept[names[i]] = valueText(v)
				shown = append(shown, names[i]+"="+valueText(v))
			}
		}
		slices.Reverse(shown)
		name := strings.Join(shown, " ")
		p, words, err := policyOf(given)
		if err != nil {
			return nil, fmt.Errorf("combination %s: %w", name, err)
		}
		variants = append(variants, simulate.Variant{Name: name, Policy: p, Flags: words, Swept: swept})
	}
	return variants, nil
}

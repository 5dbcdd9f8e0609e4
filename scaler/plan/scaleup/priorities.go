package scaleup

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"sigs.k8s.io/yaml"
)

// tier is the groups of one priority.
type tier struct {
	priority int
	names    []*regexp.Regexp
}

func (t tier) has(group string) bool {
	return slices.ContainsFunc(t.names, func(r *regexp.Regexp) bool { return r.MatchString(group) })
}

// parsePriorities reads what Cluster Autoscaler's priority expander reads: for each
// priority a list of regular expressions, of which one must be found in the
// group's name. The result has the highest priority first.
// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/expander/priority/readme.md
func parsePriorities(text string) ([]tier, error) {
	var read map[string][]string
	if err := yaml.UnmarshalStrict([]byte(text), &read); err != nil {
		return nil, fmt.Errorf("it is no list of names for each priority: %w", err)
	}
	if len(read) == 0 {
		return nil, fmt.Errorf("it names no priority")
	}
	var tiers []tier
	for key, patterns := range read {
		priority, err := strconv.Atoi(key)
		if err != nil {
			return nil, fmt.Errorf("%q is no priority: want a whole number", key)
		}
		t := tier{priority: priority}
		for _, p := range patterns {
			r, err := regexp.Compile(p)
			if err != nil {
				return nil, fmt.Errorf("of priority %d: %w", priority, err)
			}
			t.names = append(t.names, r)
		}
		tiers = append(tiers, t)
	}
	slices.SortFunc(tiers, func(a, b tier) int { return cmp.Compare(b.priority, a.priority) })
	return tiers, nil
}

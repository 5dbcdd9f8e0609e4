package fit

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// selector selects pods by namespace and labels.
type selector struct {
	key        string
	namespaces []string // in order
	// among are further namespaces, by their labels.
	among labels.Selector
	pods  labels.Selector
}

// selectors are all that pods of the cluster select others by. They are found by a
// label that a selected pod must have, so that to match a pod costs by its labels
// and not by the selectors.
type selectors struct {
	list    []*selector
	byKey   map[string]int
	byLabel map[label][]int
	// others demand no label of a certain value.
	others []int
	sets   map[string]*matches
}

type label struct{ key, value string }

// matches is a set of selectors, in ascending order. Equal sets are the same.
type matches struct{ ids []int }

func (m *matches) has(id int) bool {
	_, has := slices.BinarySearch(m.ids, id)
	return has
}

func newSelectors() *selectors {
	return &selectors{byKey: map[string]int{}, byLabel: map[label][]int{}, sets: map[string]*matches{"": {}}}
}

// of numbers a selector.
func (s *selectors) of(sel selector) int {
	slices.Sort(sel.namespaces)
	sel.namespaces = slices.Compact(sel.namespaces)
	sel.key = fmt.Sprintf("%s|%s|%s", strings.Join(sel.namespaces, ","), textOf(sel.among), textOf(sel.pods))
	if id, known := s.byKey[sel.key]; known {
		return id
	}
	id := len(s.list)
	s.list = append(s.list, &sel)
	s.byKey[sel.key] = id
	s.index(id, sel.pods)
	return id
}

func (s *selectors) index(id int, pods labels.Selector) {
	requirements, selectable := pods.Requirements()
	if !selectable {
		return // it selects nothing
	}
	for _, r := range requirements {
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			for value := range r.Values() {
				at := label{r.Key(), value}
				s.byLabel[at] = append(s.byLabel[at], id)
			}
			return
		}
	}
	s.others = append(s.others, id)
}

// matching finds all selectors that select a pod.
func (s *selectors) matching(namespace string, set labels.Set, namespaces map[string]map[string]string) *matches {
	if len(s.list) == 0 {
		return s.sets[""]
	}
	var ids []int
	take := func(candidates []int) {
		for _, id := range candidates {
			if s.list[id].selects(namespace, set, namespaces) {
				ids = append(ids, id)
			}
		}
	}
	take(s.others)
	for key, value := range set {
		take(s.byLabel[label{key, value}])
	}
	slices.Sort(ids)
	text := fmt.Sprint(ids)
	if len(ids) == 0 {
		text = ""
	}
	known, ok := s.sets[text]
	if !ok {
		known = &matches{ids}
		s.sets[text] = known
	}
	return known
}

func (s *selector) selects(namespace string, set labels.Set, namespaces map[string]map[string]string) bool {
	if _, named := slices.BinarySearch(s.namespaces, namespace); !named {
		// A namespace that there is not counts as one without labels.
		if !s.among.Matches(labels.Set(namespaces[namespace])) {
			return false
		}
	}
	return s.pods.Matches(set)
}

// textOf is canonical; Nothing and Everything both print as nothing otherwise.
func textOf(s labels.Selector) string {
	if _, selectable := s.Requirements(); !selectable {
		return "nothing"
	}
	return s.String()
}

// forPeople names what a selector selects.
func forPeople(s labels.Selector) string {
	if s.Empty() {
		return "any pod"
	}
	return textOf(s)
}

// parsed reads a selector; nil selects nothing.
func parsed(s *metav1.LabelSelector) (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(s)
}

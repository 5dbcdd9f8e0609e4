// Package script is the part of the end-to-end scripts' language that asks
// questions about API objects: which objects, what must hold of them, how many.
//
//	await pods -l app=web count==5 .status.phase==Running
//	await node/$NODE .spec.unschedulable==true 'annotation:windlass.dev/drain-report=~Drained'
//	await node/$NODE gone
package script

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
)

// Query asks about the objects of one kind.
type Query struct {
	// Kind is a resource as kubectl takes it: pods, po, deployments.apps.
	Kind string
	// Name of one object; "" means all that the selector selects.
	Name      string
	Namespace string // "" means default
	AllSpaces bool
	Selector  string

	// Conditions must all hold of an object for it to match.
	Conditions []Condition
	// Count is compared with how many objects match; nil asks for at least one,
	// or for the one that is named.
	Count *Comparison
	// All asks that every selected object match, besides Count.
	All bool
	// As names a variable for the names of the matching objects; "" is none.
	As string
}

// Condition compares one value of an object.
type Condition struct {
	// Path is a JSON path such as .spec.replicas, or one of annotation:KEY,
	// label:KEY, condition:TYPE (its status) and taint:KEY (value:effect).
	Path string
	Comparison
}

// Comparison is an operator with its right side.
type Comparison struct {
	Op    string // ==, !=, >=, <=, =~ or !~
	Value string
}

var operators = []string{"==", "!=", ">=", "<=", "=~", "!~"}

// Usage is how Parse wants its words.
const Usage = "KIND[/NAME] [-n NAMESPACE | -A] [-l SELECTOR] [-as VARIABLE] [all] [gone] [count==N] [PATH==VALUE...]; operators: == != >= <= =~ !~"

// Parse reads a query from the words of a command.
func Parse(words []string) (Query, error) {
	var q Query
	if len(words) == 0 {
		return q, fmt.Errorf("no kind; want %s", Usage)
	}
	q.Kind, q.Name, _ = strings.Cut(words[0], "/")
	for i := 1; i < len(words); i++ {
		flags := map[string]*string{"-n": &q.Namespace, "-l": &q.Selector, "-as": &q.As}
		if value := flags[words[i]]; value != nil {
			if i++; i == len(words) {
				return q, fmt.Errorf("%s without a value", words[i-1])
			}
			*value = words[i]
			continue
		}
		switch words[i] {
		case "-A":
			q.AllSpaces = true
		case "all":
			q.All = true
		case "gone":
			q.Count = &Comparison{Op: "==", Value: "0"}
		default:
			if err := q.addComparison(words[i]); err != nil {
				return q, err
			}
		}
	}
	return q, nil
}

func (q *Query) addComparison(word string) error {
	left, comparison, err := ParseComparison(word)
	if err != nil {
		return err
	}
	c := Condition{Path: left, Comparison: comparison}
	if c.Path == "count" {
		q.Count = &c.Comparison
		return nil
	}
	if _, err := c.value(map[string]any{}); err != nil {
		return fmt.Errorf("%q: %w", word, err)
	}
	q.Conditions = append(q.Conditions, c)
	return nil
}

// ParseComparison reads LEFT==VALUE, with any of the operators.
func ParseComparison(word string) (left string, c Comparison, err error) {
	at, op := findOperator(word)
	if op == "" {
		return "", c, fmt.Errorf("%q is no comparison; want LEFT==VALUE with one of %s", word, strings.Join(operators, " "))
	}
	c = Comparison{Op: op, Value: word[at+len(op):]}
	if err := c.check(); err != nil {
		return "", c, fmt.Errorf("%q: %w", word, err)
	}
	return word[:at], c, nil
}

// findOperator finds the first operator that is not inside the brackets of a
// JSON path's filter.
func findOperator(word string) (at int, op string) {
	depth := 0
	for i := range word {
		switch word[i] {
		case '[':
			depth++
		case ']':
			depth--
		}
		for _, o := range operators {
			if depth == 0 && i > 0 && strings.HasPrefix(word[i:], o) {
				return i, o
			}
		}
	}
	return 0, ""
}

func (c Comparison) check() error {
	switch c.Op {
	case "=~", "!~":
		_, err := regexp.Compile(c.Value)
		return err
	case ">=", "<=":
		_, err := strconv.ParseFloat(c.Value, 64)
		return err
	}
	return nil
}

// Holds compares; a left side that is no number is neither >= nor <= one.
func (c Comparison) Holds(left string) bool {
	switch c.Op {
	case "==":
		return left == c.Value
	case "!=":
		return left != c.Value
	case "=~", "!~":
		matched, err := regexp.MatchString("(?s)"+c.Value, left)
		return err == nil && matched == (c.Op == "=~")
	}
	l, errLeft := strconv.ParseFloat(left, 64)
	r, errRight := strconv.ParseFloat(c.Value, 64)
	if errLeft != nil || errRight != nil {
		return false
	}
	if c.Op == ">=" {
		return l >= r
	}
	return l <= r
}

// value reads the left side of a condition; what is not there is "".
func (c Condition) value(object map[string]any) (string, error) {
	kind, key, short := strings.Cut(c.Path, ":")
	if short && !strings.HasPrefix(c.Path, ".") {
		switch kind {
		case "annotation", "label":
			m, _, err := unstructured.NestedStringMap(object, "metadata", kind+"s")
			return m[key], err
		case "condition":
			return find(object, []string{"status", "conditions"}, "type", key, func(m map[string]any) string { return text(m["status"]) })
		case "taint":
			return find(object, []string{"spec", "taints"}, "key", key, func(m map[string]any) string { return text(m["value"]) + ":" + text(m["effect"]) })
		}
		return "", fmt.Errorf("unknown left side %q", c.Path)
	}
	if !strings.HasPrefix(c.Path, ".") {
		return "", fmt.Errorf("left side %q: want a JSON path such as .spec.replicas, or annotation:, label:, condition: or taint: with a key", c.Path)
	}
	path := jsonpath.New("").AllowMissingKeys(true)
	if err := path.Parse("{" + c.Path + "}"); err != nil {
		return "", err
	}
	results, err := path.FindResults(object)
	if err != nil {
		return "", nil //nolint:nilerr // a path through something that is not there yet
	}
	var values []string
	for _, list := range results {
		for _, v := range list {
			values = append(values, text(v.Interface()))
		}
	}
	return strings.Join(values, " "), nil
}

// find returns what a list of maps holds under a key, once for every match.
func find(object map[string]any, list []string, key, want string, read func(map[string]any) string) (string, error) {
	items, _, err := unstructured.NestedSlice(object, list...)
	var values []string
	for _, item := range items {
		if m, ok := item.(map[string]any); ok && m[key] == want {
			values = append(values, read(m))
		}
	}
	return strings.Join(values, " "), err
}

// text shows a value as kubectl's jsonpath does: strings bare, all else as JSON.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// Answer is what a query finds in a list of selected objects.
type Answer struct {
	Holds   bool
	Matched []*unstructured.Unstructured // by namespace and name
	// Seen says of every selected object what its values were; for messages.
	Seen []string
}

// Answer looks at the objects that the query selects.
func (q Query) Answer(objects []*unstructured.Unstructured) Answer {
	objects = slices.SortedFunc(slices.Values(objects), func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	var a Answer
	for _, o := range objects {
		matches, seen := q.matches(o)
		if matches {
			a.Matched = append(a.Matched, o)
		}
		a.Seen = append(a.Seen, seen)
	}
	n := len(a.Matched)
	switch {
	case q.Count != nil:
		a.Holds = q.Count.Holds(strconv.Itoa(n))
	default:
		a.Holds = n > 0
	}
	if q.All && n < len(objects) {
		a.Holds = false
	}
	return a
}

func (q Query) matches(o *unstructured.Unstructured) (ok bool, seen string) {
	ok = true
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s", strings.ToLower(o.GetKind()), o.GetName())
	for _, c := range q.Conditions {
		left, err := c.value(o.Object)
		if err != nil {
			left = "error: " + err.Error()
		}
		holds := err == nil && c.Holds(left)
		ok = ok && holds
		mark := "✓"
		if !holds {
			mark = "✗"
		}
		fmt.Fprintf(&b, "  %s %s is %q", mark, c.Path, left)
	}
	return ok, b.String()
}

// Names lists the names of the objects that matched.
func (a Answer) Names() []string {
	names := make([]string, 0, len(a.Matched))
	for _, o := range a.Matched {
		names = append(names, o.GetName())
	}
	return names
}

// Read returns the value of a path in an object, as conditions see it.
func Read(o *unstructured.Unstructured, path string) (string, error) {
	return Condition{Path: path}.value(o.Object)
}

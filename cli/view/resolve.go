package view

import (
	"fmt"
	"slices"
	"strings"
)

// Subject is what a question is about. Name is namespace/name for a pod.
type Subject struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

func (s Subject) String() string { return ref(s.Kind, s.Name) }

// kinds are the words that stand before a name.
var kinds = map[string]string{
	"pod": KindPod, "pods": KindPod, "po": KindPod,
	"node": KindNode, "nodes": KindNode, "no": KindNode,
	"group": KindGroup, "groups": KindGroup, "asg": KindGroup,
}

// Parse reads kind/name, namespace/name of a pod, or a name; a pod without a namespace is of
// the one given. Without a kind there are several candidates: those that exist are meant.
func Parse(text, namespace string) ([]Subject, error) {
	inNamespace := func(name string) string {
		if strings.Contains(name, "/") {
			return name
		}
		return namespace + "/" + name
	}
	first, rest, two := strings.Cut(text, "/")
	kind, named := kinds[first]
	switch {
	case text == "" || two && (first == "" || rest == "") || strings.Count(text, "/") > 2:
		return nil, fmt.Errorf("%q: want pod/NAME, node/NAME, group/NAME, NAMESPACE/POD or a name", text)
	case two && named && kind == KindPod:
		return []Subject{{KindPod, inNamespace(rest)}}, nil
	case two && named:
		return []Subject{{kind, rest}}, nil
	case two:
		return []Subject{{KindPod, text}}, nil
	}
	return []Subject{{KindPod, inNamespace(text)}, {KindNode, text}, {KindGroup, text}}, nil
}

// Named has candidates with the whole names of nodes that are named by their hosts, as ip-10-0-1-2,
// which is how tables and top show them. A name that several have stays as it is.
func (w *World) Named(candidates []Subject) []Subject {
	out := slices.Clone(candidates)
	for i, s := range out {
		if s.Kind != KindNode || w.nodeVerdict(s.Name) != nil {
			continue
		}
		var found []string
		for _, n := range w.Verdicts.Nodes {
			if ShortName(n.Name) == s.Name {
				found = append(found, n.Name)
			}
		}
		if len(found) == 1 {
			out[i].Name = found[0]
		}
	}
	return out
}

// Exists reports whether the world has a subject, so that something can be said of it.
func (w *World) Exists(s Subject) bool {
	switch s.Kind {
	case KindPod:
		return w.podVerdict(s.Name) != nil || w.pod(s.Name) != nil
	case KindNode:
		return w.nodeVerdict(s.Name) != nil || w.node(s.Name) != nil
	}
	return w.groupVerdict(s.Name) != nil
}

// Resolve finds the one of several candidates that exists.
func (w *World) Resolve(text string, candidates []Subject) (Subject, error) {
	found := slices.DeleteFunc(slices.Clone(candidates), func(s Subject) bool { return !w.Exists(s) })
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		var tried []string
		for _, c := range candidates {
			tried = append(tried, c.String())
		}
		return Subject{}, fmt.Errorf("there is no %s; -n names the namespace of a pod", strings.Join(tried, ", and no "))
	}
	var names []string
	for _, f := range found {
		names = append(names, f.String())
	}
	return Subject{}, fmt.Errorf("%q is the name of %d things: say %s", text, len(found), strings.Join(names, " or "))
}

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// variant is what an object, or a part of it, is under a condition.
type variant struct {
	when string
	node *yaml.Node
}

// merge is base with, under its condition, what each variant has differently. The conditions
// are keys or items that are directives of Helm; encode makes lines of their own of them.
func merge(base *yaml.Node, variants []variant) (*yaml.Node, error) {
	out := *base
	var err error
	switch base.Kind {
	case yaml.MappingNode:
		out.Content, err = mergeMapping(base, variants)
	case yaml.SequenceNode:
		out.Content, err = mergeSequence(base, variants)
	}
	return &out, err
}

func mergeMapping(base *yaml.Node, variants []variant) (content []*yaml.Node, err error) {
	for key, value := range entries(base) {
		var changed []variant
		for _, v := range variants {
			if its := lookup(v.node, key.Value); its == nil || !equal(its, value) {
				changed = append(changed, variant{v.when, its})
			}
		}
		switch {
		case len(changed) == 0:
			content = append(content, key, value)
		case value.Kind != yaml.ScalarNode && !slices.ContainsFunc(changed, func(v variant) bool { return v.node == nil || v.node.Kind != value.Kind }):
			merged, err := merge(value, changed)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key.Value, err)
			}
			content = append(content, key, merged)
		default:
			content = append(content, alternatives(key, value, changed)...)
		}
	}
	for _, key := range added(base, variants) {
		var adders []variant
		var whens []string
		for _, v := range variants {
			if its := lookup(v.node, key.Value); its != nil {
				adders, whens = append(adders, variant{v.when, its}), append(whens, v.when)
			}
		}
		value := adders[0].node
		if len(adders) > 1 {
			if slices.ContainsFunc(adders, func(v variant) bool { return v.node.Kind == yaml.ScalarNode }) {
				return nil, fmt.Errorf("%s: it is added under several conditions, %s", key.Value, strings.Join(whens, " and "))
			}
			if value, err = merge(&yaml.Node{Kind: value.Kind, Tag: value.Tag}, adders); err != nil {
				return nil, fmt.Errorf("%s: %w", key.Value, err)
			}
		}
		if isDirective(key) {
			value = nothing()
		}
		content = append(content, begin(whens), nothing(), key, value, end(), nothing())
	}
	return content, nil
}

// alternatives are an entry that is one thing under one condition, and another under another.
func alternatives(key, otherwise *yaml.Node, changed []variant) (content []*yaml.Node) {
	if len(changed) == 1 && changed[0].node == nil {
		return []*yaml.Node{directive("{{- if not " + changed[0].when + " }}"), nothing(), key, otherwise, end(), nothing()}
	}
	for i, v := range changed {
		open := "{{- if "
		if i > 0 {
			open = "{{- else if "
		}
		content = append(content, directive(open+v.when+" }}"), nothing())
		if v.node != nil {
			content = append(content, key, v.node)
		}
	}
	return append(content, directive("{{- else }}"), nothing(), key, otherwise, end(), nothing())
}

// mergeSequence takes variants that have all that base has, and more at their end.
func mergeSequence(base *yaml.Node, variants []variant) (content []*yaml.Node, err error) {
	for i, item := range base.Content {
		var changed []variant
		for _, v := range variants {
			if len(v.node.Content) < len(base.Content) || v.node.Content[i].Kind != item.Kind {
				return nil, fmt.Errorf("under the condition %s the list has other items, and not only more", v.when)
			}
			if !equal(v.node.Content[i], item) {
				changed = append(changed, variant{v.when, v.node.Content[i]})
			}
		}
		if len(changed) > 0 {
			if item.Kind == yaml.ScalarNode {
				return nil, fmt.Errorf("under the condition %s the list has not the item %q", changed[0].when, item.Value)
			}
			if item, err = merge(item, changed); err != nil {
				return nil, err
			}
			if isDirective(item.Content[0]) {
				return nil, errors.New("what the first key of an item has is not the same under all conditions; put another before it")
			}
		}
		content = append(content, item)
	}
	for _, v := range variants {
		if more := v.node.Content[len(base.Content):]; len(more) > 0 {
			content = append(append(append(content, begin([]string{v.when})), more...), end())
		}
	}
	return content, nil
}

func begin(whens []string) *yaml.Node { return directive("{{- if " + or(whens) + " }}") }
func end() *yaml.Node                 { return directive("{{- end }}") }

func isDirective(node *yaml.Node) bool { return strings.HasPrefix(node.Value, "{{- ") }

// or is one condition of several.
func or(whens []string) string {
	if len(whens) == 1 {
		return whens[0]
	}
	return "or " + strings.Join(whens, " ")
}

// entries are the keys and values of a mapping.
func entries(mapping *yaml.Node) func(func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			if !yield(mapping.Content[i], mapping.Content[i+1]) {
				return
			}
		}
	}
}

func lookup(mapping *yaml.Node, name string) *yaml.Node {
	for key, value := range entries(mapping) {
		if key.Value == name {
			return value
		}
	}
	return nil
}

// added are the keys that only variants have.
func added(base *yaml.Node, variants []variant) (keys []*yaml.Node) {
	for _, v := range variants {
		for key := range entries(v.node) {
			known := func(k *yaml.Node) bool { return k.Value == key.Value }
			if lookup(base, key.Value) == nil && !slices.ContainsFunc(keys, known) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// equal compares what nodes say; comments and style say nothing.
func equal(a, b *yaml.Node) bool {
	return a.Kind == b.Kind && a.ShortTag() == b.ShortTag() && a.Value == b.Value && slices.EqualFunc(a.Content, b.Content, equal)
}

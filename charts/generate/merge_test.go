package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// TestMerge: what differs stands under its condition, in lines of its own; what does not, once.
func TestMerge(t *testing.T) {
	for name, tt := range map[string]struct {
		base     string
		variants []string // under the conditions .a, .b
		want     string
	}{
		"the same":                  {"{x: 1}", []string{"{x: 1}"}, "{x: 1}\n"},
		"a list that goes on":       {"args:\n- one\n", []string{"args: [one, two]", "args: [one, three]"}, "args:\n- one\n{{- if .a }}\n- two\n{{- end }}\n{{- if .b }}\n- three\n{{- end }}\n"},
		"another word":              {"x: 1\n", []string{"x: 2", "x: 3"}, "{{- if .a }}\nx: 2\n{{- else if .b }}\nx: 3\n{{- else }}\nx: 1\n{{- end }}\n"},
		"one more":                  {"x: 1\n", []string{"{x: 1, y: 2}"}, "x: 1\n{{- if .a }}\ny: 2\n{{- end }}\n"},
		"one less":                  {"x: 1\ny: 2\n", []string{"{x: 1}"}, "x: 1\n{{- if not .a }}\ny: 2\n{{- end }}\n"},
		"the same map by two":       {"x: 1\n", []string{"{x: 1, y: {p: 2}}", "{x: 1, y: {q: 3}}"}, "x: 1\n{{- if or .a .b }}\ny:\n  {{- if .a }}\n  p: 2\n  {{- end }}\n  {{- if .b }}\n  q: 3\n  {{- end }}\n{{- end }}\n"},
		"deep in an item":           {"l:\n- n: a\n  x: 1\n", []string{"l: [{n: a, x: 2}]"}, "l:\n- n: a\n  {{- if .a }}\n  x: 2\n  {{- else }}\n  x: 1\n  {{- end }}\n"},
		"comments stay":             {"# why\nx: 1 # so\n", []string{"{x: 1, y: 2}"}, "# why\nx: 1 # so\n{{- if .a }}\ny: 2\n{{- end }}\n"},
		"a list that loses an item": {"l: [a, b]", []string{"l: [a]"}, "error: has other items"},
		"a list with another word":  {"l: [a, b]", []string{"l: [a, c]"}, "error: has not the item"},
		"the first key of an item":  {"l: [{x: 1}]", []string{"l: [{x: 2}]"}, "error: put another before it"},
		"a word added by two":       {"x: 1", []string{"{x: 1, y: 2}", "{x: 1, y: 3}"}, "error: under several conditions, .a and .b"},
	} {
		t.Run(name, func(t *testing.T) {
			var variants []variant
			for i, text := range tt.variants {
				variants = append(variants, variant{"." + string(rune('a'+i)), yaml.MustParse(text).YNode()})
			}
			merged, err := merge(yaml.MustParse(tt.base).YNode(), variants)
			if want, fails := strings.CutPrefix(tt.want, "error: "); fails {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want one that says %q", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := encode(merged)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestEscape: braces that are another's are left alone, and there again in a file.
func TestEscape(t *testing.T) {
	const text = "{{ $value }} nodes have {{reason}}, {{"
	if got, want := escape(text), "{{`{{ $value }}`}} nodes have {{`{{reason}}`}}, {{"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := unescape(escape(text)); got != text {
		t.Errorf("%q, want %q", got, text)
	}
}

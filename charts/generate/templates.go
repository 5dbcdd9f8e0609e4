package main

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// writtenFrom begins each template that is written here.
const writtenFrom = "{{- /* Written by make update from manifests/"

// The ConfigMaps that kustomize names for what they have, and the chart does too: templates that are
// written by hand.
const settings, notifierConfig = "windlass-settings-", "windlass-notifier-config-"

// longText is from how many bytes on a text of a ConfigMap is a file of the chart.
const longText = 1000

// templates are the chart's templates, one for each file of the manifests.
func (m *manifests) templates() (map[string][]byte, error) {
	files := map[string][]byte{}
	seen := map[string]bool{}
	for _, r := range m.renderings() {
		for _, o := range r {
			if seen[o.id()] || strings.HasPrefix(o.name, settings) {
				continue
			}
			if strings.HasPrefix(o.name, notifierConfig) {
				files["files/notifier.yaml"] = []byte(unescape(lookup(lookup(o.node, "data"), "config.yaml").Value))
				continue
			}
			seen[o.id()] = true
			text, err := m.template(o, files)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", o.id(), err)
			}
			name := "templates/" + templateName(o.file)
			if files[name] == nil {
				files[name] = []byte(writtenFrom + o.file + ". */}}\n")
			}
			files[name] = append(files[name], text...)
		}
	}
	return files, nil
}

// namedByFlags are the rights to objects that a flag of the scaler gives another name, as the last of its
// rules.
var namedByFlags = map[string]string{
	"ClusterRole/windlass-scaler": rightByFlag("cluster-autoscaler-lease", "coordination.k8s.io", "leases", "list, watch"),
	"Role/windlass-scaler":        rightByFlag("status-config-map-name", `""`, "configmaps", "get, update, delete"),
}

func rightByFlag(flag, group, resource, verbs string) string {
	return fmt.Sprintf(`{{- with include "windlass.names" (get .Values.extraArgs %q) }}
- apiGroups: [%s]
  resources: [%s]
  resourceNames: [{{ . }}]
  verbs: [%s]
{{- end }}
`, flag, group, resource, verbs)
}

// templateName is that of base/agent.yaml, components/grafana/kustomization.yaml and the like.
func templateName(file string) string {
	folder, name := path.Base(path.Dir(file)), path.Base(file)
	switch {
	case folder == "base":
		return name
	case name == "kustomization.yaml":
		return folder + ".yaml"
	}
	return folder + "-" + strings.TrimPrefix(name, folder+"-")
}

// template is that of one object. Its long texts become files.
func (m *manifests) template(o object, files map[string][]byte) (string, error) {
	variants, err := m.variants(o)
	if err != nil {
		return "", err
	}
	for _, v := range variants {
		if other := m.base.find(o.id()); other == nil && strings.HasPrefix(v.when, ".Values.components.") {
			return "", fmt.Errorf("two components have it, and differ")
		}
	}
	merged, err := merge(o.node, variants)
	if err != nil {
		return "", err
	}
	if data := lookup(merged, "data"); o.kind == "ConfigMap" && data != nil {
		for key, value := range entries(data) {
			if len(value.Value) > longText {
				files["files/"+key.Value] = []byte(unescape(value.Value))
				*value = *directive(fmt.Sprintf(`{{ .Files.Get "files/%s" | toJson }}`, key.Value))
			}
		}
	}
	text, err := encode(merged)
	if err != nil {
		return "", err
	}
	text += namedByFlags[o.id()]
	if when := m.presence(o); when != "" {
		return "{{- if " + when + " }}\n---\n" + text + "{{- end }}\n", nil
	}
	return "---\n" + text, nil
}

// presence is the condition under which an object is there; empty for always.
func (m *manifests) presence(o object) string {
	if o.kind == "Namespace" {
		return ".Values.createNamespace"
	}
	var adders, removers []string
	inBase := m.base.find(o.id()) != nil
	for _, c := range m.components {
		has := c.with.find(o.id()) != nil
		switch {
		case inBase && !has:
			removers = append(removers, c.when())
		case !inBase && has:
			adders = append(adders, c.when())
			for _, other := range m.components {
				if pair, is := m.pairs[[2]string{c.Name, other.Name}]; is && pair.find(o.id()) == nil {
					removers = append(removers, other.when())
				}
			}
		}
	}
	not := ""
	switch len(removers) {
	case 0:
	case 1:
		not = "not " + removers[0]
	default:
		not = "not (" + or(removers) + ")"
	}
	switch {
	case len(adders) == 0:
		return not
	case not == "":
		return or(adders)
	case len(adders) == 1:
		return "and " + adders[0] + " (" + not + ")"
	}
	return "and (" + or(adders) + ") (" + not + ")"
}

func unescape(text string) string {
	return strings.NewReplacer("{{`{{", "{{", "}}`}}", "}}").Replace(text)
}

var (
	// aloneOnItsLine is a directive that is an item or a key.
	aloneOnItsLine = regexp.MustCompile(`(?m)^( *)(?:- '(\{\{-? .*\}\})'|'(\{\{-? .*\}\})':)$`)
	// asValue is one that is the value of a key.
	asValue = regexp.MustCompile(`(?m)^( *(?:- )*)(\S+: )'(\{\{-? .*\}\})'$`)
)

// encode writes a node with its comments, and directives as Helm is to read them.
func encode(node *yaml.Node) (string, error) {
	text, err := yaml.NewRNode(node).String()
	if err != nil {
		return "", err
	}
	indent := func(line string, columns int) string {
		return strings.Replace(strings.ReplaceAll(line, "''", "'"), "nindent @", fmt.Sprint("nindent ", columns), 1)
	}
	text = aloneOnItsLine.ReplaceAllStringFunc(text, func(line string) string {
		parts := aloneOnItsLine.FindStringSubmatch(line)
		return indent(parts[1]+parts[2]+parts[3], len(parts[1]))
	})
	return asValue.ReplaceAllStringFunc(text, func(line string) string {
		parts := asValue.FindStringSubmatch(line)
		return indent(parts[1]+parts[2]+parts[3], len(parts[1])+2)
	}), nil
}

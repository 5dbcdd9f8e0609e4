package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// The objects that fields are of.
const (
	scaler        = "Deployment/windlass-scaler"
	agent         = "DaemonSet/windlass-agent"
	notifier      = "Deployment/windlass-notifier"
	balloon       = "Deployment/balloon"
	scalerAccount = "ServiceAccount/windlass-scaler"
)

// field is a value that stands for a field of an object: the manifest has its default.
type field struct{ value, object, path string }

var fields = []field{
	{"replicaCount", scaler, "spec.replicas"},
	{"resources", scaler, "spec.template.spec.containers.[name=scaler].resources"},
	{"goMemLimit", scaler, "spec.template.spec.containers.[name=scaler].env.[name=GOMEMLIMIT].value"},
	{"metricsPort", scaler, "spec.template.spec.containers.[name=scaler].ports.[name=metrics].containerPort"},
	{"nodeSelector", scaler, "spec.template.spec.nodeSelector"},
	{"tolerations", scaler, "spec.template.spec.tolerations"},
	{"priorityClassName", scaler, "spec.template.spec.priorityClassName"},
	{"topologySpreadConstraints", scaler, "spec.template.spec.topologySpreadConstraints"},
	{"agent.resources", agent, "spec.template.spec.containers.[name=agent].resources"},
	{"agent.goMemLimit", agent, "spec.template.spec.containers.[name=agent].env.[name=GOMEMLIMIT].value"},
	{"agent.nodeSelector", agent, "spec.template.spec.nodeSelector"},
	{"agent.priorityClassName", agent, "spec.template.spec.priorityClassName"},
	{"agent.affinity", agent, "spec.template.spec.affinity"},
	{"notifications.resources", notifier, "spec.template.spec.containers.[name=notifier].resources"},
	{"notifications.goMemLimit", notifier, "spec.template.spec.containers.[name=notifier].env.[name=GOMEMLIMIT].value"},
	{"notifications.nodeSelector", notifier, "spec.template.spec.nodeSelector"},
	{"notifications.tolerations", notifier, "spec.template.spec.tolerations"},
	{"balloon.replicas", balloon, "spec.replicas"},
	{"balloon.image", balloon, "spec.template.spec.containers.[name=balloon].image"},
	{"balloon.resources", balloon, "spec.template.spec.containers.[name=balloon].resources"},
}

// addition is a value that adds to an object, at a map, a list or a word that the manifest may
// not have.
type addition struct {
	value, object, path string
	kind                yaml.Kind
}

var additions = []addition{
	{"rbac.serviceAccount.annotations", scalerAccount, "metadata.annotations", yaml.MappingNode},
	{"notifications.serviceAccount.annotations", "ServiceAccount/windlass-notifier", "metadata.annotations", yaml.MappingNode},
	{"podAnnotations", scaler, "spec.template.metadata.annotations", yaml.MappingNode},
	{"agent.podAnnotations", agent, "spec.template.metadata.annotations", yaml.MappingNode},
	{"notifications.podAnnotations", notifier, "spec.template.metadata.annotations", yaml.MappingNode},
	{"podLabels", scaler, "spec.template.metadata.labels", yaml.MappingNode},
	{"agent.podLabels", agent, "spec.template.metadata.labels", yaml.MappingNode},
	{"affinity", scaler, "spec.template.spec.affinity", yaml.MappingNode},
	{"image.pullSecrets", scaler, "spec.template.spec.imagePullSecrets", yaml.SequenceNode},
	{"image.pullSecrets", agent, "spec.template.spec.imagePullSecrets", yaml.SequenceNode},
	{"image.pullSecrets", notifier, "spec.template.spec.imagePullSecrets", yaml.SequenceNode},
	{"image.pullPolicy", scaler, "spec.template.spec.containers.0.imagePullPolicy", yaml.ScalarNode},
	{"image.pullPolicy", agent, "spec.template.spec.containers.0.imagePullPolicy", yaml.ScalarNode},
	{"image.pullPolicy", notifier, "spec.template.spec.containers.0.imagePullPolicy", yaml.ScalarNode},
	{"extraArgs", scaler, "spec.template.spec.containers.0.args", yaml.SequenceNode},
	{"agent.extraArgs", agent, "spec.template.spec.containers.0.args", yaml.SequenceNode},
	{"extraEnv", scaler, "spec.template.spec.containers.0.env", yaml.SequenceNode},
	{"agent.extraEnv", agent, "spec.template.spec.containers.0.env", yaml.SequenceNode},
	{"extraVolumes", scaler, "spec.template.spec.volumes", yaml.SequenceNode},
	{"extraVolumeMounts", scaler, "spec.template.spec.containers.0.volumeMounts", yaml.SequenceNode},
	{"prometheus.additionalLabels", "PodMonitor/windlass-scaler", "metadata.labels", yaml.MappingNode},
	{"prometheus.additionalLabels", "PrometheusRule/windlass", "metadata.labels", yaml.MappingNode},
}

// printed is how a value is written where it is not just its YAML.
var printed = map[string]string{
	"extraArgs":                       `include "windlass.args" .Values.extraArgs | trim`,
	"agent.extraArgs":                 `include "windlass.args" .Values.agent.extraArgs | trim`,
	"extraEnv":                        `include "windlass.env" .Values.extraEnv | trim`,
	"agent.extraEnv":                  `include "windlass.env" .Values.agent.extraEnv | trim`,
	"image.pullSecrets":               `include "windlass.pullSecrets" .Values.image.pullSecrets | trim`,
	"goMemLimit":                      `include "windlass.goMemLimit" (list "" .Values)`,
	"agent.goMemLimit":                `include "windlass.goMemLimit" (list "agent." .Values.agent)`,
	"notifications.goMemLimit":        `include "windlass.goMemLimit" (list "notifications." .Values.notifications)`,
	"rbac.serviceAccount.annotations": `include "windlass.accountAnnotations" .`,
	"podLabels":                       `include "windlass.podLabels" .`,
	"agent.podLabels":                 `include "windlass.agentLabels" .`,
	"podAnnotations":                  `include "windlass.podAnnotations" .`,
}

// flagValues are the flags of manifests that have a value of their own, because more depends on
// them, and what they are then; extraArgs has them not.
var flagValues = map[string]string{"metrics-address": ":{{ .Values.metricsPort }}"}

// block is what writes a value over lines of its own; how far to the right, encode finds out.
func block(value string) *yaml.Node {
	text, is := printed[value]
	if !is {
		text = "toYaml .Values." + value
	}
	return directive("{{- " + text + " | nindent @ }}")
}

// directive is what Helm is to read, at the place of a node.
func directive(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: yaml.NodeTagString, Value: text, Style: yaml.SingleQuotedStyle}
}

// renderings are all that there are, of which each object is to be the same as in the others
// where components do not differ.
func (m *manifests) renderings() []rendering {
	all := []rendering{m.base}
	for _, c := range m.components {
		all = append(all, c.with)
	}
	return all
}

// substitute puts directives at the place of whatever is a value, and returns the defaults of
// the fields, as YAML.
func (m *manifests) substitute() (map[string]string, error) {
	text, err := os.ReadFile(chart + "/templates/_helpers.tpl")
	if err != nil {
		return nil, err
	}
	for key := range m.settings {
		if !strings.Contains(string(text), `"`+key+`"`) {
			return nil, fmt.Errorf("manifests/settings.env has %s, and %s/templates/_helpers.tpl has not", key, chart)
		}
	}
	defaults := map[string]string{}
	for _, r := range m.renderings() {
		for _, o := range r {
			m.substituteScalars(o.node)
		}
		for id, value := range map[string]string{scaler: "extraArgs", agent: "agent.extraArgs"} {
			if err := yieldingFlags(r.find(id), value); err != nil {
				return nil, err
			}
		}
		for _, f := range fields {
			o := r.find(f.object)
			if o == nil {
				continue // a component's
			}
			if defaults[f.value], err = f.replace(o.node); err != nil {
				return nil, fmt.Errorf("the value %s: %w", f.value, err)
			}
		}
	}
	for _, f := range fields {
		if _, found := defaults[f.value]; !found {
			return nil, fmt.Errorf("the value %s is of %s, which is not there", f.value, f.object)
		}
	}
	return defaults, nil
}

// yieldingFlags has each flag of a program stand only where a value does not have it: one that may be
// given several times would add to it. The comments of manifests/flags, which show every flag, are
// taken out: the chart has values.schema.json for that.
func yieldingFlags(o *object, value string) error {
	if o == nil {
		return errors.New("a program is not there")
	}
	args, err := yaml.NewRNode(o.node).Pipe(yaml.Lookup("spec", "template", "spec", "containers", "0", "args"))
	if err != nil || args == nil {
		return fmt.Errorf("%s has no flags: %w", o.id(), err)
	}
	var content []*yaml.Node
	for _, arg := range args.YNode().Content {
		arg.HeadComment, arg.LineComment, arg.FootComment = "", "", ""
		flag, is := strings.CutPrefix(arg.Value, "--")
		flag, _, _ = strings.Cut(flag, "=")
		if text, own := flagValues[flag]; own {
			arg.Value, is = "--"+flag+"="+text, false
		}
		if !is {
			content = append(content, arg)
			continue
		}
		content = append(content, directive(fmt.Sprintf("{{- if not (hasKey .Values.%s %q) }}", value, flag)), arg, end())
	}
	args.YNode().Content = content
	return nil
}

// replace puts the value at the place of the field, and returns what was there.
func (f field) replace(node *yaml.Node) (string, error) {
	found, err := yaml.NewRNode(node).Pipe(yaml.Lookup(strings.Split(f.path, ".")...))
	if err != nil {
		return "", err
	}
	if found == nil {
		return "", fmt.Errorf("%s has no %s", f.object, f.path)
	}
	text, err := found.String()
	if err != nil {
		return "", err
	}
	comments := *found.YNode()
	switch {
	case found.YNode().Kind != yaml.ScalarNode:
		*found.YNode() = *block(f.value)
	case printed[f.value] != "":
		*found.YNode() = *directive("{{ " + printed[f.value] + " | quote }}")
	case found.YNode().ShortTag() == yaml.NodeTagString:
		*found.YNode() = *directive("{{ .Values." + f.value + " | quote }}")
	default:
		*found.YNode() = *directive("{{ .Values." + f.value + " }}")
	}
	found.YNode().HeadComment, found.YNode().LineComment = comments.HeadComment, comments.LineComment
	return strings.TrimSpace(text), nil
}

// substituteScalars puts directives at the place of the namespace, of the images, of the
// settings' name and of the scaler's role, wherever they are, and has Helm leave others'
// braces alone.
func (m *manifests) substituteScalars(node *yaml.Node) {
	for _, child := range node.Content {
		m.substituteScalars(child)
	}
	if node.Kind != yaml.ScalarNode {
		return
	}
	image, tag, _ := strings.Cut(node.Value, ":")
	var text string
	switch {
	case node.Value == "windlass-system":
		text = "{{ .Release.Namespace }}"
	case strings.HasPrefix(node.Value, settings):
		text = `{{ include "windlass.settings" . }}`
	case strings.HasPrefix(node.Value, notifierConfig):
		text = `{{ include "windlass.notifierConfig" . }}`
	case node.Value == m.settings["SCALER_ROLE_ARN"]:
		text = `{{ required "say the scaler's role, as roleArn" .Values.roleArn }}`
	case tag == m.tag && slices.Contains(m.images, image):
		text = fmt.Sprintf(`{{ include "windlass.image" (list . %q) }}`, image)
	default:
		node.Value = escape(node.Value)
		if strings.Contains(node.Value, "\n") {
			node.Style = yaml.LiteralStyle
		}
		return
	}
	*node = *directive(text)
}

// escape has Helm leave braces alone that are another's, such as Prometheus'.
func escape(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{{")
		inside, after, ends := strings.Cut(rest, "}}")
		if !found || !ends {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(before + "{{`{{" + inside + "}}`}}")
		text = after
	}
}

// variants are what an object may be beside what it is in from, each with its condition:
// those that components make of it, and then those that values add to.
func (m *manifests) variants(o object) (out []variant, err error) {
	for _, c := range m.components {
		if with := c.with.find(o.id()); with != nil && !equal(o.node, with.node) {
			out = append(out, variant{c.when(), with.node})
		}
	}
	for _, a := range additions {
		if a.object != o.id() {
			continue
		}
		added := yaml.CopyYNode(o.node)
		if err := a.to(added); err != nil {
			return nil, fmt.Errorf("the value %s: %w", a.value, err)
		}
		out = append(out, variant{".Values." + a.value, added})
	}
	return out, nil
}

// to adds the value to an object.
func (a addition) to(node *yaml.Node) error {
	at, err := yaml.NewRNode(node).Pipe(yaml.LookupCreate(a.kind, strings.Split(a.path, ".")...))
	if err != nil {
		return err
	}
	switch a.kind {
	case yaml.MappingNode:
		at.YNode().Content = append(at.YNode().Content, block(a.value), nothing())
	case yaml.SequenceNode:
		at.YNode().Content = append(at.YNode().Content, block(a.value))
	default:
		*at.YNode() = *directive("{{ .Values." + a.value + " }}")
	}
	return nil
}

// nothing is the value of a key that is a directive.
func nothing() *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: yaml.NodeTagNull} }

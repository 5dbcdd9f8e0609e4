package manifests

import (
	"encoding/base64"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// cloudFormation is a template with its intrinsic functions worked out, as far as that goes
// without AWS: a reference to a resource is its name in angle brackets.
type cloudFormation struct {
	t          *testing.T
	parameters map[string]any
	conditions map[string]any
	resources  map[string]any
}

// readCloudFormation reads a template. parameters are those that have no default, or are to
// have another value.
func readCloudFormation(t *testing.T, path string, parameters map[string]any) cloudFormation {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	document, err := yaml.Parse(string(body))
	if err != nil {
		t.Fatal(err)
	}
	c := cloudFormation{t: t, parameters: map[string]any{"AWS::Partition": "aws", "AWS::AccountId": "123456789012"}, conditions: map[string]any{}}
	sections := c.fields(document.YNode())
	for name, declaration := range c.fields(sections["Parameters"]) {
		fields := c.fields(declaration)
		if fields["Description"] == nil {
			t.Errorf("parameter %s is not described", name)
		}
		value, given := parameters[name]
		if d := fields["Default"]; !given && d != nil {
			value, given = c.plain(d), true
		}
		if !given {
			t.Fatalf("parameter %s has neither a default nor a value", name)
		}
		c.parameters[name] = value
	}
	for name := range c.fields(sections["Resources"]) {
		c.parameters[name] = "<" + name + ">"
	}
	c.conditions = c.plain(sections["Conditions"]).(map[string]any)
	c.resources = c.plain(sections["Resources"]).(map[string]any)
	c.plain(sections["Outputs"]) // its references are there
	return c
}

func (c cloudFormation) fields(node *yaml.Node) map[string]*yaml.Node {
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		out[node.Content[i].Value] = node.Content[i+1]
	}
	return out
}

// plain works a node out.
func (c cloudFormation) plain(node *yaml.Node) any {
	c.t.Helper()
	if strings.HasPrefix(node.Tag, "!") && !strings.HasPrefix(node.Tag, "!!") {
		return c.call(strings.TrimPrefix(node.Tag, "!"), node)
	}
	switch node.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for name, field := range c.fields(node) {
			if long, is := strings.CutPrefix(name, "Fn::"); is {
				return c.call(long, field)
			}
			out[name] = c.plain(field)
		}
		return out
	case yaml.SequenceNode:
		return c.items(node)
	}
	var value any
	if err := node.Decode(&value); err != nil {
		c.t.Fatal(err)
	}
	return value
}

func (c cloudFormation) items(node *yaml.Node) []any {
	c.t.Helper()
	var out []any
	for _, item := range node.Content {
		out = append(out, c.plain(item))
	}
	return out
}

// call works an intrinsic function out.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
func (c cloudFormation) call(name string, node *yaml.Node) any {
	c.t.Helper()
	switch name {
	case "Ref":
		return c.look(node.Value)
	case "GetAtt":
		resource, attribute, _ := strings.Cut(node.Value, ".")
		c.look(resource)
		return "<" + resource + "." + attribute + ">"
	case "Sub":
		return placeholder.ReplaceAllStringFunc(node.Value, func(found string) string {
			text, _ := c.look(found[2 : len(found)-1]).(string)
			return text
		})
	case "Base64":
		text, _ := c.plain(node).(string)
		return base64.StdEncoding.EncodeToString([]byte(text))
	case "Equals":
		sides := c.items(node)
		return sides[0] == sides[1]
	case "If":
		branch := node.Content[2]
		if holds, known := c.conditions[node.Content[0].Value].(bool); !known {
			c.t.Fatalf("condition %q is not declared", node.Content[0].Value)
		} else if holds {
			branch = node.Content[1]
		}
		return c.plain(branch)
	}
	c.t.Fatalf("line %d: function %s is not one that this test knows", node.Line, name)
	return nil
}

var placeholder = regexp.MustCompile(`\$\{[^}]+\}`)

func (c cloudFormation) look(name string) any {
	c.t.Helper()
	value, there := c.parameters[name]
	if !there {
		c.t.Fatalf("%s is neither a parameter nor a resource", name)
	}
	return value
}

// properties are those of a resource, which must be of a type.
func (c cloudFormation) properties(name, kind string) map[string]any {
	c.t.Helper()
	resource, _ := c.resources[name].(map[string]any)
	if resource["Type"] != kind {
		c.t.Fatalf("resource %s is of type %v, want %s", name, resource["Type"], kind)
	}
	properties, _ := resource["Properties"].(map[string]any)
	return properties
}

// made reports whether the condition of a resource that has one holds.
func (c cloudFormation) made(name string) bool {
	condition, conditional := c.resources[name].(map[string]any)["Condition"]
	return !conditional || c.conditions[fmt.Sprint(condition)] == true
}

package manifests

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"sigs.k8s.io/yaml"
)

// terraform is a module of Terraform with its expressions worked out, as far as that goes
// without a provider: what only AWS knows is given.
type terraform struct {
	t       *testing.T
	context *hcl.EvalContext
	// blocks are all blocks by kind and labels: resource.aws_iam_role.scaler.
	blocks map[string]map[string]any
}

// readTerraform reads a folder. vars are the variables that have no default, or are to have
// another value; known is what AWS would say, by reference.
func readTerraform(t *testing.T, folder string, vars map[string]cty.Value, known map[string]cty.Value) terraform {
	t.Helper()
	m := terraform{t: t, blocks: map[string]map[string]any{}, context: &hcl.EvalContext{
		Variables: map[string]cty.Value{"path": cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal(folder)})},
		Functions: functions,
	}}
	for name, value := range known {
		m.context.Variables[name] = value
	}
	blocks := parseTerraform(t, folder)
	m.declare(blocks, vars)
	for _, b := range blocks {
		if b.Type == "resource" || b.Type == "data" || b.Type == "output" {
			m.blocks[strings.Join(append([]string{b.Type}, b.Labels...), ".")] = m.decode(b.Body, m.context)
		}
	}
	return m
}

func parseTerraform(t *testing.T, folder string) hclsyntax.Blocks {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.tf"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no Terraform in %s: %v", folder, err)
	}
	var blocks hclsyntax.Blocks
	parser := hclparse.NewParser()
	for _, path := range paths {
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(hclwrite.Format(body), body) {
			t.Errorf("terraform fmt would change %s", path)
		}
		file, problems := parser.ParseHCL(body, path)
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		blocks = append(blocks, file.Body.(*hclsyntax.Body).Blocks...)
	}
	return blocks
}

// declare makes var and local of the module. Locals may use those that stand above them.
func (m terraform) declare(blocks hclsyntax.Blocks, vars map[string]cty.Value) {
	values, locals := map[string]cty.Value{}, map[string]cty.Value{}
	for _, b := range blocks {
		if b.Type != "variable" {
			continue
		}
		name := b.Labels[0]
		value, given := vars[name]
		if d := b.Body.Attributes["default"]; !given && d != nil {
			value, given = m.value(d.Expr, m.context), true
		}
		if !given {
			m.t.Fatalf("variable %s has neither a default nor a value", name)
		}
		if b.Body.Attributes["description"] == nil {
			m.t.Errorf("variable %s is not described", name)
		}
		values[name] = value
	}
	m.context.Variables["var"] = cty.ObjectVal(values)
	for _, b := range blocks {
		if b.Type != "locals" {
			continue
		}
		for _, a := range inOrder(b.Body.Attributes) {
			locals[a.Name] = m.value(a.Expr, m.context)
			m.context.Variables["local"] = cty.ObjectVal(locals)
		}
	}
}

// inOrder are attributes by their place in the file.
func inOrder(attributes hclsyntax.Attributes) []*hclsyntax.Attribute {
	return slices.SortedFunc(maps.Values(attributes), func(a, b *hclsyntax.Attribute) int {
		return cmp.Compare(a.SrcRange.Start.Byte, b.SrcRange.Start.Byte)
	})
}

func (m terraform) value(e hclsyntax.Expression, context *hcl.EvalContext) cty.Value {
	m.t.Helper()
	value, problems := e.Value(context)
	if problems.HasErrors() {
		m.t.Fatal(problems)
	}
	return value
}

// decode works out a body: attributes by name, and nested blocks as lists by their type,
// with those that are dynamic written out.
func (m terraform) decode(body *hclsyntax.Body, context *hcl.EvalContext) map[string]any {
	m.t.Helper()
	out := map[string]any{}
	for name, a := range body.Attributes {
		if name == "ignore_changes" { // names, not values
			for _, item := range a.Expr.(*hclsyntax.TupleConsExpr).Exprs {
				out[name] = append(list(out[name]), hcl.ExprAsKeyword(item))
			}
			continue
		}
		out[name] = plain(m.t, m.value(a.Expr, context))
	}
	for _, b := range body.Blocks {
		if b.Type != "dynamic" {
			out[b.Type] = append(list(out[b.Type]), m.decode(b.Body, context))
			continue
		}
		kind := b.Labels[0]
		each := m.value(b.Body.Attributes["for_each"].Expr, context)
		for it := each.ElementIterator(); it.Next(); {
			key, value := it.Element()
			inner := context.NewChild()
			inner.Variables = map[string]cty.Value{kind: cty.ObjectVal(map[string]cty.Value{"key": key, "value": value})}
			out[kind] = append(list(out[kind]), m.decode(b.Body.Blocks[0].Body, inner))
		}
	}
	return out
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// plain is a value as JSON has it.
func plain(t *testing.T, v cty.Value) any {
	t.Helper()
	body, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// functions are those of Terraform that the examples call.
var functions = map[string]function.Function{
	"join": stdlib.JoinFunc, "jsonencode": stdlib.JSONEncodeFunc, "replace": stdlib.ReplaceFunc, "split": stdlib.SplitFunc,
	"base64encode": ofText(func(text string) (string, error) { return base64.StdEncoding.EncodeToString([]byte(text)), nil }),
	"file": ofText(func(path string) (string, error) {
		body, err := os.ReadFile(path)
		return string(body), err
	}),
}

func ofText(f func(string) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			text, err := f(args[0].AsString())
			return cty.StringVal(text), err
		},
	})
}

// TestTerraformOfTheChart: the example hands the module of the role what that asks for, and
// the chart values that it has, with the role among them.
func TestTerraformOfTheChart(t *testing.T) {
	const folder = "../charts/examples/terraform"
	text := cty.StringVal
	for oidc, identity := range map[string]string{"": "eksPodIdentity", "arn:aws:iam::111122223333:oidc-provider/example.com": "eksIrsa"} {
		m := readTerraform(t, folder, map[string]cty.Value{
			"cluster_name": text(exampleCluster), "registry": text("registry.example.com/windlass"), "ami_id": text("ami-1"),
			"subnet_ids": cty.ListVal([]cty.Value{text("subnet-a")}), "security_group_ids": cty.ListVal([]cty.Value{text("sg-1")}),
			"node_instance_profile_arn": text("arn:aws:iam::111122223333:instance-profile/node"), "oidc_provider_arn": text(oidc),
		}, map[string]cty.Value{
			"module": cty.ObjectVal(map[string]cty.Value{"aws": cty.ObjectVal(map[string]cty.Value{"scaler_role_arn": text(exampleRole)})}),
		})
		release := m.blocks["resource.helm_release.windlass"]
		if got := filepath.Clean(release["chart"].(string)); got != "../charts/windlass" {
			t.Errorf("it installs %s", got)
		}
		var given, known map[string]any
		if err := yaml.Unmarshal([]byte(list(release["values"])[0].(string)), &given); err != nil {
			t.Fatal(err)
		}
		body, err := os.ReadFile("../charts/windlass/values.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(body, &known); err != nil {
			t.Fatal(err)
		}
		for _, wrong := range unknownValues(given, known) {
			t.Errorf("the chart has no value %s", wrong)
		}
		if components := given["components"].(map[string]any); components[identity] != true || given["roleArn"] != exampleRole {
			t.Errorf("with the OIDC provider %q the values are %v", oidc, given)
		}
	}

	asked, handed := map[string]bool{}, map[string]bool{}
	for _, b := range parseTerraform(t, folder) {
		if b.Type == "module" {
			for name := range b.Body.Attributes {
				handed[name] = true
			}
		}
	}
	delete(handed, "source")
	for _, b := range parseTerraform(t, "examples/terraform") {
		if b.Type != "variable" {
			continue
		}
		asked[b.Labels[0]] = true
		if b.Body.Attributes["default"] == nil && !handed[b.Labels[0]] {
			t.Errorf("the module asks for %s", b.Labels[0])
		}
	}
	for name := range handed {
		if !asked[name] {
			t.Errorf("the module has no variable %s", name)
		}
	}
}

// unknownValues are those given that the chart does not have. What it has as an empty map is
// free.
func unknownValues(given, known map[string]any) (wrong []string) {
	for name, value := range given {
		its, is := known[name]
		below, isMap := its.(map[string]any)
		switch {
		case !is:
			wrong = append(wrong, name)
		case isMap && len(below) > 0:
			for _, inner := range unknownValues(value.(map[string]any), below) {
				wrong = append(wrong, name+"."+inner)
			}
		}
	}
	return wrong
}

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"windlass.dev/windlass/docs/section"
	"windlass.dev/windlass/manifests/flagfile"
	"windlass.dev/windlass/pkg/contract"
)

// leaf is a value that people set: one with a comment that begins with two dashes.
type leaf struct {
	path, about string
	value       *yaml.Node
}

// flagsOf are the values that are flags, with their section of the page of flags and what is
// set in manifests/flags.
var flagsOf = map[string]struct{ section, program string }{
	"extraArgs":       {contract.AppScaler + " run", contract.AppScaler},
	"agent.extraArgs": {contract.AppAgent, contract.AppAgent},
}

// asText are the values that may be their own YAML as text, too.
var asText = []string{"expanderPriorities", "notifications.config"}

// describe reads the values, and makes the schema that Helm holds a user's against.
func describe(values []byte) ([]leaf, []byte, error) {
	root, err := yaml.Parse(string(values))
	if err != nil {
		return nil, nil, fmt.Errorf("values.yaml: %w", err)
	}
	var leaves []leaf
	schema, err := schemaOf(root.YNode(), "", &leaves)
	if err != nil {
		return nil, nil, fmt.Errorf("values.yaml: %w", err)
	}
	schema["$schema"] = "http://json-schema.org/draft-07/schema#"
	// Helm hands the first to each chart that is part of another, which asks by the second whether
	// it is wanted.
	schema["properties"].(map[string]any)["global"] = map[string]any{"type": "object"}
	schema["properties"].(map[string]any)["enabled"] = map[string]any{"type": "boolean"}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err = e.Encode(schema)
	return leaves, b.Bytes(), err
}

func schemaOf(mapping *yaml.Node, prefix string, leaves *[]leaf) (map[string]any, error) {
	properties := map[string]any{}
	for key, value := range entries(mapping) {
		path := prefix + key.Value
		_, about, documented := strings.Cut(key.HeadComment, "# -- ")
		if !documented {
			if value.Kind != yaml.MappingNode || len(value.Content) == 0 {
				return nil, fmt.Errorf("%s has no comment that begins with two dashes", path)
			}
			schema, err := schemaOf(value, path+".", leaves)
			if err != nil {
				return nil, err
			}
			properties[key.Value] = schema
			continue
		}
		*leaves = append(*leaves, leaf{path, about, value})
		schema := map[string]any{"description": about, "type": typeOf(value, "object", "array", "boolean", "integer", "string")}
		if slices.Contains(asText, path) {
			schema["type"] = []string{"object", "string"}
		}
		if path == "image.pullSecrets" {
			schema["items"] = map[string]any{"type": "string"}
		}
		if of, is := flagsOf[path]; is {
			flags, err := flagSchemas(of.section, of.program)
			if err != nil {
				return nil, err
			}
			schema["properties"], schema["additionalProperties"] = flags, false
		}
		properties[key.Value] = schema
	}
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}, nil
}

func typeOf(value *yaml.Node, object, list, boolean, integer, text string) string {
	switch {
	case value.Kind == yaml.MappingNode:
		return object
	case value.Kind == yaml.SequenceNode:
		return list
	case value.ShortTag() == yaml.NodeTagBool:
		return boolean
	case value.ShortTag() == yaml.NodeTagInt:
		return integer
	}
	return text
}

// flagSchemas are those of a program's flags that are a user's business.
func flagSchemas(name, program string) (map[string]any, error) {
	known, err := section.ReadFlags("docs/reference/flags.md", name)
	if err != nil {
		return nil, err
	}
	args, err := flagfile.Read("manifests/flags", program)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, arg := range slices.Concat(args.Set, args.Shown) {
		arg, is := strings.CutPrefix(arg, "--")
		if !is {
			continue // the command
		}
		flag, _, _ := strings.Cut(arg, "=")
		i := slices.IndexFunc(known, func(f section.Flag) bool { return f.Name == flag })
		if i < 0 {
			return nil, fmt.Errorf("manifests/flags has --%s, and docs/reference/flags.md has not", flag)
		}
		if _, own := flagValues[flag]; own {
			continue
		}
		if out[flag], err = flagSchema(known[i]); err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no flags were found")
	}
	return out, nil
}

// duration is what Go reads as one, as 1h30m.
const duration = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`

func flagSchema(f section.Flag) (map[string]any, error) {
	schema := map[string]any{"description": f.Usage}
	if f.Default != "" {
		schema["default"] = f.Default
	}
	var err error
	switch f.Type {
	case "bool":
		schema["type"] = "boolean"
		if f.Default != "" {
			schema["default"], err = strconv.ParseBool(f.Default)
		}
	case "int", "int32", "uint16":
		schema["type"] = "integer"
		schema["default"], err = strconv.Atoi(f.Default)
	case "float64":
		// `helm --set` takes 0.5 for a text.
		schema["type"], schema["pattern"] = []string{"number", "string"}, `^[0-9]*\.?[0-9]+$`
		schema["default"], err = strconv.ParseFloat(f.Default, 64)
	case "strings", "stringSlice", "stringArray":
		schema["type"], schema["items"] = []string{"array", "string"}, map[string]any{"type": "string"}
		if f.Default != "" {
			schema["default"] = strings.Split(strings.Trim(f.Default, "[]"), ",")
		}
	case "duration":
		schema["type"], schema["pattern"] = "string", duration
	default:
		schema["type"] = "string"
	}
	return schema, err
}

// table is that of the README, with the columns, types and order of helm-docs.
func table(leaves []leaf) (string, error) {
	var rows [][]string
	for _, l := range leaves {
		var value any
		if err := l.value.Decode(&value); err != nil {
			return "", fmt.Errorf("%s: %w", l.path, err)
		}
		text, err := json.Marshal(value)
		if err != nil {
			return "", fmt.Errorf("%s: %w", l.path, err)
		}
		kind := typeOf(l.value, "object", "list", "bool", "int", "string")
		rows = append(rows, []string{l.path, kind, "`" + string(text) + "`", l.about})
	}
	slices.SortFunc(rows, slices.Compare)
	return section.Table([]string{"Key", "Type", "Default", "Description"}, rows), nil
}

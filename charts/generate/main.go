// Generate writes the Helm chart charts/windlass from manifests, so that there is one truth:
//
//	go run ./charts/generate          write it, as make update does
//	go run ./charts/generate -check   say what is stale, as make check does
//
// It asks kustomize what the manifests are with each component and without it, and puts what
// differs under a condition. So it knows no component by name, and a new one is a new switch.
// Package map:
//
//	render.go     what kustomize makes of the manifests, alone and with each component
//	fields.go     which fields of the objects are values, and what else stands for a value
//	merge.go      one object out of several that differ, with conditions
//	templates.go  the chart's templates
//	values.go     values.yaml, its schema, and the table of the README
//
// Written by hand are the texts beside this file and, in the chart, those templates that no
// manifest has: helpers, settings, expander priorities, notes.
package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

const chart = "charts/windlass"

//go:embed *.tmpl
var texts embed.FS

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	check := slices.Equal(args, []string{"-check"})
	if !check && len(args) != 0 {
		return errors.New("usage: go run ./charts/generate [-check], in the repository's root")
	}
	files, err := generate()
	if err != nil {
		return err
	}
	stale, err := leftOver(files)
	if err != nil {
		return err
	}
	for _, path := range stale {
		if check {
			break
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(chart, name)
		if got, err := os.ReadFile(path); err == nil && bytes.Equal(got, files[name]) {
			continue
		}
		stale = append(stale, path)
		if check {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return err
		}
	}
	if check && len(stale) > 0 {
		return fmt.Errorf("stale, make update writes them: %s", strings.Join(stale, ", "))
	}
	return nil
}

// leftOver are the templates that were written from something that is no more.
func leftOver(files map[string][]byte) (stale []string, err error) {
	paths, err := filepath.Glob(filepath.Join(chart, "templates", "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		name := "templates/" + filepath.Base(path)
		if _, written := files[name]; !written && bytes.HasPrefix(text, []byte(writtenFrom)) {
			stale = append(stale, path)
		}
	}
	return stale, nil
}

// generate makes the files of the chart, by their paths in it.
func generate() (map[string][]byte, error) {
	m, err := renderAll()
	if err != nil {
		return nil, err
	}
	defaults, err := m.substitute()
	if err != nil {
		return nil, err
	}
	files, err := m.templates()
	if err != nil {
		return nil, err
	}
	data := map[string]any{"Tag": m.tag, "Images": m.images, "Components": m.components, "Settings": m.settings, "Fields": defaults}
	values, err := fill("values.yaml.tmpl", data)
	if err != nil {
		return nil, err
	}
	leaves, schema, err := describe(values)
	if err != nil {
		return nil, err
	}
	if data["Table"], err = table(leaves); err != nil {
		return nil, err
	}
	files["values.yaml"], files["values.schema.json"] = values, schema
	for _, name := range []string{"Chart.yaml", "README.md"} {
		if files[name], err = fill(name+".tmpl", data); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// fill is one of the texts beside this file with what was found out.
func fill(name string, data map[string]any) ([]byte, error) {
	body, err := fs.ReadFile(texts, name)
	if err != nil {
		return nil, err
	}
	indent := func(columns int, lines string) string {
		return strings.ReplaceAll(lines, "\n", "\n"+strings.Repeat(" ", columns))
	}
	t, err := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{"indent": indent}).Parse(string(body))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

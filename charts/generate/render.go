package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// object is one of a rendering, with its comments.
type object struct {
	kind, name string
	// file is what the manifests have it from, as base/agent.yaml.
	file string
	node *yaml.Node
}

func (o object) id() string { return o.kind + "/" + o.name }

// rendering is what kustomize makes of the manifests, in its order.
type rendering []object

func (r rendering) find(id string) *object {
	if i := slices.IndexFunc(r, func(o object) bool { return o.id() == id }); i >= 0 {
		return &r[i]
	}
	return nil
}

// component is one of manifests/components.
type component struct {
	Name, Value string
	// About is the first sentence of its file.
	About string
	with  rendering
}

// when is the condition that it is switched on.
func (c component) when() string { return ".Values.components." + c.Value }

// manifests are all that the chart is made of.
type manifests struct {
	base       rendering
	components []component
	// together lacks what is added by one component and removed by another; pairs has the
	// renderings of both.
	together rendering
	pairs    map[[2]string]rendering
	// settings are the keys of settings.env with what they are in it, or are shown to be.
	settings map[string]string
	tag      string
	images   []string
}

// kustomizer renders a copy of the manifests in which all settings are set.
type kustomizer struct{ dir string }

func renderAll() (*manifests, error) {
	dir, err := os.MkdirTemp("", "windlass-chart-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	k := kustomizer{dir}
	if err := os.CopyFS(filepath.Join(dir, "manifests"), os.DirFS("manifests")); err != nil {
		return nil, err
	}
	m := &manifests{pairs: map[[2]string]rendering{}}
	if err := m.readKustomizations(); err != nil {
		return nil, err
	}
	if err := m.readSettings(filepath.Join(dir, "manifests", "settings.env")); err != nil {
		return nil, err
	}
	if m.base, err = k.render(); err != nil {
		return nil, err
	}
	folders, err := os.ReadDir("manifests/components")
	if err != nil {
		return nil, err
	}
	var names, removers []string
	for _, folder := range folders {
		c, err := k.component(folder.Name())
		if err != nil {
			return nil, err
		}
		m.components = append(m.components, c)
		if m.removes(c) {
			removers = append(removers, c.Name)
		} else {
			names = append(names, c.Name)
		}
	}
	// What takes objects out is last, because it takes out those of other components, too.
	if m.together, err = k.render(append(names, removers...)...); err != nil {
		return nil, err
	}
	return m, m.renderPairs(k)
}

// removes reports whether a component takes objects out.
func (m *manifests) removes(c component) bool {
	return slices.ContainsFunc(m.base, func(o object) bool { return c.with.find(o.id()) == nil })
}

// render is what kustomize makes of the manifests with some components.
func (k kustomizer) render(components ...string) (rendering, error) {
	text := "resources: [../manifests]\nnamespace: windlass-system\nbuildMetadata: [originAnnotations]\ncomponents:\n"
	for _, c := range components {
		text += "  - ../manifests/components/" + c + "\n"
	}
	overlay := filepath.Join(k.dir, "overlay")
	if err := os.MkdirAll(overlay, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o644); err != nil {
		return nil, err
	}
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), overlay)
	if err != nil {
		return nil, fmt.Errorf("rendering manifests with %v: %w", components, err)
	}
	var r rendering
	for _, resource := range all.Resources() {
		origin, err := resource.GetOrigin()
		if err != nil {
			return nil, err
		}
		o := object{kind: resource.GetKind(), name: resource.GetName(), file: origin.Path}
		if o.file == "" {
			o.file = origin.ConfiguredIn
		}
		o.file = strings.TrimPrefix(o.file, "../manifests/")
		if err := resource.SetOrigin(nil); err != nil {
			return nil, err
		}
		if err := yaml.ClearEmptyAnnotations(&resource.RNode); err != nil {
			return nil, err
		}
		o.node = resource.YNode()
		r = append(r, o)
	}
	return r, nil
}

// renderPairs finds, for what a component adds and another removes, which one that is.
func (m *manifests) renderPairs(k kustomizer) (err error) {
	for _, adder := range m.components {
		lost := slices.ContainsFunc(adder.with, func(o object) bool {
			return m.base.find(o.id()) == nil && m.together.find(o.id()) == nil
		})
		for _, remover := range m.components {
			if lost && m.removes(remover) {
				if m.pairs[[2]string{adder.Name, remover.Name}], err = k.render(adder.Name, remover.Name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (k kustomizer) component(name string) (c component, err error) {
	text, err := os.ReadFile(path.Join("manifests/components", name, "kustomization.yaml"))
	if err != nil {
		return c, err
	}
	c = component{Name: name, Value: camelCase(name), About: firstSentence(string(text))}
	if c.About == "" {
		return c, fmt.Errorf("manifests/components/%s/kustomization.yaml does not begin with a comment that says what it is for", name)
	}
	c.with, err = k.render(name)
	return c, err
}

func camelCase(name string) string {
	words := strings.Split(name, "-")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

// firstSentence is that of the comment with which a file begins.
func firstSentence(text string) string {
	var words []string
	for line := range strings.Lines(text) {
		comment, is := strings.CutPrefix(line, "#")
		if !is || strings.TrimSpace(comment) == "" {
			break
		}
		words = append(words, strings.Fields(comment)...)
	}
	sentence, _, _ := strings.Cut(strings.Join(words, " "), ". ")
	if sentence = strings.TrimSuffix(sentence, "."); sentence == "" {
		return ""
	}
	return sentence + "."
}

// readKustomizations finds the images and their tag.
func (m *manifests) readKustomizations() error {
	components, err := filepath.Glob("manifests/components/*/kustomization.yaml")
	if err != nil {
		return err
	}
	for _, file := range append([]string{"manifests/kustomization.yaml"}, components...) {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var k types.Kustomization
		if err := yaml.Unmarshal(text, &k); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, image := range k.Images {
			if m.tag != "" && image.NewTag != m.tag {
				return fmt.Errorf("%s: images have the tags %s and %s; the chart has one", file, m.tag, image.NewTag)
			}
			m.tag, m.images = image.NewTag, append(m.images, image.Name)
		}
	}
	return nil
}

// readSettings reads the settings, those that are commented out too, and sets all of them.
func (m *manifests) readSettings(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	m.settings = map[string]string{}
	var all string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "# ")
		key, value, set := strings.Cut(line, "=")
		if !set || strings.ToUpper(key) != key || strings.Contains(key, " ") {
			continue // prose
		}
		m.settings[key] = value
		all += line + "\n"
	}
	return os.WriteFile(file, []byte(all), 0o644)
}

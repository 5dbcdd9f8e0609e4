package main

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// variable is what the Makefile says that one is.
func variable(t *testing.T, makefile []byte, name string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + name + ` :?= (.*)$`).FindSubmatch(makefile)
	if found == nil {
		t.Fatalf("the Makefile has no %s", name)
	}
	return string(found[1])
}

// TestGoreleaser: a release has the programs and images that make has, and builds them in the
// same way.
func TestGoreleaser(t *testing.T) {
	text, err := os.ReadFile("../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var release struct {
		Builds []struct {
			ID, Main, Binary             string
			Env, Flags, Ldflags, Targets []string
		}
		Archives []struct {
			ID        string
			Ids       []string
			Formats   []string
			Overrides []struct {
				Goos    string
				Formats []string
			} `json:"format_overrides"`
			Name  string `json:"name_template"`
			Files []any
		}
		Checksum struct {
			Name string `json:"name_template"`
		}
		Sboms []struct{ Artifacts string }
		Signs []struct {
			Cmd, Artifacts, Signature string
			Args                      []string
		}
		ImageSigns []struct {
			Cmd, Artifacts string
			Args           []string
		} `json:"docker_signs"`
		Images []struct {
			ID, Dockerfile string
			Ids, Images    []string
			Platforms      []string
			SBOM           bool
		} `json:"dockers_v2"`
	}
	if err := yaml.Unmarshal(text, &release); err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	ldflags := strings.NewReplacer("$(TELEMETRY)", variable(t, makefile, "TELEMETRY"), "$(VERSION)", "{{ .Tag }}", "$(REVISION)", "{{ .FullCommit }}").Replace(variable(t, makefile, "LDFLAGS"))
	flags := strings.ReplaceAll(variable(t, makefile, "FLAGS"), "$(GCFLAGS)", strings.ReplaceAll(variable(t, makefile, "GCFLAGS"), "'", ""))
	build := strings.NewReplacer("$(GO)", "go", "$(LDFLAGS)", ldflags, "$(FLAGS)", flags).Replace(variable(t, makefile, "BUILD"))

	built, archived, imaged := map[string]string{}, map[string]bool{}, map[string]string{}
	for _, b := range release.Builds {
		built[b.ID] = b.Main
		if got := strings.Join(b.Env, " ") + " go build " + strings.Join(b.Flags, " ") + " -ldflags '" + strings.Join(b.Ldflags, " ") + "'"; got != build {
			t.Errorf("%s is built by\n%s\nand by make with\n%s", b.ID, got, build)
		}
		if b.Binary != b.ID {
			t.Errorf("%s is called %s", b.ID, b.Binary)
		}
	}
	for _, a := range release.Archives {
		archived[a.ID] = built[a.ID] != "" && len(a.Ids) == 1 && a.Ids[0] == a.ID
	}
	for id := range built {
		if !archived[id] {
			t.Errorf("%s has no archive of its own", id)
		}
	}
	if built["kubectl-windlass"] != "./cli" {
		t.Errorf("kubectl-windlass is built of %q", built["kubectl-windlass"])
	}
	// Whoever installs can check what he got: every archive and image has its list of contents, and
	// every checksum and image is signed by the workflow.
	if len(release.Sboms) != 1 || release.Sboms[0].Artifacts != "archive" {
		t.Errorf("lists of contents are of %v, want one of each archive", release.Sboms)
	}
	if s := release.Signs; len(s) != 1 || s[0].Cmd != "cosign" || s[0].Artifacts != "checksum" || s[0].Signature == "" || release.Checksum.Name == "" || !slices.Contains(s[0].Args, "--bundle=${signature}") || slices.ContainsFunc(s[0].Args, func(arg string) bool { return strings.HasPrefix(arg, "--key") }) {
		t.Errorf("signed are %v, want the checksums, without a key", s)
	}
	if s := release.ImageSigns; len(s) != 1 || s[0].Cmd != "cosign" || s[0].Artifacts != "manifests" || !slices.Contains(s[0].Args, "${artifact}@${digest}") {
		t.Errorf("images that are signed: %v, want all by their digests", s)
	}

	// What krew's manifest names is what a release makes.
	type archive struct{ system, arch, file string }
	made := map[archive]bool{}
	for _, b := range release.Builds {
		for _, a := range release.Archives {
			if b.ID != "kubectl-windlass" || !slices.Contains(a.Ids, b.ID) {
				continue
			}
			for _, target := range b.Targets {
				system, arch, _ := strings.Cut(target, "_")
				arch, _, _ = strings.Cut(arch, "_")
				format := a.Formats[0]
				for _, o := range a.Overrides {
					if o.Goos == system {
						format = o.Formats[0]
					}
				}
				file := strings.NewReplacer("{{ .Binary }}", b.Binary, "{{ .Tag }}", "TAG", "{{ .Os }}", system, "{{ .Arch }}", arch).Replace(a.Name)
				made[archive{system, arch, file + "." + format}] = true
			}
		}
	}
	text, err = os.ReadFile("../cli/windlass.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var krew krewManifest
	if err := yaml.Unmarshal(text, &krew); err != nil {
		t.Fatal(err)
	}
	packed := []string{"kubectl-windlass", "kubectl-windlass.exe"}
	for _, a := range release.Archives {
		for _, f := range a.Files {
			if entry, is := f.(map[string]any); is && a.ID == "kubectl-windlass" {
				src, _ := entry["src"].(string)
				if info, err := os.Stat("../" + src); err != nil || info.Mode()&0o111 == 0 || entry["strip_parent"] != true {
					t.Errorf("%v is no program at the top of the archive: %v", entry, err)
				}
				packed = append(packed, path.Base(src))
			} else if text, is := f.(string); is && a.ID == "kubectl-windlass" {
				packed = append(packed, text)
			}
		}
	}
	if !slices.Contains(packed, "kubectl_complete-windlass") {
		t.Errorf("the plugin's archive has %v, and nothing that completes its words", packed)
	}
	for _, p := range krew.Spec.Platforms {
		for _, f := range p.Files {
			if !slices.Contains(packed, f.From) {
				t.Errorf("krew takes %s out of %s, which has %v", f.From, p.URI, packed)
			}
		}
	}
	named := map[archive]bool{}
	for _, p := range krew.Spec.Platforms {
		named[archive{p.Selector.MatchLabels["os"], p.Selector.MatchLabels["arch"], strings.ReplaceAll(path.Base(p.URI), krew.Spec.Version, "TAG")}] = true
	}
	if diff := cmp.Diff(made, named, cmp.AllowUnexported(archive{})); diff != "" {
		t.Errorf("krew's manifest names others than a release makes (-made +named):\n%s", diff)
	}

	for _, i := range release.Images {
		if !i.SBOM {
			t.Errorf("image %s has no list of contents", i.ID)
		}
		imaged[i.ID] = i.Dockerfile
		if diff := cmp.Diff([]string{i.ID}, i.Ids); diff != "" {
			t.Errorf("image %s has other programs (-want +got):\n%s", i.ID, diff)
		}
		if diff := cmp.Diff([]string{"{{ .Env.REGISTRY }}/" + i.ID}, i.Images); diff != "" {
			t.Errorf("image %s has another name (-want +got):\n%s", i.ID, diff)
		}
		if got, want := strings.ReplaceAll(strings.Join(i.Platforms, " "), "linux/", ""), variable(t, makefile, "ARCHITECTURES"); got != want {
			t.Errorf("image %s is for %s, want %s", i.ID, got, want)
		}
	}
	for program := range strings.FieldsSeq(variable(t, makefile, "PROGRAMS")) {
		if id := "windlass-" + program; built[id] != "./"+program || imaged[id] != "Dockerfile."+program {
			t.Errorf("make builds %s and its image; a release builds %q, and the image by %q", id, built[id], imaged[id])
		}
	}
	if len(imaged) != len(strings.Fields(variable(t, makefile, "PROGRAMS"))) {
		t.Errorf("images %v, and make makes those of %s", imaged, variable(t, makefile, "PROGRAMS"))
	}
}

// TestWorkflows: GitHub's workflows are YAML, run what continuous integration runs before
// they release, call targets that there are, and name what they use of others by its commit, as a
// tag can be moved.
func TestWorkflows(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	type workflow struct {
		Jobs map[string]struct {
			Uses, Needs string
			Steps       []struct{ Run, Uses string }
		}
	}
	workflows, commit := map[string]workflow{}, regexp.MustCompile(`@[0-9a-f]{40}$`)
	for _, name := range []string{"ci.yaml", "release.yaml"} {
		text, err := os.ReadFile("../.github/workflows/" + name)
		if err != nil {
			t.Fatal(err)
		}
		var w workflow
		if err := yaml.Unmarshal(text, &w); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		workflows[name] = w
		for _, job := range w.Jobs {
			for _, step := range job.Steps {
				if step.Uses != "" && !commit.MatchString(step.Uses) {
					t.Errorf("%s uses %s, which is no commit", name, step.Uses)
				}
				targets, is := strings.CutPrefix(step.Run, "make ")
				for target := range strings.FieldsSeq(targets) {
					if is && !strings.Contains(target, "=") && !strings.Contains(string(makefile), "\n"+target+":") {
						t.Errorf("%s calls make %s, which is not there", name, target)
					}
				}
			}
		}
	}
	if steps := workflows["ci.yaml"].Jobs["run"].Steps; len(steps) == 0 || steps[len(steps)-1].Run != ".ci/run" {
		t.Errorf("ci.yaml runs %v", steps)
	}
	jobs := workflows["release.yaml"].Jobs
	if jobs["ci"].Uses != "./.github/workflows/ci.yaml" || jobs["release"].Needs != "ci" {
		t.Errorf("a release does not wait for continuous integration: %v", jobs)
	}
}

package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/docs/section"
	"windlass.dev/windlass/pkg/telemetry"
)

func rootForDocs() *cobra.Command {
	c := &cli{IOStreams: genericiooptions.IOStreams{Out: io.Discard, ErrOut: io.Discard}, flags: genericclioptions.NewConfigFlags(false)}
	return c.root()
}

var (
	reasonRow = regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\| ([^|]*[^| ]) \\| ([^|]*[^| ]) \\|$")
	link      = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// TestReasons: what the program says of a reason is what docs/reference/verdict-reasons.md has.
func TestReasons(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/verdict-reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, kind := range []string{"Pod", "Node", "Group"} {
		_, part, _ := strings.Cut(string(text), "\n## "+kind+"s\n")
		part, _, _ = strings.Cut(part, "\n## ")
		rows := reasonRow.FindAllStringSubmatch(part, -1)
		if len(rows) < 10 {
			t.Errorf("%d reasons of %ss", len(rows), kind)
		}
		for _, row := range rows {
			plain := []string{strings.ToLower(kind)}
			for _, cell := range row[1:] {
				plain = append(plain, strings.ReplaceAll(link.ReplaceAllString(cell, "$1"), "`", ""))
			}
			all.WriteString(strings.Join(plain, "\t") + "\n")
		}
	}
	section.HoldFile(t, "view/reasons.txt", all.String())
}

// TestRights: what the program asks for is what the manifests give.
func TestRights(t *testing.T) {
	var all strings.Builder
	for _, file := range []string{"base/agent-rbac.yaml", "base/scaler-rbac.yaml", "components/notifications/notifier-rbac.yaml", "components/viewers/role.yaml"} {
		text, err := os.ReadFile("../manifests/" + file)
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var role rbacv1.ClusterRole // a Role has the same fields
			if err := yaml.Unmarshal([]byte(document), &role); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			scope := map[string]string{"ClusterRole": "cluster", "Role": "own"}[role.Kind]
			for _, rule := range role.Rules {
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						for _, verb := range rule.Verbs {
							for _, of := range append(rule.ResourceNames, "")[:max(1, len(rule.ResourceNames))] {
								fmt.Fprintln(&all, strings.Join([]string{role.Name, scope, verb, group, resource, of}, "\t"))
								lines++
							}
						}
					}
				}
			}
		}
		if lines < 5 {
			t.Errorf("%s gives %d rights", file, lines)
		}
	}
	section.HoldFile(t, "view/rights.txt", all.String())
}

// TestVersionsOfKubernetes: what check takes for known is what the README promises.
func TestVersionsOfKubernetes(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("(Kubernetes 1.%d to 1.%d)", view.OldestMinor, view.NewestMinor); !strings.Contains(string(text), want) {
		t.Errorf("the README does not say %q", want)
	}
}

// TestFlagsPage: docs/reference/flags.md has all flags of the commands, but for kubectl's own.
func TestFlagsPage(t *testing.T) {
	root := rootForDocs()
	kubectls := pflag.NewFlagSet("", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(false).AddFlags(kubectls)
	var b strings.Builder
	b.WriteString("Every command has kubectl's flags for the cluster, such as `--context`, `--kubeconfig` and `-n`, and\n\n")
	b.WriteString(section.Flags(root.PersistentFlags(), func(f *pflag.Flag) bool { return kubectls.Lookup(f.Name) == nil }))
	for _, cmd := range root.Commands() {
		if flags := section.Flags(cmd.LocalNonPersistentFlags(), func(*pflag.Flag) bool { return true }); strings.Count(flags, "\n") > 2 {
			b.WriteString("\n`" + cmd.CommandPath() + "`\n\n" + flags)
		}
	}
	section.Hold(t, "../docs/reference/flags.md", name, b.String())
}

// TestKrewManifest: krew's manifest is of this program, of the version of the images and of
// the platforms that it is built for, and names commands that there are.
// https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
func TestKrewManifest(t *testing.T) {
	text, err := os.ReadFile("windlass.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		APIVersion string
		Kind       string
		Metadata   struct{ Name string }
		Spec       struct {
			Version, Homepage, ShortDescription, Description, Caveats string
			Platforms                                                 []struct {
				Selector struct{ MatchLabels map[string]string }
				URI, Bin string
				SHA256   string
				Files    []struct{ From, To string }
			}
		}
	}
	if err := yaml.UnmarshalStrict(text, &m); err != nil {
		t.Fatal(err)
	}
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" || "kubectl-"+m.Metadata.Name != name {
		t.Errorf("%s %s %s is none of krew's manifests of %s", m.APIVersion, m.Kind, m.Metadata.Name, name)
	}
	kustomization, err := os.ReadFile("../manifests/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(kustomization), "newTag: "+m.Spec.Version+"\n") {
		t.Errorf("version %s is not that of the images", m.Spec.Version)
	}
	if d := m.Spec.ShortDescription; d == "" || len(d) > 50 || strings.HasSuffix(d, ".") {
		t.Errorf("krew wants a short description of at most 50 characters without a dot: %q", d)
	}
	for _, cmd := range rootForDocs().Commands() {
		if !strings.Contains(m.Spec.Description, "  "+cmd.Name()+" ") && cmd.Name() != "version" {
			t.Errorf("the description does not have the command %s", cmd.Name())
		}
	}
	for _, p := range m.Spec.Platforms {
		system, arch := p.Selector.MatchLabels["os"], p.Selector.MatchLabels["arch"]
		bin, archive := name, name+"_"+m.Spec.Version+"_"+system+"_"+arch+".tar.gz"
		if system == "windows" {
			bin, archive = bin+".exe", strings.TrimSuffix(archive, "tar.gz")+"zip"
		}
		if p.Bin != bin || !strings.HasSuffix(p.URI, "/"+m.Spec.Version+"/"+archive) || len(p.SHA256) != 64 {
			t.Errorf("%s/%s: binary %s, from %s with hash %q", system, arch, p.Bin, p.URI, p.SHA256)
		}
	}
	if len(m.Spec.Platforms) != 6 {
		t.Errorf("%d platforms, want linux, darwin and windows on amd64 and arm64", len(m.Spec.Platforms))
	}
}

func TestVersion(t *testing.T) {
	var out strings.Builder
	c := &cli{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: io.Discard}, flags: genericclioptions.NewConfigFlags(false)}
	if err := c.run(t.Context(), []string{"version"}); err != nil || out.String() != name+" version "+telemetry.ThisBuild().String()+"\n" {
		t.Errorf("%q, error %v", out.String(), err)
	}
}

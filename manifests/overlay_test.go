package manifests

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// renderOverlay renders a folder beside this one that has such a kustomization.
func renderOverlay(t *testing.T, kustomization string) objects {
	t.Helper()
	return render(t, overlay(t, kustomization), "overlay")
}

// exampleRole is the one that settings.env shows.
const exampleRole = "arn:aws:iam::111122223333:role/windlass-scaler"

// overlay is a file system in memory with these manifests, in which the scaler's role is
// said, and an overlay.
func overlay(t *testing.T, kustomization string) filesys.FileSystem {
	t.Helper()
	memory := filesys.MakeFsInMemory()
	write := func(name, text string) {
		if err := memory.WriteFile(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) == ".go" {
			return err
		}
		body, err := os.ReadFile(name)
		write(path.Join("manifests", name), string(body))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	settings, err := memory.ReadFile("manifests/settings.env")
	if err != nil {
		t.Fatal(err)
	}
	said := strings.ReplaceAll(string(settings), "# SCALER_ROLE_ARN="+exampleRole, "SCALER_ROLE_ARN="+exampleRole)
	if said == string(settings) {
		t.Fatal("settings.env does not show how the scaler's role is said")
	}
	write("manifests/settings.env", said)
	write("overlay/kustomization.yaml", kustomization)
	return memory
}

// components are the names of all, in an order in which they go together: what takes
// policies out is the last.
func components(t *testing.T) []string {
	t.Helper()
	folders, err := os.ReadDir("components")
	if err != nil {
		t.Fatal(err)
	}
	const last = "no-admission-policy"
	var names []string
	for _, folder := range folders {
		if folder.Name() != last {
			names = append(names, folder.Name())
		}
	}
	return append(names, last)
}

// withComponents is an overlay in a namespace of its own, with some components.
func withComponents(names ...string) string {
	return "namespace: elsewhere\nresources: [../manifests]\ncomponents: [../manifests/components/" +
		strings.Join(names, ", ../manifests/components/") + "]\n"
}

// TestAnotherNamespace: one line moves all there is, with each component and with all.
// Nothing names the old place any more, not even in words for people.
func TestAnotherNamespace(t *testing.T) {
	names := components(t)
	sets := [][]string{names}
	for _, name := range names {
		sets = append(sets, []string{name})
	}
	for _, set := range sets {
		t.Run(strings.Join(set, "+"), func(t *testing.T) {
			all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(overlay(t, withComponents(set...)), "overlay")
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range all.Resources() {
				body, err := object.AsYAML()
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(body), "windlass-system") {
					t.Errorf("%s still names the old namespace:\n%s", object.CurId(), body)
				}
			}
		})
	}
}

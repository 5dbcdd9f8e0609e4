// Package manifests gives the manifests, and each component with them, to a real API
// server, as people do: a dry run and a difference first, then for good.
package manifests

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"windlass.dev/windlass/e2e/world"
)

// patience bounds it all: who runs into it has found a defect.
const patience = 20 * time.Minute

func TestServerTakesTheManifests(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	s := startServer(t)
	s.run("apply", "-f", "testdata/prometheus-operator.yaml")
	s.run("wait", "--for=condition=Established", "-f", "testdata/prometheus-operator.yaml")
	// A dry run does not make the namespace in which everything else is.
	s.run("apply", "-f", filepath.Join(s.manifests, "base", "namespace.yaml"))
	s.takes("as they come", s.manifests)
	components, err := os.ReadDir(filepath.Join(s.manifests, "components"))
	if err != nil {
		t.Fatal(err)
	}
	for _, component := range components {
		s.takes(component.Name(), s.overlay("components: [../manifests/components/"+component.Name()+"]"))
	}
}

// server is a control plane, on which no program of ours runs, and a copy of the manifests in which the
// scaler's role is said.
type server struct {
	*world.World
	t         *testing.T
	ctx       context.Context
	manifests string
}

func startServer(t *testing.T) *server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	programs, err := world.BuildControlPlane(ctx, t.TempDir(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	w, err := world.Start(ctx, world.Config{Spec: world.Spec{NoPrograms: true}, Programs: programs, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	root, err := world.Root(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{World: w, t: t, ctx: ctx, manifests: filepath.Join(t.TempDir(), "manifests")}
	if err := os.CopyFS(s.manifests, os.DirFS(filepath.Join(root, "manifests"))); err != nil {
		t.Fatal(err)
	}
	settings := "CLUSTER_NAME=" + world.ClusterName + "\nSCALER_ROLE_ARN=arn:aws:iam::111122223333:role/windlass-scaler\n"
	if err := os.WriteFile(filepath.Join(s.manifests, "settings.env"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// takes has the server take a folder: it has no objection in a dry run, warns of nothing,
// and afterwards has what the folder says, in every field of it.
func (s *server) takes(name, folder string) {
	s.t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
		on := &server{World: s.World, t: t, ctx: s.ctx}
		on.run("apply", "-k", folder, "--dry-run=server")
		on.run("apply", "-k", folder)
		if difference := on.run("diff", "-k", folder); difference != "" {
			t.Errorf("after it was applied, kubectl diff says\n%s", difference)
		}
	})
}

// overlay is a folder that adds such lines to the manifests.
func (s *server) overlay(lines string) string {
	s.t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(s.manifests), "overlay-")
	if err != nil {
		s.t.Fatal(err)
	}
	text := fmt.Sprintf("resources: [../manifests]\n%s\n", lines)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return dir
}

// run runs kubectl, which is to say nothing but its answer.
func (s *server) run(args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.ctx, s.Plane.Kubectl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Plane.Kubeconfig, "HOME="+s.Dir)
	var answer, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &answer, &complaints
	err := cmd.Run()
	if err != nil || complaints.Len() > 0 {
		s.t.Errorf("kubectl %s: %v\n%s", strings.Join(args, " "), err, complaints.String())
	}
	return answer.String()
}

package helm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// patience bounds it all: who runs into it has found a defect.
const patience = 5 * time.Minute

// cluster is a real API server with its controllers, and no nodes: no pod of it runs.
type cluster struct {
	t       *testing.T
	ctx     context.Context
	kubectl string
}

func start(t *testing.T) cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	dir := t.TempDir()
	supervisor := filepath.Join(dir, "controlplane")
	if out, err := exec.CommandContext(ctx, "go", "build", "-C", "../controlplane", "-o", supervisor, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the control plane's supervisor: %v\n%s", err, out)
	}
	cmd := exec.Command(supervisor, "up", "--dir", filepath.Join(dir, "cluster"))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("ending the control plane: %v", err)
		}
	})
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() {
		t.Fatal("the control plane is not ready; its supervisor said why on standard error")
	}
	var ready struct{ Kubeconfig, Kubectl string }
	if err := json.Unmarshal(lines.Bytes(), &ready); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", ready.Kubeconfig)
	t.Setenv("HOME", dir)
	return cluster{t, ctx, ready.Kubectl}
}

// run runs kubectl, which is to complain of nothing.
func (c cluster) run(args ...string) string {
	c.t.Helper()
	cmd := exec.CommandContext(c.ctx, c.kubectl, args...)
	var answer, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &answer, &complaints
	if err := cmd.Run(); err != nil || complaints.Len() > 0 {
		c.t.Errorf("kubectl %s: %v\n%s%s", strings.Join(args, " "), err, answer.String(), complaints.String())
	}
	return answer.String()
}

// is holds the cluster against manifests: `kubectl diff` finds nothing.
func (c cluster) is(folder string) {
	c.t.Helper()
	if difference := c.run("diff", "-k", folder); difference != "" {
		c.t.Errorf("kubectl diff -k says\n%s", difference)
	}
}

// commandOf is the command of the chart's README, word by word, in our words for what it
// leaves open.
func commandOf(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chart, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^    helm (install (?:.*\\\n)*.*)$`).FindSubmatch(text)
	if found == nil {
		t.Fatal("the README does not say how the chart is installed")
	}
	command := strings.NewReplacer("\\\n", " ", "charts/windlass", chart, "REGISTRY", "registry.example.com").Replace(string(found[1]))
	return strings.Fields(command)
}

// TestInstall: a life of a release, from the README's command on. At each step the cluster has
// what kustomize makes of the manifests with the same components.
func TestInstall(t *testing.T) {
	c := start(t)
	with := func(cluster string, components ...string) string {
		folder := manifests(t, "CLUSTER_NAME="+cluster+"\nSCALER_ROLE_ARN="+role+"\n", "windlass-system", components...)
		file := filepath.Join(folder, "kustomization.yaml")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		write(t, file, string(text)+"images:\n"+
			"  - {name: windlass-agent, newName: registry.example.com/windlass-agent}\n"+
			"  - {name: windlass-scaler, newName: registry.example.com/windlass-scaler}\n")
		return folder
	}
	upgrade := func(values ...string) {
		helm(t, append([]string{"upgrade", "windlass", chart, "--namespace=windlass-system", "--reset-then-reuse-values"}, values...)...)
	}

	helm(t, commandOf(t)...)
	// Helm makes the namespace without labels.
	c.run("label", "namespace", "windlass-system", "pod-security.kubernetes.io/enforce=privileged",
		"pod-security.kubernetes.io/audit=privileged", "pod-security.kubernetes.io/warn=privileged", "app.kubernetes.io/part-of=windlass")
	c.is(with("my-cluster", "eks-irsa"))

	upgrade("--set=components.lastChanceDelete=true", "--set=components.networkPolicy=true", "--set=components.impersonationOnly=true")
	c.is(with("my-cluster", "eks-irsa", "last-chance-delete", "network-policy", "impersonation-only"))
	if left := c.run("get", "clusterroles,validatingadmissionpolicies", "-o", "name"); strings.Contains(left, "windlass-agent-direct") || strings.Contains(left, "windlass-agent-evictions") {
		t.Errorf("what a component takes out is still there:\n%s", left)
	}

	// Another cluster's name makes other settings, under another name, and with them new scalers.
	upgrade("--set=autoDiscovery.clusterName=other")
	c.is(with("other", "eks-irsa", "last-chance-delete", "network-policy", "impersonation-only"))
	if left := c.run("-n", "windlass-system", "get", "configmaps", "-o", "name"); strings.Count(left, "windlass-settings-") != 1 {
		t.Errorf("ConfigMaps after an upgrade to other settings:\n%s", left)
	}

	helm(t, "rollback", "windlass", "1", "--namespace=windlass-system")
	c.is(with("my-cluster", "eks-irsa"))

	helm(t, "uninstall", "windlass", "--namespace=windlass-system", "--wait")
	if left := c.run("get", "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings", "-o", "name"); strings.Contains(left, "windlass") {
		t.Errorf("uninstall left\n%s", left)
	}
	if left := c.run("-n", "windlass-system", "get", "deployments,daemonsets,configmaps,serviceaccounts,roles,poddisruptionbudgets", "-o", "name"); strings.Contains(left, "windlass") {
		t.Errorf("uninstall left\n%s", left)
	}

	// What `kubectl apply -k` made, a release takes over, and leaves as it is.
	c.run("delete", "namespace", "windlass-system")
	folder := with("my-cluster", "eks-irsa")
	c.run("apply", "-k", folder)
	// A template of pods that changes makes another of these.
	programs := func() string {
		return c.run("-n", "windlass-system", "get", "replicasets,controllerrevisions", "-o", "name")
	}
	c.run("-n", "windlass-system", "wait", "--for=create", "controllerrevisions", "-l", "app.kubernetes.io/name=windlass-agent")
	c.run("-n", "windlass-system", "wait", "--for=create", "replicasets", "-l", "app.kubernetes.io/name=windlass-scaler")
	before := programs()
	helm(t, append(commandOf(t), "--take-ownership", "--force-conflicts")...)
	c.is(folder)
	c.run("-n", "windlass-system", "wait", "--for=jsonpath={.status.observedGeneration}="+c.run("-n", "windlass-system", "get", "daemonset", "windlass-agent", "-o", "jsonpath={.metadata.generation}"), "daemonset/windlass-agent")
	c.run("-n", "windlass-system", "wait", "--for=jsonpath={.status.observedGeneration}="+c.run("-n", "windlass-system", "get", "deployment", "windlass-scaler", "-o", "jsonpath={.metadata.generation}"), "deployment/windlass-scaler")
	if after := programs(); after != before {
		t.Errorf("other programs are started: %s, and before %s", after, before)
	}
	helm(t, "uninstall", "windlass", "--namespace=windlass-system", "--wait")

	// A chart that makes the release's namespace itself makes it with its labels.
	c.run("delete", "namespace", "windlass-system")
	helm(t, append(commandOf(t), "--set=createNamespace=true")...)
	c.is(with("my-cluster", "eks-irsa"))
}

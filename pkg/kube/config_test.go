package kube

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://127.0.0.1:6443"}}]
users: [{name: u, user: {token: t}}]
`

func TestConfigFromAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := Config(path, "windlass-agent", "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:6443" || config.BearerToken != "t" {
		t.Errorf("host %q, token %q", config.Host, config.BearerToken)
	}
	if config.QPS >= 0 {
		t.Errorf("client-side limit of %v requests a second", config.QPS)
	}
	if !strings.HasPrefix(config.UserAgent, "windlass-agent/v1.2.3 (") {
		t.Errorf("user agent %q", config.UserAgent)
	}
	if config.ContentType != "application/vnd.kubernetes.protobuf" {
		t.Errorf("content type %q", config.ContentType)
	}
}

func TestConfigSaysWhatIsMissing(t *testing.T) {
	if _, err := Config(filepath.Join(t.TempDir(), "missing"), "p", "v"); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("error %v does not name the file", err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := Config("", "p", "v"); !errors.Is(err, ErrNoCluster) {
		t.Errorf("error %v, want ErrNowhere", err)
	}
}

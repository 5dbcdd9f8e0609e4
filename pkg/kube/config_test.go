package kube

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
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

// TestConfigOfUser: commands that people run find the cluster that kubectl would.
func TestConfigOfUser(t *testing.T) {
	folder := t.TempDir()
	file := func(name, server string) string {
		path := filepath.Join(folder, name)
		text := `{"apiVersion":"v1","kind":"Config","current-context":"` + name + `","contexts":[{"name":"` + name + `","context":{"cluster":"` + name + `"}}],"clusters":[{"name":"` + name + `","cluster":{"server":"` + server + `"}}]}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	flag, first, second, home := file("flag", "http://127.0.0.1:1"), file("first", "http://127.0.0.1:2"), file("second", "http://127.0.0.1:3"), file("home", "http://127.0.0.1:4")
	missing := filepath.Join(folder, "missing")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	ofHome := clientcmd.RecommendedHomeFile
	defer func() { clientcmd.RecommendedHomeFile = ofHome }()
	for _, c := range []struct{ flag, environment, home, want string }{
		{flag, first, home, "http://127.0.0.1:1"},
		{"", first, home, "http://127.0.0.1:2"},
		{"", second + string(filepath.ListSeparator) + first, home, "http://127.0.0.1:3"},
		{"", missing + string(filepath.ListSeparator) + first, home, "http://127.0.0.1:2"},
		{"", "", home, "http://127.0.0.1:4"},
		{missing, first, home, ""},
		{"", "", missing, ""},
	} {
		t.Setenv("KUBECONFIG", c.environment)
		clientcmd.RecommendedHomeFile = c.home
		config, err := ConfigOfUser(c.flag, "p", "v")
		switch {
		case c.want != "":
			if err != nil || config.Host != c.want || config.QPS != -1 {
				t.Errorf("%+v: %v, %v", c, config, err)
			}
		case c.flag != "" && (err == nil || !strings.Contains(err.Error(), c.flag)):
			t.Errorf("%+v: %v; want an error that names the file", c, err)
		case c.flag == "" && (!errors.Is(err, ErrNoCluster) || !strings.Contains(err.Error(), "$KUBECONFIG")):
			t.Errorf("%+v: %v; want ErrNoCluster", c, err)
		}
	}
}

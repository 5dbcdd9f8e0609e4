package migrate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// arguments are what is read of a text, each as name=value.
func arguments(t *testing.T, of Program, text string) []string {
	t.Helper()
	var in Input
	if err := in.AddFile(of, text, "file"); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, a := range in.Arguments {
		shown := a.Name + "=" + a.Value
		if a.Bare {
			shown = a.Name
		}
		if a.Unset != "" {
			shown += " without " + a.Unset
		}
		all = append(all, shown)
	}
	return all
}

func TestReadArguments(t *testing.T) {
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{image: x/cluster-autoscaler:v1, %}]}}}\n"
	workload := func(container string) string { return strings.Replace(deployment, "%", container, 1) }
	for name, tc := range map[string]struct {
		of   Program
		text string
		want []string
	}{
		"one a line":                {"", "--v=4\n--nodes=1:2:a\n\n--nodes=1:2:b", []string{"v=4", "nodes=1:2:a", "nodes=1:2:b"}},
		"a command line":            {"", "./cluster-autoscaler --v 4 --scale-down-enabled --nodes '1:2:a b' \\\n -stderrthreshold=info", []string{"v=4", "scale-down-enabled", "nodes=1:2:a b", "stderrthreshold=info"}},
		"a switch has no next word": {"", "--scale-down-enabled false", []string{"scale-down-enabled", "=false"}},
		"a value that is negative":  {"", "--expendable-pods-priority-cutoff -10", []string{"expendable-pods-priority-cutoff=-10"}},
		"an unknown flag":           {"", "--a b --c --d=e", []string{"a=b", "c", "d=e"}},
		"no value":                  {"", "--expander", []string{"expander"}},
		"a list in YAML":            {"", "# mine\n- ./cluster-autoscaler\n- --v=4 # much\n- \"--nodes=1:2:a\"", []string{"v=4", "nodes=1:2:a"}},
		"a list in HCL":             {"", "[\n  \"./cluster-autoscaler\",\n  \"--v=4\",\n  \"--expander=price,least-waste\",\n]", []string{"v=4", "expander=price,least-waste"}},
		"a list in JSON":            {"", `["--scale-down-enabled=false","--nodes=1:10:web"]`, []string{"scale-down-enabled=false", "nodes=1:10:web"}},
		"with the program":          {"", `["./cluster-autoscaler","--nodes=1:2:a", "--v=4"]` + "\n", []string{"nodes=1:2:a", "v=4"}},
		"a list in single quotes":   {"", `['./cluster-autoscaler', '--nodes=1:2:a']`, []string{"nodes=1:2:a"}},
		"a shell in JSON":           {"", `["sh", "-c", "./cluster-autoscaler --nodes=1:2:a"]`, []string{"nodes=1:2:a"}},
		"a first word with a flag":  {"", "x--v=4 --nodes=1:2:a", []string{"=x--v=4", "nodes=1:2:a"}},
		"the handler's by its name": {"", "./node-termination-handler", nil},
		"the handler's":             {Handler, "--enable-sqs-termination-draining --queue-url=u", []string{"enable-sqs-termination-draining", "queue-url=u"}},
		"command and arguments":     {"", workload("command: [./cluster-autoscaler], args: [--v=4, --nodes, '1:2:a']"), []string{"v=4", "nodes=1:2:a"}},
		"arguments alone":           {"", workload("args: [--v=4]"), []string{"v=4"}},
		"a shell":                   {"", workload("command: [/bin/sh, -c, 'exec ./cluster-autoscaler --v=4 --nodes=\"1:2:a\" 2>&1']"), []string{"v=4", "nodes=1:2:a", "=2>&1"}},
		"variables":                 {"", workload("command: [./cluster-autoscaler, '--nodes=1:2:$(GROUP)', '--expander=$(E)', '--status-config-map-name=$$(E)'], env: [{name: GROUP, value: web}]"), []string{"nodes=1:2:web", "expander=$(E) without E", "status-config-map-name=$(E)"}},
		"values":                    {"", "autoDiscovery: {clusterName: c}\nextraArgs: {v: 4, scale-down-enabled: null, max-nodes-total: 5000000, balancing-ignore-label_1: a, balancing-ignore-label_2: b}", []string{"node-group-auto-discovery=asg:tag=k8s.io/cluster-autoscaler/enabled,k8s.io/cluster-autoscaler/c", "balancing-ignore-label=a", "balancing-ignore-label=b", "max-nodes-total=5000000", "scale-down-enabled", "v=4"}},
		"values without a cluster":  {"", "autoDiscovery: {clusterName: null, tags: [a]}\nautoscalingGroups: [{name: a, minSize: 1, maxSize: 2}]\ncustomArgs: ['--v=4']", []string{"nodes=1:2:a", "v=4"}},
		"the handler's values":      {"", "enableSqsTerminationDraining: true\nqueueURL: u\ninstanceMetadataURL: m\npodTerminationGracePeriod: null\nwebhookURL: ''", []string{"enable-sqs-termination-draining=true", "metadata-url=m", "queue-url=u"}},
		"a document's beginning":    {"", "--- # mine\nextraArgs: {v: 4}", []string{"v=4"}},
		"several documents":         {"", "apiVersion: v1\nkind: Service\n---\n" + workload("command: [./cluster-autoscaler, --v=4]"), []string{"v=4"}},
		"a list of objects":         {"", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: apps/v1, kind: DaemonSet, metadata: {name: nth}, spec: {template: {spec: {containers: [{image: a/aws-node-termination-handler, env: [{name: CORDON_ONLY, value: 'true'}, {name: TAINT_EFFECT, value: ''}]}]}}}}", []string{"cordon-only=true"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, arguments(t, tc.of, tc.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDottedKey: a key with dots is no path to Helm, and is reported and not taken.
func TestDottedKey(t *testing.T) {
	var in Input
	if err := in.AddFile("", "autoDiscovery.clusterName: foo\nautoscalingGroups: [{name: a, minSize: 1, maxSize: 2}]\n", "file"); err != nil {
		t.Fatal(err)
	}
	report := Translate(in, nil)
	if len(report.Unknown) != 1 || report.Unknown[0].Name != `"autoDiscovery.clusterName"` || report.Settings.Cluster != "" {
		t.Errorf("unknown %v, cluster %q", report.Unknown, report.Settings.Cluster)
	}
}

// TestReadWrong: what cannot be read is refused with its place and a remedy.
func TestReadWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"a quote":      {"--v=4\n--nodes='1:2:a\n--x", []string{"file line 2", "not closed", "close it"}},
		"no YAML":      {"extraArgs: {v: 4\n", []string{"file is no YAML", "line"}},
		"whose values": {"nameOverride: a\n", []string{"not clear whose", "--termination-handler"}},
		"nothing":      {"apiVersion: v1\nkind: Service\n", []string{"nothing of Cluster Autoscaler", "begin with --"}},
		"empty":        {"", []string{"nothing of Cluster Autoscaler"}},
		"bytes":        {"--v=4\n--x=\xff", []string{"file line 2", "UTF-8"}},
		"no groups":    {"autoscalingGroups: 3\n", []string{"autoscalingGroups", "name, minSize and maxSize"}},
		"no map":       {"extraArgs: 3\n", []string{"extraArgs", "keys with values"}},
		"no monitor":   {"serviceMonitor: true\nextraArgs: {v: 4}\n", []string{"file: serviceMonitor", "keys with values, not true"}},
		"no rule":      {"prometheusRule: true\nextraArgs: {v: 4}\n", []string{"file: prometheusRule", "keys with values, not true"}},
		"no tags":      {"autoDiscovery: {clusterName: c, tags: a}\n", []string{"file: autoDiscovery", "want a list of tags beside it, not a"}},
		"no priorities": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cluster-autoscaler-priority-expander}\ndata: {a: b}\n",
			[]string{"no key priorities", "cluster-autoscaler-priority-expander"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := new(Input).AddFile("", tc.text, "file")
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nlacks %q", err, want)
				}
			}
		})
	}
}

// Who asks AWS, and by which files, is not carried over: the role trusts another account, and the scaler
// has not these files. Where AWS is asked is.
func TestCredentialsAreNotCarriedOver(t *testing.T) {
	var in Input
	text := `apiVersion: apps/v1
kind: Deployment
metadata: {name: autoscaler}
spec: {template: {spec: {containers: [{image: a/cluster-autoscaler, command: [./cluster-autoscaler], env: [{name: AWS_ROLE_ARN, value: arn}, {name: AWS_WEB_IDENTITY_TOKEN_FILE, value: /var/run/token}, {name: AWS_CA_BUNDLE, value: /etc/ca.pem}, {name: AWS_STS_REGIONAL_ENDPOINTS, value: regional}]}]}}}`
	if err := in.AddFile(Autoscaler, text, "file"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"AWS_STS_REGIONAL_ENDPOINTS": "regional"}, in.Variables); diff != "" {
		t.Errorf("(-want +carried over):\n%s", diff)
	}
	if len(in.open) != 3 {
		t.Errorf("to decide: %v", in.open)
	}
}

// What may be a secret is named, and stands nowhere: not in what is printed, nor in what is installed.
func TestSecretsAreWithheld(t *testing.T) {
	var in Input
	for _, file := range []struct {
		of   Program
		text string
	}{
		{Autoscaler, "awsAccessKeyID: hunter2a\nawsSecretAccessKey: hunter2b\nextraEnv: {FOO_PASSWORD: hunter2c, GITHUB_TOKEN: hunter2d, HTTPS_PROXY: 'u:hunter2k@proxy:3128', GIT_URL: 'https://hunter2l@host'}\nappSecrets: {db: hunter2m}\nenvFromSecret: shown"},
		{Handler, "webhookTemplate: '{\"routing_key\":\"hunter2j\"}'\nwebhookURL: https://hooks.example.com/hunter2e\nwebhookHeaders: '{\"Authorization\":\"hunter2f\"}'"},
		{Handler, `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: handler}
spec: {template: {spec: {containers: [{image: a/aws-node-termination-handler, args: [--webhook-proxy=http://hunter2g@proxy], env: [{name: WEBHOOK_URL, value: "https://hunter2h"}, {name: OTHER, value: hunter2i}]}]}}}`},
	} {
		if err := in.AddFile(file.of, file.text, "file"); err != nil {
			t.Fatal(err)
		}
	}
	report := Translate(in, func(string, string) error { return nil })
	whole, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{report.Text(), string(whole)} {
		if i := strings.Index(text, "hunter2"); i >= 0 {
			t.Errorf("a secret is in %q", text[max(0, i-100):i+8])
		}
	}
	for _, name := range []string{"awsAccessKeyID", "awsSecretAccessKey", "FOO_PASSWORD", "GITHUB_TOKEN", "webhook-url", "webhook-headers", "webhook-proxy", "OTHER", "HTTPS_PROXY", "envFromSecret=shown"} {
		if !strings.Contains(report.Text(), name) {
			t.Errorf("%s is not named", name)
		}
	}
}

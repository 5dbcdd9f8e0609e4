package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/docs/section"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/migrate"
)

// TestMigratedFlagsPage: docs/reference/migrated-flags.md has the table of package migrate.
func TestMigratedFlagsPage(t *testing.T) {
	for _, of := range []migrate.Program{migrate.Autoscaler, migrate.Handler} {
		var rows [][]string
		for _, row := range migrate.Rows() {
			if row.Of == of {
				rows = append(rows, row.Cells())
			}
		}
		section.Hold(t, "../docs/reference/migrated-flags.md", of.Name(), section.Table([]string{"flag", "default", "becomes", ""}, rows))
	}
}

// TestMigratedFlagsAreOurs: each flag that a flag of Cluster Autoscaler becomes is there and of the
// same kind, and the defaults of a flag that keeps its name differ where the table says so, and nowhere else.
func TestMigratedFlagsAreOurs(t *testing.T) {
	kinds := map[string]string{"int32": "int", "float64": "float", "stringArray": "list"}
	for _, row := range migrate.Rows() {
		name, isScaler := strings.CutPrefix(row.Becomes, "--")
		if row.Becomes == "=" {
			name, isScaler = row.Flag, true
		}
		name, isBoth := strings.CutPrefix(name, "both --")
		if row.Of != migrate.Autoscaler || !isScaler && !isBoth {
			continue
		}
		flags := flagsOfRun(new(settings))
		flag := flags.Lookup(name)
		if flag == nil {
			t.Errorf("--%s becomes --%s, which is not there", row.Flag, name)
			continue
		}
		kind := flag.Value.Type()
		if k, ok := kinds[kind]; ok {
			kind = k
		}
		kindsAgree := row.Kind == kind || row.Kind == "value" && !slices.Contains([]string{"bool", "int", "float", "duration", "list"}, kind)
		if !kindsAgree && row.Flag != "leader-elect-resource-name" {
			t.Errorf("--%s is a %s, and --%s a %s", row.Flag, row.Kind, name, kind)
		}
		if strings.HasPrefix(row.Becomes, "--") || row.Kind == "list" || row.Rule != "" && row.Rule != "notneg" {
			continue
		}
		if err := flags.Set(name, row.Default); err != nil {
			t.Errorf("--%s=%s, its default: %v", row.Flag, row.Default, err)
			continue
		}
		if differs := flag.Value.String() != flag.DefValue; differs != row.OtherDefault {
			t.Errorf("--%s is %s by default, --%s %s; the table says that they differ: %v", row.Flag, row.Default, name, flag.DefValue, row.OtherDefault)
		}
	}
}

// publicCases are the argument lists of public manifests.
func publicCases(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("migrate/testdata/public/*")
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(name string) bool {
		return filepath.Ext(name) == ".md" || strings.HasSuffix(name, ".overlay.yaml") || strings.HasSuffix(name, ".values.yaml")
	})
	if len(all) < 15 {
		t.Fatalf("%d cases, want those of testdata/public/README.md", len(all))
	}
	return all
}

// TestMigratePublicManifests: what people have is translated, as an overlay that kustomize builds
// and as values; the arguments of the scaler in it are parsed and sound. What helm makes of the
// values is held against the overlay in e2e/helm.
func TestMigratePublicManifests(t *testing.T) {
	for _, file := range publicCases(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			stem := strings.TrimSuffix(strings.TrimSuffix(file, filepath.Ext(file)), ".cas")
			stem = strings.TrimSuffix(stem, ".nth")
			overlay, err := migrated(t, "kustomize", file)
			section.HoldFile(t, stem+".overlay.yaml", overlay)
			values, valuesErr := migrated(t, "helm", file)
			section.HoldFile(t, stem+".values.yaml", values)
			if (err == nil) != (valuesErr == nil) {
				t.Errorf("as an overlay %v, as values %v", err, valuesErr)
			}
			scaler, agent := built(t, overlay)
			if scaler[0] != "run" {
				t.Errorf("the scaler's command is %q", scaler)
			}
			var s settings
			flags := flagsOfRun(&s)
			if err := flags.Parse(scaler[1:]); err != nil {
				t.Fatal(err)
			}
			s.identity = "a"
			if err := s.check(); err != nil {
				t.Error(err)
			}
			if len(agent) == 0 {
				t.Error("the agent has no arguments")
			}
		})
	}
}

// migrated is what migrate prints for files.
func migrated(t *testing.T, output string, files ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := migrateCommand(strings.NewReader(""), &out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append([]string{"-o", output}, files...))
	err := cmd.Execute()
	if err != nil {
		if _, ok := errors.AsType[undecided](err); !ok {
			t.Fatal(err)
		}
	}
	return out.String(), err
}

// built has kustomize build an overlay of the manifests, and returns the arguments in it.
func built(t *testing.T, overlay string) (scaler, agent []string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "windlass", "manifests"), os.DirFS("../manifests")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "mine"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mine", "kustomization.yaml"), []byte(overlay), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(dir, "mine"))
	if err != nil {
		t.Fatalf("%v\n%s", err, overlay)
	}
	for _, object := range all.Resources() {
		if object.GetKind() != "Deployment" && object.GetKind() != "DaemonSet" {
			continue
		}
		text, err := object.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		var workload appsv1.Deployment
		if err := yaml.Unmarshal(text, &workload); err != nil {
			t.Fatal(err)
		}
		args := workload.Spec.Template.Spec.Containers[0].Args
		if object.GetName() == contract.AppScaler {
			scaler = args
		} else {
			agent = args
		}
	}
	return scaler, agent
}

// ranAs has the command run read arguments, and returns its settings and what it logs.
func ranAs(args ...string) (s *settings, log string, err error) {
	s = new(settings)
	flags := flagsOfRun(s)
	s.foreign.register(flags)
	if err := flags.Parse(migrate.TwoDashes(args)); err != nil {
		return s, "", err
	}
	ignored, err := s.foreign.adopt(flags)
	return s, ignored, err
}

// TestEveryFlagOfClusterAutoscalerIsAnswered: each is taken, named as one that means nothing, or refused
// with what to do; with its default none is refused.
func TestEveryFlagOfClusterAutoscalerIsAnswered(t *testing.T) {
	ours := flagsOfRun(new(settings))
	for _, row := range migrate.Rows() {
		if row.Of != migrate.Autoscaler || ours.Lookup(row.Flag) != nil {
			continue
		}
		arg := "--" + row.Flag + "=" + row.Default
		if row.Kind == "bool" && row.Default == "" {
			t.Errorf("%s has no default", arg)
		}
		s, ignored, err := ranAs(arg)
		if row.Default == "" && row.Becomes != "-" {
			continue // there is no such value
		}
		if err != nil {
			t.Errorf("%s, the default: %v", arg, err)
		}
		says := row.Becomes == "-" || row.Becomes == "?" || row.Becomes == "provider" || row.Rule == "other"
		if len(s.foreign.given) != 1 || (ignored != "") != says {
			t.Errorf("%s becomes %q, and is ignored because %q", arg, row.Becomes, ignored)
		}
		if row.Becomes != "?" {
			continue
		}
		value := map[string]string{"false": "true", "true": "false"}[row.Default]
		if value == "" {
			value = "7"
		}
		_, _, err = ranAs("--" + row.Flag + "=" + value)
		if err == nil || !strings.Contains(err.Error(), row.Why) || !strings.Contains(row.Why, "leave this out") && !strings.Contains(row.Why, ": ") {
			t.Errorf("--%s=%s: %v, which does not say what to do", row.Flag, value, err)
		}
	}
}

// TestPastedArguments: arguments of public manifests are taken by run as they are, with one line about
// those that mean nothing.
func TestPastedArguments(t *testing.T) {
	for _, file := range publicCases(t) {
		if filepath.Ext(file) != ".args" {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var in migrate.Input
			if err := in.AddFile(migrate.Autoscaler, string(text), file); err != nil {
				t.Fatal(err)
			}
			args := []string{"run", "--kubeconfig=/no/such/file"}
			for _, a := range in.Arguments {
				if a.Bare {
					args = append(args, "--"+a.Name)
				} else {
					args = append(args, "--"+a.Name+"="+a.Value)
				}
			}
			var log bytes.Buffer
			err = run(t.Context(), slices.DeleteFunc(args, func(a string) bool { return a == "--nodes=0:9:c" }), &log, &log)
			if err == nil || !strings.Contains(err.Error(), "/no/such/file") {
				t.Errorf("%v: want all flags taken, and the kubeconfig missed", err)
			}
			if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "--v: ") {
				t.Errorf("%d warnings, want one that names each flag:\n%s", n, log.String())
			}
		})
	}
}

// TestForeignFlags: those that are others of Windlass's act as these.
func TestForeignFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
		err  string
	}{
		"schedulers that are allowed":  {[]string{"--allowed-scheduler-names=a,b"}, "[a b] 0 []", ""},
		"a scheduler that is bypassed": {[]string{"--bypassed-scheduler-names", "a"}, "[default-scheduler a] 0 []", ""},
		"beside ours":                  {[]string{"--scheduler-name=z", "--bypassed-scheduler-names=a"}, "[z a] 0 []", ""},
		"an older name":                {[]string{"--max-empty-bulk-delete=7"}, "[default-scheduler] 7 []", ""},
		"an older name beside ours":    {[]string{"--max-empty-bulk-delete=7", "--max-scale-down-parallelism=3"}, "[default-scheduler] 3 []", ""},
		"a lease":                      {[]string{"--leader-elect-resource-name=x"}, "[default-scheduler] 0 [x]", ""},
		"one dash":                     {[]string{"-logtostderr", "-v=4", "-v", "4", "-stderrthreshold", "info"}, "[default-scheduler] 0 []", ""},
		"no number":                    {[]string{"--max-empty-bulk-delete=x"}, "", "want a whole number"},
		"a limit of GPUs":              {[]string{"--gpu-total=a:0:4"}, "", "bound the groups that have GPUs by their maximum"},
		"a flag that there is not":     {[]string{"--no-such"}, "", "unknown flag: --no-such"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, err := ranAs(tc.args...)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprint(s.policy.Schedulers, s.policy.MaxScaleDownParallelism, s.autoscalerLeases)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestMigrateWhatRuns: in the cluster the programs are found by their images, with the role of the account
// and the priorities; several are told apart by name.
func TestMigrateWhatRuns(t *testing.T) {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	pod := func(image string, args ...string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: "ca", Containers: []corev1.Container{{Image: image, Args: args}}}}
	}
	autoscaler := &appsv1.Deployment{ObjectMeta: meta("kube-system", "ca"), Spec: appsv1.DeploymentSpec{Template: pod("x/cluster-autoscaler:v1", "--nodes=1:3:web", "--expander=priority")}}
	second := &appsv1.Deployment{ObjectMeta: meta("other", "ca"), Spec: appsv1.DeploymentSpec{Template: pod("x/cluster-autoscaler:v1", "--nodes=1:3:db")}}
	handler := &appsv1.DaemonSet{ObjectMeta: meta("kube-system", "nth"), Spec: appsv1.DaemonSetSpec{Template: pod("x/aws-node-termination-handler:v1", "--cordon-only")}}
	account := &corev1.ServiceAccount{ObjectMeta: meta("kube-system", "ca")}
	account.Annotations = map[string]string{contract.AnnotationRoleIRSA: "arn:aws:iam::111122223333:role/ca"}
	priorities := &corev1.ConfigMap{ObjectMeta: meta("kube-system", contract.ConfigMapPriorities), Data: map[string]string{contract.PrioritiesKey: "10: [.*]"}}

	tenants := &appsv1.DaemonSet{ObjectMeta: meta("tenant", "nth"), Spec: appsv1.DaemonSetSpec{Template: pod("x/aws-node-termination-handler:v1", "--enable-spot-interruption-draining=false")}}

	read := func(deployment, namespace string, client *fake.Clientset) (migrate.Settings, error) {
		var in migrate.Input
		err := readRunning(context.Background(), client, &in, chosen{deployment, namespace})
		return migrate.Translate(in, checkForeignValue).Settings, err
	}
	got, err := read("", "kube-system", fake.NewClientset(autoscaler, handler, tenants, account, priorities))
	if err != nil {
		t.Fatal(err)
	}
	want := migrate.Settings{
		Scaler: []migrate.Setting{{Flag: "expander", Value: "priority", Kind: "value"}, {Flag: "nodes", Value: "1:3:web", Kind: "list"}},
		Agent:  []migrate.Setting{{Flag: "notice-policy", Value: "maintenance=cordon,spot=cordon"}},
		Role:   "arn:aws:iam::111122223333:role/ca", RoleBy: migrate.EKSIRSA, Priorities: "10: [.*]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got, err = read("other/ca", "", fake.NewClientset(autoscaler, second))
	if err != nil || got.Scaler[0].Value != "1:3:db" || got.Role != "" {
		t.Errorf("the one that is named: %v, %v", got, err)
	}
	for _, tc := range []struct {
		deployment, namespace string
		client                *fake.Clientset
		want                  string
	}{
		{"", "", fake.NewClientset(handler, tenants), "termination handlers run in several namespaces, DaemonSet kube-system/nth, DaemonSet tenant/nth: name one by --handler-namespace=NAMESPACE"},
		{"", "none", fake.NewClientset(autoscaler, handler), "--handler-namespace=none: there is none"},
		{"", "", fake.NewClientset(autoscaler, second), "several Cluster Autoscalers run, Deployment kube-system/ca, Deployment other/ca: name one by --deployment=NAMESPACE/NAME"},
		{"", "", fake.NewClientset(account), "neither Cluster Autoscaler nor the Node Termination Handler runs in the cluster"},
		{"other/x", "", fake.NewClientset(autoscaler), "--deployment=other/x: there is none"},
	} {
		if _, err := read(tc.deployment, tc.namespace, tc.client); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v, want %q", err, tc.want)
		}
	}
}

// TestMigrateArguments: what is wrong with those of migrate itself, and how it ends.
func TestMigrateArguments(t *testing.T) {
	for _, tc := range []struct {
		input string
		args  []string
		want  string
	}{
		{"", []string{"-o", "toml"}, "--output=toml: want one of [kustomize helm json table]"},
		{"", []string{"--namespace=A_b", "-"}, "--namespace=A_b is no namespace"},
		{"", []string{"/no/such/file"}, "/no/such/file"},
		{"--v=4", []string{"--deployment=a/b", "-"}, "give them without files"},
		{"--nodes=1:2:a --no-such", []string{"-"}, "1 of what was given need a decision"},
		{"--nodes=1:2:a --initial-node-group-backoff-duration=1h", []string{"-"}, "1 of what was given need a decision"},
		{"--nodes=1:2:a --v=4", []string{"-"}, ""},
		{"--nodes=1:2:a --v=4", []string{"-o", "json", "--cluster-autoscaler", "-"}, ""},
		{"--cordon-only", []string{"-o", "table", "--termination-handler", "-"}, ""},
	} {
		var out bytes.Buffer
		cmd := migrateCommand(strings.NewReader(tc.input), &out)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(tc.args)
		err := cmd.Execute()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("migrate %q < %q: %v, want %q", tc.args, tc.input, err, tc.want)
		}
		if _, answered := errors.AsType[undecided](err); (err == nil || answered) != (out.Len() > 0) {
			t.Errorf("migrate %q < %q: %v with %d bytes of answer", tc.args, tc.input, err, out.Len())
		}
	}
}

package userdata_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/scaler/asg/userdata"
)

func parse(text string) userdata.Settings {
	return userdata.Parse(base64.StdEncoding.EncodeToString([]byte(text)))
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each form that EKS images know, in the documents that EKS, eksctl and the
// guides write.
func TestForms(t *testing.T) {
	for _, tc := range []struct {
		file string
		want userdata.Settings
	}{
		{"eks-al2.mime", userdata.Settings{
			Family:  userdata.AmazonLinux,
			Density: userdata.Density{Most: 110, Unlimited: true},
			Labels: map[string]string{
				"eks.amazonaws.com/nodegroup": "web", "eks.amazonaws.com/capacityType": "ON_DEMAND",
				"eks.amazonaws.com/nodegroup-image": "ami-0123456789abcdef0", "team": "blue",
			},
			Taints: []corev1.Taint{{Key: "dedicated", Value: "web", Effect: "NoSchedule"}},
		}},
		{"al2-own.sh", userdata.Settings{
			Family:         userdata.AmazonLinux,
			Density:        userdata.Density{Unlimited: true, Calculator: &userdata.Calculator{Prefixes: true, CustomNetworking: true}},
			KubeReserved:   userdata.Amounts{Whole: true, Of: map[string]string{"cpu": "250m", "memory": "1Gi"}},
			SystemReserved: userdata.Amounts{Whole: true, Of: map[string]string{"cpu": "100m"}},
			EvictionHard:   userdata.Amounts{Whole: true, Of: map[string]string{"memory.available": "500Mi", "nodefs.available": "5%"}},
			Labels:         map[string]string{"lifecycle": "spot"},
			Taints:         []corev1.Taint{{Key: "spot", Value: "true", Effect: "PreferNoSchedule"}, {Key: "gpu", Effect: "NoExecute"}},
			LocalDisks:     userdata.RAID0,
		}},
		{"al2023.mime", userdata.Settings{
			Family:       userdata.AmazonLinux,
			Density:      userdata.Density{Most: 58},
			KubeReserved: userdata.Amounts{Of: map[string]string{"memory": "700Mi"}},
			EvictionHard: userdata.Amounts{Of: map[string]string{"memory.available": "5%"}},
			Labels:       map[string]string{"team": "green", "empty": ""},
			Taints:       []corev1.Taint{{Key: "late", Value: "yes", Effect: "NoSchedule"}},
			LocalDisks:   userdata.RAID0,
		}},
		{"al2023.yaml", userdata.Settings{
			Family:  userdata.AmazonLinux,
			Density: userdata.Density{Expression: "((default_enis - 1) * (ips_per_eni - 1)) + 2"},
		}},
		{"bottlerocket.toml", userdata.Settings{
			Family:       userdata.Bottlerocket,
			Density:      userdata.Density{Most: 29},
			KubeReserved: userdata.Amounts{Of: map[string]string{"cpu": "10m", "memory": "100Mi"}},
			EvictionHard: userdata.Amounts{Whole: true, Of: map[string]string{"memory.available": "15%"}},
			Labels:       map[string]string{"label1": "foo", "windlass/label2": "bar"},
			Taints: []corev1.Taint{
				{Key: "dedicated", Value: "experimental", Effect: "PreferNoSchedule"}, {Key: "dedicated", Value: "experimental", Effect: "NoExecute"},
				{Key: "special", Value: "true", Effect: "NoSchedule"},
			},
		}},
		{"windows.ps1", userdata.Settings{Family: userdata.Windows}},
	} {
		t.Run(tc.file, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, parse(read(t, tc.file))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// gzip in base64 is what many tools make of long scripts; lines may end as on
// Windows.
func TestPacked(t *testing.T) {
	text := read(t, "al2023.mime")
	want := parse(text)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, parse(packed.String())); diff != "" {
		t.Errorf("gzip: %s", diff)
	}
	if diff := cmp.Diff(want, parse(strings.ReplaceAll(text, "\n", "\r\n"))); diff != "" {
		t.Errorf("line ends of Windows: %s", diff)
	}
}

// A part may be in base64 by itself.
func TestPackedPart(t *testing.T) {
	script := base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\nbootstrap.sh c --kubelet-extra-args --max-pods=9\n"))
	text := "Content-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: text/x-shellscript\nContent-Transfer-Encoding: base64\n\n" + script[:20] + "\n" + script[20:] + "\n--B--\n"
	if got := parse(text); got.Density.Most != 9 || len(got.Faults) != 0 {
		t.Errorf("%d pods, faults %q", got.Density.Most, got.Faults)
	}
}

// What sets nothing of the kubelet is no fault.
func TestNothingSaid(t *testing.T) {
	for _, text := range []string{"", "\n", "#!/bin/sh\nyum install -y htop\n", "#cloud-config\npackages: [htop]\n"} {
		if got := parse(text); !reflect.DeepEqual(got, userdata.Settings{}) {
			t.Errorf("%q says %+v", text, got)
		}
	}
}

// What is not understood is named, and the rest stands.
func TestFaults(t *testing.T) {
	bootstrap := func(flags string) string {
		return "#!/bin/bash\n/etc/eks/bootstrap.sh prod --kubelet-extra-args '" + flags + "'\n"
	}
	toml := func(line string) string { return "[settings.kubernetes]\nmax-pods = 20\n" + line + "\n" }
	for _, tc := range []struct {
		name, text string
		want       []string // a part of each fault
		pods       int64
	}{
		{"a form that nobody knows", "hello world", []string{`its form is not known (it begins "hello world")`}, 0},
		{"a quote that is open", "#!/bin/bash\nbootstrap.sh prod --kubelet-extra-args '--max-pods=5", []string{"a quote is not closed"}, 0},
		{"a value that a shell knows", bootstrap("--node-labels=a=b,id=$(curl http://169.254.169.254/) --max-pods=7 --pods-per-core=$N"),
			[]string{"--node-labels: id=$(curl http://169.254.169.254/) is left out: only a shell knows its value", "--pods-per-core: $N is left out"}, 7},
		{"a number in words", bootstrap("--max-pods=many --node-labels=a=b"), []string{"--max-pods=many is left out"}, 0},
		{"labels and taints that the API refuses", bootstrap("--node-labels=bad/l/x=1,ok=yes --register-with-taints=x=y:Sometimes,z --max-pods=7"),
			[]string{"the label bad/l/x=1", "--register-with-taints: z", "the taint x=y:Sometimes"}, 7},
		{"quantities that are none", bootstrap("--kube-reserved=cpu=lots,memory=-1Gi --system-reserved=cpu=1e999999999,memory=1e-999999999 --eviction-hard=memory.available --max-pods=7"),
			[]string{"--eviction-hard: memory.available is left out", "--kube-reserved of cpu", "--kube-reserved of memory", `--system-reserved of cpu is left out: "1e999999999"`, `--system-reserved of memory is left out: "1e-999999999"`}, 7},
		{"TOML that is none", "[settings.kubernetes\nmax-pods = 3", []string{"the TOML is not read"}, 0},
		{"TOML of other types", toml(`node-labels = "none"` + "\n" + `node-taints = { gpu = ["yes"] }` + "\n" + `kube-reserved = { cpu = [1] }`),
			[]string{"kube-reserved of cpu", `node-taints: gpu = "yes"`, "node-labels is left out: it is no table"}, 20},
		{"YAML that is none", "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: [", []string{"the NodeConfig is not read"}, 0},
		{"YAML of other types", "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {kubelet: {config: {maxPods: many}}}", []string{"the NodeConfig is not read"}, 0},
		{"MIME in MIME in MIME", nested(6), []string{"lie more than 3 deep"}, 0},
		{"MIME without a boundary", "MIME-Version: 1.0\nContent-Type: multipart/mixed\n\nhello", []string{"names no boundary"}, 0},
		{"cloud-config that joins", "#cloud-config\nruncmd: [/etc/eks/bootstrap.sh prod]\n", []string{"in a #cloud-config is not read"}, 0},
		{"cores that are taken away", bootstrap("--reserved-cpus=0-1"), []string{"--reserved-cpus is not considered"}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := parse(tc.text)
			if len(got.Faults) != len(tc.want) {
				t.Fatalf("faults %q, want %d", got.Faults, len(tc.want))
			}
			for _, want := range tc.want {
				if !strings.Contains(strings.Join(got.Faults, "\n"), want) {
					t.Errorf("faults %q do not say %q", got.Faults, want)
				}
			}
			if got.Density.Most != tc.pods {
				t.Errorf("%d pods, want %d", got.Density.Most, tc.pods)
			}
		})
	}
}

// nested wraps a text into MIME again and again.
func nested(depth int) string {
	text := "#!/bin/sh\n"
	for range depth {
		text = "MIME-Version: 1.0\nContent-Type: multipart/mixed;\n boundary=X" + strings.Repeat("X", len(text)%7) + "\n\n--X" + strings.Repeat("X", len(text)%7) + "\n\n" + text
	}
	return text
}

func TestNotEvenBase64(t *testing.T) {
	if got := userdata.Parse("%%%"); len(got.Faults) != 1 || !strings.Contains(got.Faults[0], "it is not base64") {
		t.Errorf("faults %q", got.Faults)
	}
}

// A kilobyte can unpack to a gigabyte, a variable can double with each line, and brackets can
// nest deeper than a stack.
func TestBombs(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(make([]byte, 8<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := parse(packed.String()); len(got.Faults) != 1 || !strings.Contains(got.Faults[0], "unpacks to more than") {
		t.Errorf("gzip: faults %q", got.Faults)
	}
	doubling := "#!/bin/sh\nA=xxxxxxxxxxxxxxxx\n" + strings.Repeat("A=$A$A\n", 60) + "bootstrap.sh $A\n"
	if got := parse(doubling); len(got.Faults) != 1 || !strings.Contains(got.Faults[0], "a word is longer than") {
		t.Errorf("doubling: faults %q", got.Faults)
	}
	repeated := "#!/bin/sh\nA=xxxxxxxxxxxxxxxx\n" + strings.Repeat("A=$A$A\n", 11) + "bootstrap.sh" + strings.Repeat(" $A", 300_000) + "\n"
	if got := parse(repeated); len(got.Faults) != 1 || !strings.Contains(got.Faults[0], "its words are longer than") {
		t.Errorf("repeating: faults %q", got.Faults)
	}
	for name, value := range map[string]string{"lists": strings.Repeat("[", 1_000_000), "tables": strings.Repeat("{a=", 300_000), "keys": "{" + strings.Repeat("a.", 300_000) + "a=1}", "quoted keys": "{" + strings.Repeat(`"a b" . `, 100_000) + "a=1}"} {
		if got := parse("[settings.kubernetes]\nx = " + value); len(got.Faults) != 1 || !strings.Contains(got.Faults[0], "it nests deeper than") {
			t.Errorf("TOML of %s: faults %.300q", name, got.Faults)
		}
	}
	deep := "#!/bin/sh\nbootstrap.sh " + strings.Repeat("$((", 300_000) + "\n"
	if got := parse(deep); len(got.Faults) != 1 || !strings.Contains(got.Faults[0], "a command substitution is not closed") {
		t.Errorf("nesting: faults %q", got.Faults)
	}
}

func TestShell(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"plain", "bootstrap.sh c --kubelet-extra-args '--node-labels=a=b'", "b"},
		{"equals sign or blank", "bootstrap.sh c --kubelet-extra-args '--node-labels a=b'", "b"},
		{"double quotes, a line that goes on", "bootstrap.sh c \\\n  --kubelet-extra-args \"--node-labels=a=b\"", "b"},
		{"escaped blanks", `bootstrap.sh c --kubelet-extra-args --node-labels=a=b\ --v=2`, "b"},
		{"a variable", "L=a=b\nexport ARGS=\"--node-labels=${L}\"\nbootstrap.sh c --kubelet-extra-args \"$ARGS\"", "b"},
		{"behind a condition", "if true; then bash /etc/eks/bootstrap.sh c --kubelet-extra-args '--node-labels=a=b' || exit 1; fi", "b"},
		{"a comment is no command", "# bootstrap.sh c --kubelet-extra-args '--node-labels=a=c\nbootstrap.sh c --kubelet-extra-args --node-labels=a=b", "b"},
		{"a here-document is none either", "cat <<'EOF' >x\nit's\nbootstrap.sh c --kubelet-extra-args --node-labels=a=c\nEOF\nbootstrap.sh c --kubelet-extra-args --node-labels=a=b", "b"},
		{"the last of two wins", "bootstrap.sh c --kubelet-extra-args '--node-labels=a=c --node-labels=a=b'", "b"},
	} {
		got := parse("#!/bin/bash\n" + tc.text + "\n")
		if got.Labels["a"] != tc.want || len(got.Faults) != 0 {
			t.Errorf("%s: labels %v, faults %q", tc.name, got.Labels, got.Faults)
		}
	}
}

// Whatever stands in user data, reading it ends, in labels and taints that the API
// takes, and always with the same outcome.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil || len(files) == 0 {
		f.Fatalf("no documents: %v", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{"#!\nbootstrap.sh $(", "#!\nbootstrap.sh ${", "#!\nbootstrap.sh <<", "#!\nbootstrap.sh a \\", "Content-Type: multipart/x; boundary=a\n\n--a\n\n--a\n", "settings.kubernetes.max-pods = -1"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got := parse(string(text))
		if diff := cmp.Diff(got, parse(string(text))); diff != "" {
			t.Errorf("read twice: %s", diff)
		}
		for _, taint := range got.Taints {
			if taint.Key == "" || taint.Effect == "" {
				t.Errorf("taint %v", taint)
			}
		}
		pods, reserving, err := got.Pods(userdata.Machine{Cores: 4, Interfaces: 4, Addresses: 15, Nitro: true})
		if pods < 0 || reserving < 0 {
			t.Errorf("%d pods, %d for the reserve, %v", pods, reserving, err)
		}
	})
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/cockroachdb/datadriven"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/cli/top"
	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
)

// TestViews plays the commands of testdata/views on clusters that are written down there:
//
//	world   the cluster, as view.World
//	run     command lines, each without the program's name, and what they print
func TestViews(t *testing.T) {
	datadriven.Walk(t, "testdata/views", func(t *testing.T, path string) {
		c, out := &cli{}, &bytes.Buffer{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "world":
				var w view.World
				if err := yaml.UnmarshalStrict([]byte(d.Input), &w); err != nil {
					t.Fatalf("%s: %v", d.Pos, err)
				}
				c = newCLI(t, w, out)
				return ""
			case "run":
				out.Reset()
				for line := range strings.Lines(d.Input) {
					c.flags = genericclioptions.NewConfigFlags(false)
					if err := c.run(t.Context(), strings.Fields(line)); err != nil {
						fmt.Fprintln(out, "error:", err)
					}
				}
				return out.String()
			}
			t.Fatalf("%s: unknown command", d.Pos)
			return ""
		})
	})
}

// newCLI is the program in front of a cluster.
func newCLI(t *testing.T, w view.World, out *bytes.Buffer) *cli {
	t.Helper()
	t.Setenv("KUBECONFIG", "/dev/null")
	client := fake.NewClientset(objects(t, w)...)
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: out}
	return &cli{
		IOStreams: streams, flags: genericclioptions.NewConfigFlags(false), now: func() time.Time { return w.Now },
		connect: func() (kubernetes.Interface, error) { return client, nil },
	}
}

func objects(t *testing.T, w view.World) (list []runtime.Object) {
	t.Helper()
	page, err := w.Page.Encode()
	if err != nil {
		t.Fatal(err)
	}
	verdicts, err := w.Verdicts.Encode()
	if err != nil {
		t.Fatal(err)
	}
	list = append(list, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: defaultSystem, Name: contract.ConfigMapStatus},
		Data: map[string]string{statuspage.Key: page}, BinaryData: map[string][]byte{statuspage.VerdictsKey: verdicts}})
	if w.Leader != nil {
		renewed := metav1.NewMicroTime(w.Leader.Renewed)
		list = append(list, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: defaultSystem, Name: contract.LeaseScaler},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &w.Leader.Holder, RenewTime: &renewed}})
	}
	for i := range w.Nodes {
		list = append(list, &w.Nodes[i])
	}
	for i := range w.Pods {
		list = append(list, &w.Pods[i])
	}
	for i := range w.Events {
		list = append(list, &w.Events[i])
	}
	return list
}

// Of a ConfigMap that another version wrote is shown what can be read of it, and said what cannot.
func TestAnotherVersion(t *testing.T) {
	w := view.World{Now: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)}
	w.Leader = &view.Leader{Holder: "s", Renewed: w.Now}
	w.Page = statuspage.Page{Written: w.Now, Groups: []statuspage.GroupLine{{Name: "web", Desired: 3, Max: 9, Reason: "Steady", Message: "3 desired of 0 to 9"}},
		Nodes: []statuspage.NodeLine{{Reason: "Needed", Count: 70, Nodes: map[string]string{"a": "90% is requested"}}},
		Pods:  []statuspage.PodLine{{Reason: "NoNodeGroupFits", Message: "no GPU", Count: 4, Pods: []string{"shop/p"}}}}
	w.Verdicts = statuspage.Verdicts{Groups: statuspage.List[statuspage.Group]{{Name: "web", Desired: 3, Max: 9, Verdict: statuspage.Verdict{Reason: "Steady"}}}}
	for _, c := range []struct {
		what, args string
		with       func(*corev1.ConfigMap)
		want       []string
	}{
		{"no verdicts", "status", func(m *corev1.ConfigMap) { m.BinaryData = nil }, []string{"web     0     3         9", "Needed   70", "NoNodeGroupFits   4      shop/p", "missing: back-offs", "upgrade it", "missing: 69 nodes are not listed"}},
		{"no verdicts", "why group/web", func(m *corev1.ConfigMap) { m.BinaryData = nil }, []string{"group/web: Steady", "3 desired of 0 to 9", "upgrade it"}},
		{"no verdicts", "why shop/p", func(m *corev1.ConfigMap) { m.BinaryData = nil }, []string{"pod/shop/p: NoNodeGroupFits", "no GPU", "upgrade it"}},
		{"no verdicts", "why a", func(m *corev1.ConfigMap) { m.BinaryData = nil }, []string{"node/a: Needed", "90% is requested", "upgrade it"}},
		{"other verdicts", "status", func(m *corev1.ConfigMap) { m.BinaryData[statuspage.VerdictsKey] = []byte("zstd") }, []string{"web     0     3         9", "missing: back-offs"}},
		{"another page", "status", func(m *corev1.ConfigMap) { m.Data[statuspage.Key] = "groups: {}" }, []string{"web     0     3         9", "missing: faults", "as of an unknown time"}},
		{"fields of a newer one", "status", func(m *corev1.ConfigMap) {
			m.Data[statuspage.Key] = "version: 9\nnew: {a: 1}\n" + m.Data[statuspage.Key]
		}, []string{"web     0     3         9", "as of 0s ago"}},
	} {
		list := objects(t, w)
		c.with(list[0].(*corev1.ConfigMap))
		out := &bytes.Buffer{}
		program, client := newCLI(t, w, out), fake.NewClientset(list...)
		program.connect = func() (kubernetes.Interface, error) { return client, nil }
		if err := program.run(t.Context(), strings.Fields(c.args)); err != nil {
			t.Errorf("%s: %s: %v", c.what, c.args, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %s: want %q in\n%s", c.what, c.args, want, out)
			}
		}
	}
}

// A cluster without Windlass, or with an older one, is told of with what to do.
func TestNothingToRead(t *testing.T) {
	for _, c := range []struct {
		what, args, want string
		with             []runtime.Object
	}{
		{"not installed", "status", "--windlass-namespace", nil},
		{"an older scaler", "cost", "upgrade it", []runtime.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: defaultSystem, Name: contract.ConfigMapStatus}}}},
		{"another form", "status -o xml", "want one of table, wide, json, yaml, name", nil},
		{"no share", "cost --discount-factor=2", "--discount-factor=2", nil},
		{"no such file", "cost --price-file=/no/such/file", "/no/such/file", nil},
		{"no time", "events --since=-1h", "--since=-1h", nil},
		{"no such flag", "status --nope", "kubectl windlass status --help", nil},
		{"no name", "why", "accepts 1 arg", nil},
		{"no terminal", "top", "top wants a terminal", nil},
		{"no such order", "top --sort=beauty", "want one of name, group", nil},
	} {
		client := fake.NewClientset(c.with...)
		program := newCLI(t, view.World{}, &bytes.Buffer{})
		program.connect = func() (kubernetes.Interface, error) { return client, nil }
		if err := program.run(t.Context(), strings.Fields(c.args)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.what, err, c.want)
		}
	}
}

// A shell is offered what there is.
func TestCompletion(t *testing.T) {
	w := view.World{
		Nodes:    []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "ip-1"}}, {ObjectMeta: metav1.ObjectMeta{Name: "ip-2"}}},
		Pods:     []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "api-1"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart-1"}}},
		Verdicts: statuspage.Verdicts{Groups: statuspage.List[statuspage.Group]{{Name: "web"}, {Name: "ipam"}}},
	}
	for args, want := range map[string]string{
		"why ip":        "ip-1 ip-2 ipam",
		"why node/":     "node/ip-1 node/ip-2",
		"why pod/":      "pod/api-1",
		"-n shop why c": "cart-1",
		"why group/w":   "group/web",
		"why web x":     "",
		"status -o w":   strings.Join(forms, " "), // the shell picks
		"top --sort c":  strings.Join(top.Sorts(), " "),

		"top --filter s":       "stage=",
		"top --filter group=w": "group=web",
		"top --filter stage=d": "stage=draining stage=drained",
	} {
		out := &bytes.Buffer{}
		c := newCLI(t, w, out)
		fields := strings.Fields(args)
		if err := c.run(t.Context(), append([]string{"__completeNoDesc"}, fields...)); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, ":") && !strings.HasPrefix(line, "Completion ended") {
				got = append(got, line)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}

// TestTextOfOthersCommandsNoTerminal: whoever may write an Event chooses its words, and a screen shows them.
func TestTextOfOthersCommandsNoTerminal(t *testing.T) {
	evil := "a\x1b]0;pwned\x07\nFAKE LINE\u009b2J\u202e"
	e := view.Entry{Event: evil, Object: evil, By: evil, Text: evil}
	for _, form := range forms {
		if form == asJSON || form == asYAML {
			continue // which escape by their own rules
		}
		o, out := output{form: form}, &strings.Builder{}
		if err := errors.Join(o.more(out, e), o.print(out, view.Story{Entries: []view.Entry{e}})); err != nil {
			t.Fatal(err)
		}
		for _, r := range out.String() {
			if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) || strings.Contains(out.String(), "\nFAKE") {
				t.Errorf("-o %s shows %q", form, out.String())
				break
			}
		}
	}
}

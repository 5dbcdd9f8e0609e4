package migrate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// drawn is an argument and how it is written.
type drawn struct {
	name, value string
	written     string
}

// hostile are values that somebody may write.
var hostile = []string{
	"", "true", "false", "maybe", "10m", "-1s", "0", "5", "-5", "5000000", "0.5", "1e300", "NaN", "1:3:web", "3:1:web", "0:320000",
	"a b", `it's`, `"`, `\`, "a\nb: c", "\n---\nkind: Secret", "# no comment", "{{ .X }}", "<NAME>", "$(HOME)", "${HOME}", "ü€\u202e", "\x00\x1b[31m",
	"asg:tag=k8s.io/cluster-autoscaler/enabled,k8s.io/cluster-autoscaler/prod", "asg:tag=a=b", "mig:x", "aws", "gce", "eu-central-1", ":8085", ":99999", "h:1",
	"1000:30,0:60", "price", "least-waste,priority", "grpc", "debug", "-", "--v=4", "a,b,,c",
}

func argument(of Program) *rapid.Generator[drawn] {
	var names []string
	for _, r := range table {
		if r.Of == of {
			names = append(names, r.Flag)
		}
	}
	names = append(names, "no-such-flag", "nodes\nx", "ü", "max_nodes_total", "[1]")
	return rapid.Custom(func(t *rapid.T) drawn {
		d := drawn{name: rapid.SampledFrom(names).Draw(t, "name"), value: rapid.SampledFrom(hostile).Draw(t, "value")}
		if rapid.IntRange(0, 9).Draw(t, "any") == 0 {
			d.value = rapid.String().Draw(t, "text")
		}
		d.written = rapid.SampledFrom([]string{"--", "-"}).Draw(t, "dashes") + d.name + "=" + d.value
		return d
	})
}

// quote writes a word as a shell reads it.
func quote(t *rapid.T, word string) string {
	switch rapid.IntRange(0, 2).Draw(t, "quotes") {
	case 0:
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	case 1:
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
	}
	var b strings.Builder
	for _, c := range []byte(word) {
		if c == '\n' {
			b.WriteString("'\n'")
			continue
		}
		if c < 0x80 && !unicode.IsLetter(rune(c)) && !unicode.IsDigit(rune(c)) && c != '-' && c != '=' {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// TestLawEachArgumentOnce: whatever is given, in whatever writing, comes out in one of the lists, once
// and as it was, if it is no secret; the answers can be read; and their comments stay comments.
func TestLawEachArgumentOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.SampledFrom([]Program{Autoscaler, Handler}).Draw(t, "of")
		all := rapid.SliceOfN(argument(of), 1, 30).Draw(t, "arguments")
		var text strings.Builder
		text.WriteString("./program")
		for _, d := range all {
			text.WriteString(rapid.SampledFrom([]string{" ", "\n", " \\\n", "\n# comment\n- "}).Draw(t, "between"))
			text.WriteString(quote(t, d.written))
		}
		var in Input
		if err := in.AddFile(of, text.String(), "file"); err != nil {
			t.Fatal(err)
		}
		var given, want []string
		for _, a := range in.Arguments {
			given = append(given, a.Name+"="+a.Value)
		}
		for _, d := range all {
			want = append(want, d.name+"="+d.value)
		}
		if diff := gocmp.Diff(want, given); diff != "" {
			t.Fatalf("read (-given +got):\n%s", diff)
		}
		checkReport(t, in)
	})
}

// failer is a test of either kind.
type failer interface {
	Fatalf(format string, args ...any)
}

// checkReport holds what Translate makes of an input.
func checkReport(t failer, in Input) {
	report := Translate(in, nil)
	var want, got []string
	for _, a := range in.Arguments {
		i := []Item{{Argument: a}}
		withhold(i)
		want = append(want, strings.ReplaceAll(a.Name, "_", "-")+"="+i[0].Value)
	}
	for _, items := range [][]Item{report.Same, report.Nothing, report.Decide, report.Unknown} {
		for _, i := range items {
			if i.Of != "" {
				got = append(got, i.Name+"="+i.Value)
			}
		}
	}
	slices.SortFunc(want, cmp.Compare[string])
	slices.SortFunc(got, cmp.Compare[string])
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Fatalf("lists (-given +got):\n%s", diff)
	}
	overlay, err := report.Overlay(Place{"windlass-system", "../windlass/manifests"})
	if err != nil {
		t.Fatalf("overlay: %v", err)
	}
	values, err := report.Values()
	if err != nil {
		t.Fatalf("values: %v", err)
	}
	for what, text := range map[string]string{"overlay": overlay, "values": values} {
		readable(t, what, text)
	}
	if _, err := json.Marshal(report); err != nil {
		t.Fatalf("json: %v", err)
	}
	for line := range strings.Lines(report.Text()) {
		for _, r := range strings.TrimSuffix(line, "\n") {
			if !unicode.IsPrint(r) {
				t.Fatalf("a line of the text has %q: %q", r, line)
			}
		}
	}
}

// readable: with its comments the text is one document, and the same as without.
func readable(t failer, what, text string) {
	var with, without map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &with); err != nil {
		t.Fatalf("%s: %v\n%s", what, err, text)
	}
	body := text
	for strings.HasPrefix(body, "#") {
		_, body, _ = strings.Cut(body, "\n")
	}
	if err := yaml.UnmarshalStrict([]byte(body), &without); err != nil {
		t.Fatalf("%s: %v\n%s", what, err, body)
	}
	if diff := gocmp.Diff(without, with); diff != "" {
		t.Fatalf("%s (-body +all):\n%s", what, diff)
	}
	if _, known := with["apiVersion"]; what == "overlay" && !known {
		t.Fatalf("the overlay is no overlay:\n%s", text)
	}
}

// FuzzFile: no file stops the program, and what is read of one comes out.
func FuzzFile(f *testing.F) {
	for _, text := range append(hostile, "--nodes=1:2:a --v", "kind: Deployment\napiVersion: apps/v1", "extraArgs: {v: null, nodes_1: [a, b]}\nautoDiscovery: null", "autoDiscovery: 3", "serviceMonitor: true\nextraArgs: 3", "autoDiscovery.clusterName: a", "autoDiscovery: {clusterName: a, tags: 3}", "extraArgs: 3", "autoscalingGroups: [3]", "kind: List\napiVersion: v1\nitems: [3]",
		"apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: [{image: cluster-autoscaler, command: [sh, -c, './cluster-autoscaler --v=4 2>&1 | tee x']}]}}}") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, of := range []Program{"", Autoscaler, Handler} {
			var in Input
			if in.AddFile(of, text, "file") == nil {
				checkReport(t, in)
			}
		}
	})
}

// TestManyArguments: thousands of groups are translated, and what is too much is refused.
func TestManyArguments(t *testing.T) {
	var text strings.Builder
	for i := range mostArguments - 10 {
		fmt.Fprintf(&text, "--nodes=0:5:group-%d\n", i)
	}
	var in Input
	if err := in.AddFile("", text.String(), "file"); err != nil {
		t.Fatal(err)
	}
	if n := len(Translate(in, nil).Settings.Scaler); n != mostArguments-10 {
		t.Errorf("%d groups", n)
	}
	text.WriteString(strings.Repeat("--v=4\n", 20))
	if err := in.AddFile("", text.String(), "file"); err == nil || !strings.Contains(err.Error(), "more than 10000 arguments") {
		t.Error(err)
	}
	if err := in.AddFile("", strings.Repeat("x", MostBytes+1), "file"); err == nil || !strings.Contains(err.Error(), "more than 2097152 bytes") {
		t.Error(err)
	}
}

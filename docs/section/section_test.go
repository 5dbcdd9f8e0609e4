package section

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestCut(t *testing.T) {
	const page = "a\n<!-- one: written by make update -->\nb\n<!-- end -->\n<!-- two: written by make update -->\nc\n<!-- end -->\nd\n"
	for name, want := range map[string]string{"one": "b\n", "two": "c\n"} {
		before, section, after, err := cut(page, name)
		if err != nil || section != want || before+section+after != page {
			t.Errorf("%s: %q, %q, %q, %v", name, before, section, after, err)
		}
	}
	if _, _, _, err := cut(page, "three"); err == nil {
		t.Error("a section that is not there: no error")
	}
}

func TestFlags(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Bool("help", false, "help")
	flags.StringP("output", "o", "table", "yaml|json")
	flags.StringArray("names", nil, "a name")
	flags.Int("hidden", 3, "not listed")
	want := "| flag | type | default |  |\n|---|---|---|---|\n" +
		"| `--output`, `-o` | string | `table` | yaml\\|json |\n" +
		"| `--names` | stringArray |  | a name |\n"
	got := Flags(flags, func(f *pflag.Flag) bool { return f.Name != "hidden" })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReadFlags: what Flags writes is read as it was.
func TestReadFlags(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.StringP("output", "o", "table", "yaml|json")
	flags.StringArray("names", nil, "a `name`")
	flags.Int("number", 3, "how many")
	page := filepath.Join(t.TempDir(), "page.md")
	text := "<!-- one: written by make update -->\n" + Flags(flags, func(*pflag.Flag) bool { return true }) + end
	if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	want := []Flag{
		{"output", "string", "table", "yaml|json"},
		{"names", "stringArray", "", "a `name`"},
		{"number", "int", "3", "how many"},
	}
	got, err := ReadFlags(page, "one")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := ReadFlags(page, "two"); err == nil {
		t.Error("a section that is not there: no error")
	}
}

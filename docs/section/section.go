// Package section holds parts of the pages below docs against what the programs say of
// themselves, for the tests of those that know it. With -rewrite it writes them.
package section

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// rewrite has the name that scenario tests have for the same wish. Where a test has both, theirs
// is there already: packages are initialized by their paths.
// https://go.dev/ref/spec#Program_initialization
func init() {
	if flag.Lookup("rewrite") == nil {
		flag.Bool("rewrite", false, "write the generated parts of documents instead of comparing them")
	}
}

func rewrite() bool { return flag.Lookup("rewrite").Value.String() == "true" }

// Hold fails the test unless the page has want between the comments that begin and end the
// section of that name.
func Hold(t *testing.T, page, name, want string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, got, after, err := cut(string(text), name)
	if err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	if got == want {
		return
	}
	if !rewrite() {
		t.Errorf("%s is stale; make update writes it (-page +program):\n%s", page, cmp.Diff(strings.Split(got, "\n"), strings.Split(want, "\n")))
		return
	}
	if err := os.WriteFile(page, []byte(before+want+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// HoldFile fails the test unless want is all that the file has.
func HoldFile(t *testing.T, name, want string) {
	t.Helper()
	if rewrite() {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is stale; make update writes it (-file +program):\n%s", name, cmp.Diff(strings.Split(string(got), "\n"), strings.Split(want, "\n")))
	}
}

const end = "<!-- end -->\n"

// cut parts a page around what its section of a name has.
func cut(text, name string) (before, section, after string, err error) {
	begin := "<!-- " + name + ": written by make update -->\n"
	before, rest, begins := strings.Cut(text, begin)
	section, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return "", "", "", fmt.Errorf("there is no section between %q and %q", begin, end)
	}
	return before + begin, section, end + after, nil
}

// Table is one in Markdown.
func Table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) {
		b.WriteString("|")
		for _, cell := range cells {
			fmt.Fprintf(&b, " %s |", strings.ReplaceAll(cell, "|", `\|`))
		}
		b.WriteString("\n")
	}
	line(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, row := range rows {
		line(row)
	}
	return b.String()
}

// Flags is the table of those that say yes to listed, in the order of the set.
func Flags(flags *pflag.FlagSet, listed func(*pflag.Flag) bool) string {
	var rows [][]string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Name == "version" || f.Hidden || !listed(f) {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name += ", `-" + f.Shorthand + "`"
		}
		byDefault := ""
		if f.DefValue != "" && f.DefValue != "[]" {
			byDefault = "`" + f.DefValue + "`"
		}
		rows = append(rows, []string{name, f.Value.Type(), byDefault, f.Usage})
	})
	return Table([]string{"flag", "type", "default", ""}, rows)
}

// Flag is what a table of flags says of one.
type Flag struct{ Name, Type, Default, Usage string }

// flagRow is a line of such a table.
var flagRow = regexp.MustCompile("(?m)^\\| `--([^`]+)`[^|]* \\| ([^|]+) \\| (?:`([^`]*)`)? \\| (.*) \\|$")

// ReadFlags reads the table that Flags wrote into the section of that name.
func ReadFlags(page, name string) ([]Flag, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	_, table, _, err := cut(string(text), name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", page, err)
	}
	var flags []Flag
	for _, cells := range flagRow.FindAllStringSubmatch(table, -1) {
		flags = append(flags, Flag{cells[1], cells[2], cells[3], strings.ReplaceAll(cells[4], `\|`, "|")})
	}
	return flags, nil
}

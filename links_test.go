package windlass

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// TestLinks: every link of a document to another, every anchor, and every file that a
// document names by its path is there.
func TestLinks(t *testing.T) {
	pages := 0
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if hidden := name != "." && strings.HasPrefix(entry.Name(), "."); entry.IsDir() && (hidden || name == "out" || name == "bin") {
			return fs.SkipDir
		}
		if entry.IsDir() || filepath.Ext(name) != ".md" {
			return nil
		}
		pages++
		for _, wrong := range brokenLinks(os.DirFS("."), filepath.ToSlash(name)) {
			t.Error(wrong)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if pages < 20 {
		t.Errorf("only %d documents were read", pages)
	}
}

// TestPagesReadFirstAreShort: whoever comes new reads these to their end.
func TestPagesReadFirstAreShort(t *testing.T) {
	for name, most := range map[string]int{"README.md": 7 << 10, "ARCHITECTURE.md": 8 << 10} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > most {
			t.Errorf("%s has %d bytes, more than %d: move something to a page below docs", name, len(text), most)
		}
	}
}

var (
	fence  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	indent = regexp.MustCompile("(?m)^(    |\t).*$")
	span   = regexp.MustCompile("`([^`]+)`")
	link   = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	// file is a path from the root, to a kind of file that documents speak of.
	file    = regexp.MustCompile(`^[a-z0-9_.-]+(/[A-Za-z0-9_.-]+)+\.(go|json|md|tf|txtar|yaml)$`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
)

// brokenLinks says what a page refers to and does not find, in a line each.
func brokenLinks(root fs.FS, page string) []string {
	text, err := fs.ReadFile(root, page)
	if err != nil {
		return []string{err.Error()}
	}
	prose := fence.ReplaceAllString(string(text), "")
	var wrong []string
	for _, code := range span.FindAllStringSubmatch(prose, -1) {
		if file.MatchString(code[1]) && !exists(root, code[1]) {
			wrong = append(wrong, fmt.Sprintf("%s names %s, which is not there", page, code[1]))
		}
	}
	prose = span.ReplaceAllString(prose, "")
	for _, found := range link.FindAllStringSubmatch(prose, -1) {
		target, anchor, _ := strings.Cut(found[1], "#")
		if strings.Contains(target, ":") {
			continue // elsewhere
		}
		to := page
		if target != "" {
			to = path.Join(path.Dir(page), target)
		}
		switch {
		case !exists(root, to):
			wrong = append(wrong, fmt.Sprintf("%s links to %s, which is not there", page, found[1]))
		case anchor != "" && !slices.Contains(anchors(root, to), anchor):
			wrong = append(wrong, fmt.Sprintf("%s links to %s, and %s has no such heading", page, found[1], to))
		}
	}
	return wrong
}

func exists(root fs.FS, name string) bool {
	_, err := fs.Stat(root, name)
	return err == nil
}

// anchors are those that GitHub gives the headings of a page: small letters, without
// punctuation, hyphens for spaces, and a number behind those that come again.
func anchors(root fs.FS, page string) []string {
	text, err := fs.ReadFile(root, page)
	if err != nil {
		return nil
	}
	prose := indent.ReplaceAllString(fence.ReplaceAllString(string(text), ""), "")
	var all []string
	times := map[string]int{}
	for _, found := range heading.FindAllStringSubmatch(prose, -1) {
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
				return unicode.ToLower(r)
			}
			return -1
		}, found[1])
		n := times[anchor]
		times[anchor]++
		if n > 0 {
			anchor = fmt.Sprintf("%s-%d", anchor, n)
		}
		all = append(all, anchor)
	}
	return all
}

// The checker itself, on pages with every kind of mistake.
func TestTheLinksThatAreBrokenAreFound(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.md": "# A\n\n## Who's `b`, and why?\n[up](#whos-b-and-why) [b](docs/b.md#c-1) [away](https://example.com/x) `[no](link.md)`\n" +
			"```\n[no](link.md)\n## No heading\n```\n`docs/b.md` `docs/gone.go` `a/word` [gone](docs/c.md) [no anchor](docs/b.md#d) [none here](#no-heading)\n",
		"docs/b.md": "# C\n## C\n    # not one\n[a](../a.md#a) [folder](../docs) [one](#not-one)\n",
	} {
		if err := os.MkdirAll(filepath.Join(dir, path.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := slices.Concat(brokenLinks(os.DirFS(dir), "a.md"), brokenLinks(os.DirFS(dir), "docs/b.md"))
	want := []string{
		"a.md names docs/gone.go, which is not there",
		"a.md links to docs/c.md, which is not there",
		"a.md links to docs/b.md#d, and docs/b.md has no such heading",
		"a.md links to #no-heading, and a.md has no such heading",
		"docs/b.md links to #not-one, and docs/b.md has no such heading",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

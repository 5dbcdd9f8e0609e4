package windlass

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unwanted are phrases that users shall not meet, with what is said instead; see the glossary
// in CONTRIBUTING.md. Ordinary words that have their place elsewhere are not among them.
var unwanted = []struct {
	phrase *regexp.Regexp
	better string
}{
	{regexp.MustCompile(`(?i)\b(next|last|first|a|the|this) look\b|\blook failed`), "evaluation"},
	{regexp.MustCompile(`(?i)(\b(is|are|that|yet)|%d) coming\b|\bon (its|their) way to (the cluster|register)`), "upcoming"},
	{regexp.MustCompile(`(?i)\b(its|their|the|node) shapes?\b|\bshape of\b`), "node template"},
	{regexp.MustCompile(`(?i)\bretires?\b|\bretired\b|\bretirements?\b`), "scale down"},
	{regexp.MustCompile(`(?i)\btaken? back\b|\btakes back\b`), "cancelled"},
	{regexp.MustCompile(`(?i)\bhead-room\b`), "headroom"},
	{regexp.MustCompile(`(?i)\bin (its|their|the) stead\b`), "replacement"},
	{regexp.MustCompile(`(?i)\bin peace\b`), "not tried again (back-off)"},
	{regexp.MustCompile(`(?i)\b(brings?|bring) (a|no|new) nodes?\b`), "triggers scale-up"},
	{regexp.MustCompile(`(?i)\b(kin|homeless|refuges?|reprieve|forsaken|rivals?|amiss|strangers?)\b`), "see the glossary"},
	{regexp.MustCompile(`(?i)\bfor ever\b`), "say the timeout"},
	{regexp.MustCompile(`(?i)\bnobody\b`), "unneeded, unread, or whoever it is"},
}

// tongues are folders whose strings are said by AWS, or to no user of the product: an instance
// retirement is EC2's word, and the test beds have a language of their own.
var tongues = []string{"e2e", "agent/notice", "agent/imds", "scaler/fit/upstream", "scaler/fit/oracle", "docs", "release"}

// TestWords: what programs say to people uses the words of the glossary.
func TestWords(t *testing.T) {
	fset := token.NewFileSet()
	texts := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			for _, other := range tongues {
				if filepath.ToSlash(path) == other {
					return fs.SkipDir
				}
			}
			if path != "." && strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for literal, text := range literals(file) {
			if !strings.Contains(text, " ") {
				continue
			}
			texts++
			for _, wrong := range unwantedIn(text) {
				t.Errorf("%s: %s", fset.Position(literal.Pos()), wrong)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if texts < 500 {
		t.Errorf("only %d texts were read", texts)
	}
}

func unwantedIn(text string) (wrong []string) {
	for _, u := range unwanted {
		if found := u.phrase.FindString(text); found != "" {
			wrong = append(wrong, fmt.Sprintf("%q in %q: %s", found, text, u.better))
		}
	}
	return wrong
}

func TestUnwantedIsFound(t *testing.T) {
	for text, want := range map[string]int{
		"its retirement is taken back: %s":              2,
		"1 desired of 0 to 10; %d coming":               1,
		"a cheaper node of group %s comes in its stead": 1,
		"the head-room of group %s":                     1,
		"it is left in peace until %s":                  1,
		"scale-down is cancelled: %s":                   0,
		"%d upcoming":                                   0,
		"rules that block looked at":                    0,
	} {
		if got := unwantedIn(text); len(got) != want {
			t.Errorf("%q: %q, want %d", text, got, want)
		}
	}
}

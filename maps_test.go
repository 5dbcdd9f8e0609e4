package windlass

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestMaps: a package comment that lists files names each file of its package, and no other.
func TestMaps(t *testing.T) {
	maps := 0
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name != "." && strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" {
			return fs.SkipDir
		}
		found, wrong, err := mapOf(os.DirFS(name))
		if err != nil {
			return fmt.Errorf("reading the map of %s: %w", name, err)
		}
		if found {
			maps++
		}
		for _, w := range wrong {
			t.Errorf("%s: %s", name, w)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if maps < 40 {
		t.Errorf("only %d maps were read", maps)
	}
}

var (
	// mapRow is a line of a map: a package comment keeps it as it stands.
	mapRow = regexp.MustCompile(`(?m)^\t.*$`)
	// mapRowOfFile begins with a file; a package comment with such a line has a map.
	mapRowOfFile = regexp.MustCompile(`(?m)^\t[a-z_0-9]+\.go\b`)
	fileInMap    = regexp.MustCompile(`(?:^|[\s(])([a-z_0-9]+\.go)\b`)
)

// mapOf reads the map of a package's files, if one of its package comments has one, and says
// what it lacks or has too much. The file that bears the map need not name itself.
func mapOf(dir fs.FS) (found bool, wrong []string, err error) {
	names, err := fs.Glob(dir, "*.go")
	if err != nil {
		return false, nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	var bearer string
	var listed []string
	for _, name := range names {
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return false, nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path.Base(name), text, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return false, nil, err
		}
		comment := file.Doc.Text()
		if !mapRowOfFile.MatchString(comment) {
			continue
		}
		bearer = name
		for _, row := range mapRow.FindAllString(comment, -1) {
			for _, match := range fileInMap.FindAllStringSubmatch(row, -1) {
				listed = append(listed, match[1])
			}
		}
	}
	if bearer == "" {
		return false, nil, nil
	}
	for _, name := range names {
		if name != bearer && !slices.Contains(listed, name) {
			wrong = append(wrong, fmt.Sprintf("the map in %s lacks %s", bearer, name))
		}
	}
	for _, name := range listed {
		if !slices.Contains(names, name) {
			wrong = append(wrong, fmt.Sprintf("the map in %s has %s, which is not there", bearer, name))
		}
	}
	return true, wrong, nil
}

func TestTheMapReaderFindsWhatIsWrong(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const doc = "// Package p is one. See gone.go for why.\n//\n//\ta.go  one (and b.go); c.go another\n//\tsub/d.go  of another package\npackage p\n"
	for _, tc := range []struct {
		name  string
		dir   fstest.MapFS
		found bool
		want  []string
	}{
		{"whole", fstest.MapFS{"doc.go": file(doc), "a.go": file("package p"), "b.go": file("package p"), "c.go": file("package p"), "e_test.go": file("package p")}, true, nil},
		{"no map", fstest.MapFS{"doc.go": file("// Package p is one; see gone.go.\npackage p"), "a.go": file("package p")}, false, nil},
		{"both", fstest.MapFS{"doc.go": file(doc), "a.go": file("package p"), "b.go": file("package p"), "d.go": file("package p")}, true,
			[]string{"the map in doc.go lacks d.go", "the map in doc.go has c.go, which is not there"}},
	} {
		found, wrong, err := mapOf(tc.dir)
		if err != nil {
			t.Fatal(err)
		}
		if found != tc.found {
			t.Errorf("%s: a map was found: %t", tc.name, found)
		}
		if diff := cmp.Diff(tc.want, wrong); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// Package windlass has no code of its own: its tests hold the import arrows of
// docs/packages.md against what `go list` says, the links between documents, the words that
// programs say, and the maps of files in package comments.
package windlass

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/pkg/contract"
)

const module = "windlass.dev/windlass"

// layer is how far a package is from the world. Arrows run from high to low.
type layer int

const (
	// pure decides: no clock, client, logger, randomness, file or environment.
	pure layer = iota
	// edge talks to the world, and imports edge and pure.
	edge
	// program wires the two; nobody imports it.
	program
	// testbed is outside the product; it may import anything, and only
	// testbed imports it.
	testbed
)

// folder is one line of the table.
type folder struct {
	path  string
	layer layer
	// also lists modules that a pure package may import beside the Kubernetes
	// API types.
	also []string
}

// table is the list of folders. A package that is not in it is an error. An
// entry whose path ends in /... stands for all below, too.
var table = []folder{
	{path: "agent", layer: program},
	{path: "agent/drain", layer: pure},
	{path: "agent/evict", layer: edge},
	{path: "agent/imds", layer: edge},
	{path: "agent/notice", layer: pure},
	{path: "charts/...", layer: testbed},
	{path: "cli", layer: program},
	{path: "cli/table", layer: pure, also: []string{"k8s.io/cli-runtime", "github.com/charmbracelet/x/ansi"}},
	{path: "cli/top", layer: pure, also: []string{"charm.land", "github.com/charmbracelet/x/ansi"}},
	{path: "cli/top/feed", layer: edge},
	{path: "cli/view", layer: pure},
	{path: "docs/...", layer: testbed},
	{path: "e2e/...", layer: testbed},
	{path: "manifests/...", layer: testbed},
	{path: "notifier", layer: program},
	{path: "notifier/config", layer: edge},
	{path: "notifier/delivery", layer: pure},
	{path: "notifier/happening", layer: pure},
	{path: "notifier/render", layer: pure},
	{path: "notifier/send", layer: edge},
	{path: "notifier/store", layer: edge},
	{path: "notifier/watch", layer: edge},
	{path: "pkg/awscall", layer: edge},
	{path: "pkg/contract", layer: pure},
	{path: "pkg/drainable", layer: pure},
	{path: "pkg/drainable/drainflags", layer: edge},
	{path: "pkg/fleet", layer: pure, also: []string{"sigs.k8s.io/json", "sigs.k8s.io/yaml"}},
	{path: "pkg/kube/...", layer: edge},
	{path: "pkg/prices", layer: pure},
	{path: "pkg/statuspage", layer: pure, also: []string{"sigs.k8s.io/yaml"}},
	{path: "pkg/telemetry", layer: edge},
	{path: "release", layer: testbed},
	{path: "scaler", layer: program},
	{path: "scaler/act", layer: edge},
	{path: "scaler/asg", layer: edge},
	{path: "scaler/asg/template", layer: edge},
	{path: "scaler/asg/userdata", layer: pure, also: []string{"github.com/BurntSushi/toml", "github.com/google/cel-go", "sigs.k8s.io/yaml"}},
	{path: "scaler/chart", layer: pure},
	{path: "scaler/externalgrpc", layer: edge},
	{path: "scaler/externalgrpc/protocol", layer: edge},
	// kube-scheduler's own rules, which ask for a (silent) logger.
	{path: "scaler/fit", layer: pure, also: []string{"k8s.io/kubernetes", "k8s.io/component-helpers", "k8s.io/klog/v2", "k8s.io/utils"}},
	// kube-scheduler whole, which the tests of fit hold it against.
	{path: "scaler/fit/oracle", layer: testbed},
	{path: "scaler/fit/upstream/...", layer: pure, also: []string{"k8s.io/kubernetes", "k8s.io/apiserver", "k8s.io/component-helpers", "k8s.io/component-base", "k8s.io/kube-scheduler", "k8s.io/client-go", "k8s.io/dynamic-resource-allocation", "k8s.io/klog/v2", "k8s.io/utils"}},
	{path: "scaler/migrate", layer: pure, also: []string{"sigs.k8s.io/yaml"}},
	{path: "scaler/observe", layer: edge},
	{path: "scaler/plan", layer: pure},
	{path: "scaler/plan/action", layer: pure},
	{path: "scaler/plan/cluster", layer: pure},
	{path: "scaler/plan/drains", layer: pure},
	{path: "scaler/plan/hooks", layer: pure},
	{path: "scaler/plan/launch", layer: pure},
	{path: "scaler/plan/outcome", layer: pure},
	{path: "scaler/plan/policy", layer: pure},
	{path: "scaler/plan/recognition", layer: pure},
	{path: "scaler/plan/scaledown", layer: pure},
	{path: "scaler/plan/scaleup", layer: pure, also: []string{"sigs.k8s.io/yaml"}},
	{path: "scaler/plan/seats", layer: pure},
	{path: "scaler/plan/standin", layer: pure},
	{path: "scaler/plan/template", layer: pure},
	{path: "scaler/plan/verdict", layer: pure},
	{path: "scaler/shadow", layer: pure},
	{path: "scaler/shadow/compare", layer: pure},
	{path: "scaler/shadow/record", layer: pure},
	{path: "scaler/shadow/seen", layer: pure},
	{path: "scaler/simulate", layer: pure},
	{path: "scaler/simulate/bound", layer: pure},
	{path: "scaler/simulate/dice", layer: pure},
	{path: "scaler/simulate/prometheus", layer: edge},
	{path: "scaler/simulate/report", layer: pure},
	{path: "scaler/simulate/shadowlog", layer: pure},
	{path: "scaler/simulate/trace", layer: pure},
	{path: "scaler/simulate/world", layer: pure, also: []string{"sigs.k8s.io/yaml"}},
	{path: "scaler/status", layer: edge},
	{path: "scaler/status/cas", layer: pure, also: []string{"sigs.k8s.io/yaml"}},
	{path: "scaler/uninstall", layer: pure},
	{path: "scaler/uninstall/remove", layer: edge},
	{path: ".", layer: testbed},
}

// pureStrangers are the modules that every pure package may import.
var pureStrangers = []string{"k8s.io/api", "k8s.io/apimachinery"}

// impure are the packages of the standard library that reach the world.
var impure = []string{"context", "crypto/rand", "io/ioutil", "log", "math/rand", "net", "os", "syscall"}

// clock lists what package time offers beside values.
var clock = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

// soleImporters names, for what one folder of the product alone may know, that folder.
var soleImporters = map[string]string{
	"github.com/aws/aws-sdk-go-v2/service/autoscaling": "scaler/asg",
	"github.com/aws/aws-sdk-go-v2/service/ec2":         "scaler/asg",
	"github.com/aws/aws-sdk-go-v2/service/eks":         "scaler/asg",
	"github.com/aws/aws-sdk-go-v2/service/sns":         "notifier/send",
	"github.com/cloudevents/sdk-go/v2":                 "notifier/send",
	"github.com/nicholas-fedor/shoutrrr/pkg/router":    "notifier/send",
	"github.com/slack-go/slack":                        "notifier/send",
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds":    "agent/imds",
}

// notInAgent is what the agent, being paid for on every node, must not link
// even through others. The first prefix is that of all AWS service clients.
var notInAgent = []string{"github.com/aws/aws-sdk-go-v2/service", "k8s.io/kubernetes"}

// pkg is what `go list -json` says of a package.
type pkg struct {
	ImportPath string
	Dir        string
	Standard   bool
	Imports    []string
	GoFiles    []string
}

// within reports whether path is root or below it.
func within(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}

// local returns the folder of one of our packages.
func local(importPath string) (string, bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

func lookUp(path string) (folder, bool) {
	for _, f := range table {
		if root, all := strings.CutSuffix(f.path, "/..."); f.path == path || all && within(path, root) {
			return f, true
		}
	}
	return folder{}, false
}

// checkArrows returns one line for every import that the table forbids.
func checkArrows(packages []pkg) []string {
	var wrong []string
	for _, p := range packages {
		path, ours := local(p.ImportPath)
		if !ours {
			continue
		}
		from, known := lookUp(path)
		if !known {
			wrong = append(wrong, fmt.Sprintf("%s is not in the table of folders", path))
			continue
		}
		for _, to := range p.Imports {
			if why := forbidden(path, from, to); why != "" {
				wrong = append(wrong, fmt.Sprintf("%s imports %s: %s", path, to, why))
			}
		}
	}
	return append(wrong, checkAgent(packages)...)
}

// forbidden says why a package may not import another; "" if it may.
func forbidden(path string, from folder, importPath string) string {
	if sole, ok := soleImporters[importPath]; ok && sole != path && from.layer != testbed {
		return "only " + sole + " does"
	}
	to, ours := local(importPath)
	if !ours {
		return forbiddenStranger(from, importPath)
	}
	target, known := lookUp(to)
	if !known {
		return "not in the table of folders"
	}
	switch {
	case from.layer == testbed:
		return ""
	case target.layer == testbed:
		return "the product does not know its test bed"
	case target.layer == program:
		return "nobody imports a program"
	case from.layer == pure && target.layer != pure:
		return "a pure package imports pure ones only"
	case tree(to) != "pkg" && tree(to) != tree(path):
		return "programs share pkg/... only"
	}
	return ""
}

// tree is the program that a folder belongs to, or "pkg".
func tree(path string) string {
	root, _, _ := strings.Cut(path, "/")
	return root
}

func forbiddenStranger(from folder, importPath string) string {
	if from.layer != pure {
		return ""
	}
	if isStandard(importPath) {
		if slices.ContainsFunc(impure, func(root string) bool { return within(importPath, root) }) {
			return "a pure package does not reach the world"
		}
		return ""
	}
	allowed := slices.Concat(pureStrangers, from.also)
	if !slices.ContainsFunc(allowed, func(root string) bool { return within(importPath, root) }) {
		return "a pure package imports no other module than " + strings.Join(allowed, ", ")
	}
	return ""
}

// isStandard tells the standard library by the lack of a domain.
func isStandard(importPath string) bool {
	root, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(root, ".")
}

// checkAgent looks through everything that the agent links. It names the path
// to the culprit.
func checkAgent(packages []pkg) []string {
	byPath := make(map[string]pkg, len(packages))
	for _, p := range packages {
		byPath[p.ImportPath] = p
	}
	var wrong []string
	seen := map[string]bool{}
	var visit func(trail []string)
	visit = func(trail []string) {
		current := trail[len(trail)-1]
		if seen[current] {
			return
		}
		seen[current] = true
		if slices.ContainsFunc(notInAgent, func(root string) bool { return within(current, root) }) {
			wrong = append(wrong, "the agent links "+current+": "+strings.Join(trail, " → "))
			return
		}
		for _, next := range byPath[current].Imports {
			visit(append(slices.Clone(trail), next))
		}
	}
	visit([]string{module + "/agent"})
	return wrong
}

func TestArrows(t *testing.T) {
	for _, wrong := range checkArrows(list(t)) {
		t.Error(wrong)
	}
}

// folderRow is a line of the page of packages: folder, layer, what it is for.
var folderRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (pure|edge|program|test bed) \\| [^|]*[^| ] \\|$")

// TestPackagesPage: docs/packages.md shows the table as it is.
func TestPackagesPage(t *testing.T) {
	text, err := os.ReadFile("docs/packages.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[layer]string{pure: "pure", edge: "edge", program: "program", testbed: "test bed"}
	got, want := map[string]string{}, map[string]string{}
	for _, row := range folderRow.FindAllStringSubmatch(string(text), -1) {
		got[row[1]] = row[2]
	}
	for _, f := range table {
		want[f.path] = names[f.layer]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("folders (-table +page):\n%s", diff)
	}
}

func TestPureHasNoClock(t *testing.T) {
	fset := token.NewFileSet()
	for _, p := range list(t) {
		path, ours := local(p.ImportPath)
		if f, known := lookUp(path); !ours || !known || f.layer != pure {
			continue
		}
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, use := range clockUses(fset, file) {
				t.Errorf("%s: the time comes in through the snapshot", use)
			}
		}
	}
}

// clockUses finds what of package time is not a value, under whatever name it
// is imported.
func clockUses(fset *token.FileSet, file *ast.File) []string {
	name := ""
	for _, spec := range file.Imports {
		if spec.Path.Value != `"time"` {
			continue
		}
		name = "time"
		if spec.Name != nil {
			name = spec.Name.Name
		}
	}
	var uses []string
	ast.Inspect(file, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := selector.X.(*ast.Ident); ok && name != "" && x.Name == name && slices.Contains(clock, selector.Sel.Name) {
			uses = append(uses, fmt.Sprintf("%s: time.%s", fset.Position(selector.Pos()), selector.Sel.Name))
		}
		return true
	})
	return uses
}

// The contract's keys are spelled in one package. Tests are held to it too;
// scripts and manifests are what people write, and are not.
func TestOnlyContractSpellsThePrefix(t *testing.T) {
	fset := token.NewFileSet()
	files := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := path != "." && strings.HasPrefix(entry.Name(), ".")
		if entry.IsDir() && (hidden || path == filepath.Join("pkg", "contract")) {
			return fs.SkipDir
		}
		if entry.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files++
		for _, literal := range prefixLiterals(fset, file) {
			t.Errorf("%s: use the constants of pkg/contract", literal)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 10 {
		t.Errorf("only %d files were read", files)
	}
}

// prefixLiterals finds string literals with the contract's domain in them, but
// for import paths of this module.
func prefixLiterals(fset *token.FileSet, file *ast.File) []string {
	domain := strings.TrimSuffix(contract.Prefix, "/")
	var found []string
	for literal, text := range literals(file) {
		if strings.Contains(strings.ReplaceAll(text, module, ""), domain) {
			found = append(found, fmt.Sprintf("%s: %s", fset.Position(literal.Pos()), literal.Value))
		}
	}
	return found
}

// literals gives the string literals of a file with their texts, but for import paths.
func literals(file *ast.File) iter.Seq2[*ast.BasicLit, string] {
	return func(yield func(*ast.BasicLit, string) bool) {
		goes := true
		ast.Inspect(file, func(node ast.Node) bool {
			if _, isImport := node.(*ast.ImportSpec); isImport || !goes {
				return false
			}
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				text, err := strconv.Unquote(literal.Value)
				if err != nil {
					text = literal.Value
				}
				goes = yield(literal, text)
			}
			return goes
		})
	}
}

// list returns every package of this module and all they import. It does not
// mind packages that do not compile: those fail on their own account. The go
// command keeps test results by the files that a test opens; that of the
// prefix opens all, so these results are never stale.
func list(t *testing.T) []pkg {
	t.Helper()
	command := exec.Command("go", "list", "-e", "-deps", "-json=ImportPath,Dir,Standard,Imports,GoFiles", "./...")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, stderr.String())
	}
	var packages []pkg
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// The checker itself, on a module that breaks every rule once.
func TestTheCheckerFindsWhatIsWrong(t *testing.T) {
	ours := func(path string, imports ...string) pkg {
		return pkg{ImportPath: module + "/" + path, Imports: imports}
	}
	const (
		ec2  = "github.com/aws/aws-sdk-go-v2/service/ec2"
		sts  = "github.com/aws/aws-sdk-go-v2/service/sts"
		imds = "github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	)
	good := []pkg{
		ours("pkg/fleet", "time", "slices", "strings", "k8s.io/api/core/v1"),
		ours("pkg/kube/lease", "context", "k8s.io/client-go/rest"),
		ours("agent/imds", imds, "context", module+"/agent/notice"),
		ours("agent/notice", "encoding/json", module+"/pkg/fleet"),
		ours("agent", module+"/agent/imds", module+"/pkg/kube/lease"),
		ours("scaler/asg", ec2, module+"/pkg/fleet"),
		ours("scaler/fit", "k8s.io/kubernetes/pkg/scheduler"),
		ours("scaler", module+"/scaler/asg"),
		ours("e2e/world", module+"/scaler/asg", module+"/agent/imds"),
		ours("e2e/autoscaler", ec2),
	}
	if wrong := checkArrows(good); len(wrong) != 0 {
		t.Errorf("a good module is refused: %v", wrong)
	}

	for _, tc := range []struct {
		bad  []pkg
		want string
	}{
		{[]pkg{ours("pkg/util")}, "pkg/util is not in the table of folders"},
		{[]pkg{ours("pkg/fleet", "net/http")}, "pkg/fleet imports net/http: a pure package does not reach the world"},
		{[]pkg{ours("pkg/fleet", "log/slog")}, "pkg/fleet imports log/slog: a pure package does not reach the world"},
		{[]pkg{ours("agent/drain", "math/rand/v2")}, "agent/drain imports math/rand/v2: a pure package does not reach the world"},
		{[]pkg{ours("pkg/drainable", "k8s.io/client-go/rest")}, "pkg/drainable imports k8s.io/client-go/rest: a pure package imports no other module than k8s.io/api, k8s.io/apimachinery"},
		{[]pkg{ours("scaler/plan", module+"/pkg/kube")}, "scaler/plan imports windlass.dev/windlass/pkg/kube: a pure package imports pure ones only"},
		{[]pkg{ours("agent/evict", module+"/scaler/plan")}, "agent/evict imports windlass.dev/windlass/scaler/plan: programs share pkg/... only"},
		{[]pkg{ours("pkg/kube", module+"/agent/drain")}, "pkg/kube imports windlass.dev/windlass/agent/drain: programs share pkg/... only"},
		{[]pkg{ours("scaler/act", module+"/e2e/fakeaws")}, "scaler/act imports windlass.dev/windlass/e2e/fakeaws: the product does not know its test bed"},
		{[]pkg{ours("scaler/act", module+"/scaler")}, "scaler/act imports windlass.dev/windlass/scaler: nobody imports a program"},
		{[]pkg{ours("scaler/act", ec2)}, "scaler/act imports " + ec2 + ": only scaler/asg does"},
		{[]pkg{ours("scaler/observe", imds)}, "scaler/observe imports " + imds + ": only agent/imds does"},
		{
			[]pkg{ours("agent", "example.com/x"), {ImportPath: "example.com/x", Imports: []string{sts}}},
			"the agent links " + sts + ": windlass.dev/windlass/agent → example.com/x → " + sts,
		},
		{
			[]pkg{ours("agent", module+"/agent/evict"), ours("agent/evict", "k8s.io/kubernetes/pkg/api")},
			"the agent links k8s.io/kubernetes/pkg/api: windlass.dev/windlass/agent → windlass.dev/windlass/agent/evict → k8s.io/kubernetes/pkg/api",
		},
	} {
		if diff := cmp.Diff([]string{tc.want}, checkArrows(tc.bad)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestTheScansFindWhatIsWrong(t *testing.T) {
	key := strings.TrimSuffix(contract.Prefix, "/") + "/drain-request"
	source := fmt.Sprintf(`package p

import (
	clock "time"
	"%[1]s/pkg/contract"
)

var path = "%[1]s/agent" // an import path is not a key
var later = clock.Unix(0, 0)
var key = "%[2]s"
var raw = `+"`annotate %[2]s`"+`
var now = clock.Now()
var wait = clock.After
`, module, key)
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`p.go:10:11: "` + key + `"`, "p.go:11:11: `annotate " + key + "`"}
	if diff := cmp.Diff(want, prefixLiterals(fset, file)); diff != "" {
		t.Errorf("prefix (-want +got):\n%s", diff)
	}
	want = []string{"p.go:12:11: time.Now", "p.go:13:12: time.After"}
	if diff := cmp.Diff(want, clockUses(fset, file)); diff != "" {
		t.Errorf("clock (-want +got):\n%s", diff)
	}
}

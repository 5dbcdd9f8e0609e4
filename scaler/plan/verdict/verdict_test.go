package verdict

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 3, 4, 12, 0, 5, 0, time.UTC)

func TestRender(t *testing.T) {
	three, five := []string{"a", "b", "c"}, []string{"a", "b", "c", "d", "e"}
	for want, ds := range map[string]Details{
		"nothing varies":                       Say("nothing varies"),
		"pod default/a waits until 12:00:05":   Say("pod {pod} waits until {until}", Pod("default/a"), Until(noon)),
		"1 pod is left after 1m30s":            Say("{left} {left:pod is|pods are} left after {after}", Left(1), After(90*time.Second)),
		"0 pods are left after 1h0m0s":         Say("{left} {left:pod is|pods are} left after {after}", Left(0), After(time.Hour)),
		"a, b and c":                           Say("{nodes}", Nodes(three)),
		"a, b or c":                            Say("{hooks:or}", Hooks(three)),
		"a, b, c":                              Say("{zones:,}", Zones(three)),
		"a, b, c of all":                       Say("{nodes:,3} of all", Nodes(three)),
		"a, b, c and 2 more":                   Say("{nodes:,3}", Nodes(five)),
		"a, b, c, d and e":                     Say("{instances:5}", Instances(five)),
		"a and b or none":                      Say("{nodes} or none", Nodes(five[:2])),
		"{until} is a value and {is} no place": Say("{cause} and {lack} no place", Cause("{until} is a value"), Lack("{is}")),
		"first; second, and more":              Say("first").Then(nil, Say("second").And(", and more")),
		"stays: x; y":                          Say("stays: {why}", Why(Say("x").Then(Say("y")))),
		"in x, y":                              Say("in {why:,}", Why(Say("x").Then(Say("y")))),
		"from nothing":                         Details(nil).And("from {cause}", Cause("nothing")),
	} {
		if got := ds.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestJSON(t *testing.T) {
	v := Verdict{Of: OfNode, Name: "n", UID: "u", Group: "web", Reason: NodeBlocked, Details: Say("pod {pod} waits until {until}, {after} from now", Pod("default/a"),
		Until(noon.In(time.FixedZone("", 3600))), After(time.Minute)).Then(Say("{count} of {nodes}: {why}", Count(2), Nodes([]string{"n"}), Why(Quote("x"))))}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"kind":"node","name":"n","uid":"u","group":"web","reason":"BlockedByPod","message":"pod default/a waits until 12:00:05, 1m0s from now; 2 of n: x",` +
		`"details":[{"template":"pod {pod} waits until {until}, {after} from now","params":{"after":"1m0s","pod":"default/a","until":"2026-03-04T12:00:05Z"}},` +
		`{"template":"{count} of {nodes}: {why}","params":{"count":2,"nodes":["n"],"why":[{"template":"{cause}","params":{"cause":"x"}}]}}]}`
	if string(text) != want {
		t.Errorf("is\n%s, want\n%s", text, want)
	}
	var again Verdict
	if err := json.Unmarshal(text, &again); err != nil || !cmp.Equal(v, again) {
		t.Errorf("error %v, (-want +got):\n%s", err, cmp.Diff(v, again))
	}
}

func TestBadDetailsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"template":"{pod}","params":{}}`:                           `template "{pod}": the parameter pod is missing`,
		`{"template":"x","params":{"pod":"a"}}`:                      `template "x" has no place for the parameter pod`,
		`{"template":"{mood}","params":{"mood":"a"}}`:                `template "{mood}": no parameter is called "mood"`,
		`{"template":"{until}","params":{"until":"soon"}}`:           `template "{until}": parameter until: `,
		`{"template":"{count}","params":{"count":"1"}}`:              `template "{count}": parameter count: `,
		`{"template":"{why}","params":{"why":[{"template":"{x}"}]}}`: `template "{why}": parameter why: template "{x}": no parameter is called "x"`,
	} {
		var d Detail
		if err := json.Unmarshal([]byte(text), &d); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s…", text, err, want)
		}
	}
}

func TestEqual(t *testing.T) {
	a := Say("{pod} until {until}", Pod("a"), Until(noon)).Then(Say("{why} {nodes}", Why(Quote("x")), Nodes([]string{"n"})))
	b := Say("{pod} until {until}", Until(noon.Local()), Pod("a")).Then(Say("{why} {nodes}", Why(Quote("x")), Nodes([]string{"n"})))
	if !a.Equal(b) {
		t.Error("the order of parameters and the place of a clock make a difference")
	}
	for _, other := range []Details{
		nil, a[:1], a.Then(Quote("more")),
		Say("{pod} until {until}", Pod("b"), Until(noon)).Then(a[1:]),
		Say("{pod} till {until}", Pod("a"), Until(noon)).Then(a[1:]),
		a[:1].Then(Say("{why} {nodes}", Why(Quote("y")), Nodes([]string{"n"}))),
		a[:1].Then(Say("{why} {nodes}", Why(Quote("x")), Nodes([]string{"m"}))),
	} {
		if a.Equal(other) {
			t.Errorf("%s equals %s", a, other)
		}
	}
	if got := Say("{why}, and it is empty", Why(a[:1])).Then(a).Replaced(a[0], Quote("c")[0]).String(); got != "c, and it is empty; c; x n" {
		t.Errorf("replaced: %s", got)
	}
}

// TestPlaceholdersAreParameters: where a template and its parameters are written out, they
// fit. Those of Say have to be all; what And adds may name parameters from before it.
func TestPlaceholdersAreParameters(t *testing.T) {
	calls := 0
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			says := called(call.Fun)
			template, known := written(call.Args[0])
			params, all := paramsOf(call.Args[1:])
			if says != "Say" && says != "And" || !known || !all {
				return true
			}
			calls++
			places := Placeholders(template)
			for _, name := range params {
				if !slices.Contains(places, name) {
					t.Errorf("%s: %q has no place for %s", set.Position(call.Pos()), template, name)
				}
			}
			for _, name := range places {
				if says == "Say" && !slices.Contains(params, name) {
					t.Errorf("%s: %q lacks %s", set.Position(call.Pos()), template, name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil || calls < 150 {
		t.Errorf("only %d templates found: %v", calls, err)
	}
}

func called(fun ast.Expr) string {
	switch f := fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

// written is the text of literals.
func written(e ast.Expr) (text string, known bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, known := written(e.X)
		right, also := written(e.Y)
		return left + right, known && also
	}
	return "", false
}

// paramsOf are the names of parameters that are made where they are passed.
func paramsOf(args []ast.Expr) (list []string, all bool) {
	for _, arg := range args {
		call, ok := arg.(*ast.CallExpr)
		if !ok {
			return nil, false
		}
		name := called(call.Fun)
		i := slices.IndexFunc(Vocabulary(), func(w Word) bool { return strings.EqualFold(w.Name, name) })
		if i < 0 {
			return nil, false
		}
		list = append(list, Vocabulary()[i].Name)
	}
	return list, true
}

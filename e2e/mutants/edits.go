package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
)

// edit replaces a few bytes of a file.
type edit struct {
	file     string // below the root of the module
	from, to int    // bytes
	with     string
	line     int
	before   string // what a reader sees replaced; empty where something comes in between
	// in is the function whose body it is in; nil where it is in none.
	in *function
}

func (e edit) String() string {
	return fmt.Sprintf("%s:%d: %s → %s", e.file, e.line, short(e.before), short(e.with))
}

// short is code on one line.
func short(code string) string {
	const most = 80
	words := []rune(strings.Join(strings.Fields(code), " "))
	if len(words) > most {
		return string(words[:most]) + "…"
	}
	if len(words) == 0 {
		return "(nothing)"
	}
	return string(words)
}

// apply is the file with the edit.
func (e edit) apply(source []byte) []byte {
	return bytes.Join([][]byte{source[:e.from], []byte(e.with), source[e.to:]}, nil)
}

// editsOf lists what may be edited in files: conditions, bounds, sums, constants, statements
// that have an effect, whole functions. Nothing of what goes into a log is.
func editsOf(files []string) ([]edit, error) {
	var edits []edit
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading what to edit: %w", err)
		}
		more, err := editsIn(name, source)
		if err != nil {
			return nil, err
		}
		edits = append(edits, more...)
	}
	return edits, nil
}

func editsIn(name string, source []byte) ([]edit, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("reading what to edit: %w", err)
	}
	if ast.IsGenerated(parsed) {
		return nil, nil
	}
	x := &editor{name: name, source: source, file: files.File(parsed.Pos()), of: parsed.Name.Name}
	ast.Inspect(parsed, x.visit)
	return x.edits, nil
}

// editor collects the edits of one file.
type editor struct {
	name   string
	source []byte
	file   *token.File
	of     string // the package
	in     *function
	edits  []edit
}

func (x *editor) text(n ast.Node) string {
	return string(x.source[x.file.Offset(n.Pos()):x.file.Offset(n.End())])
}

func (x *editor) replace(from, to token.Pos, with string) {
	a, b := x.file.Offset(from), x.file.Offset(to)
	x.edit(edit{from: a, to: b, with: with, line: x.file.Line(from), before: string(x.source[a:b])})
}

func (x *editor) edit(e edit) {
	e.file = x.name
	if x.in != nil && e.from >= x.in.body && e.to <= x.in.to {
		e.in = x.in
	}
	x.edits = append(x.edits, e)
}

// swaps are operators and what takes their place.
var swaps = map[token.Token][]token.Token{
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LSS: {token.LEQ}, token.LEQ: {token.LSS}, token.GTR: {token.GEQ}, token.GEQ: {token.GTR},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.MUL},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD_ASSIGN: {token.SUB_ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN},
	token.INC: {token.DEC}, token.DEC: {token.INC},
}

func (x *editor) swap(at token.Pos, operator token.Token) {
	for _, with := range swaps[operator] {
		x.replace(at, at+token.Pos(len(operator.String())), with.String())
	}
}

func (x *editor) negate(condition ast.Expr) {
	x.replace(condition.Pos(), condition.End(), "!("+x.text(condition)+")")
}

// remove takes a statement out and leaves what it names used.
func (x *editor) remove(s ast.Node) { x.replace(s.Pos(), s.End(), "") }

func (x *editor) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		return false
	case *ast.FuncDecl:
		if n.Body != nil {
			x.in = x.function(x.of, n)
			x.skip(n.Type, n.Body)
		}
	case *ast.IfStmt:
		x.negate(n.Cond)
	case *ast.SwitchStmt:
		x.cases(n)
	case *ast.BinaryExpr:
		x.swap(n.OpPos, n.Op)
	case *ast.IncDecStmt:
		x.swap(n.TokPos, n.Tok)
	case *ast.AssignStmt:
		x.swap(n.TokPos, n.Tok)
		if n.Tok != token.DEFINE && reaches(n.Lhs[0]) {
			x.remove(n)
		}
	case *ast.ExprStmt:
		if logs(n.X) {
			return false
		}
		x.remove(n)
	case *ast.DeferStmt:
		x.remove(n)
	case *ast.SendStmt:
		x.remove(n)
	case *ast.BranchStmt:
		if n.Tok == token.CONTINUE {
			x.remove(n)
		}
	case *ast.Ident:
		switch n.Name {
		case "true":
			x.replace(n.Pos(), n.End(), "false")
		case "false":
			x.replace(n.Pos(), n.End(), "true")
		}
	case *ast.BasicLit:
		if n.Kind == token.INT {
			x.count(n)
		}
	}
	return true
}

// cases negates the conditions of a switch without a tag.
func (x *editor) cases(s *ast.SwitchStmt) {
	if s.Tag != nil {
		return
	}
	for _, c := range s.Body.List {
		for _, condition := range c.(*ast.CaseClause).List {
			x.negate(condition)
		}
	}
}

// count makes a constant one more, and one less if that is no negative number.
func (x *editor) count(n *ast.BasicLit) {
	value, err := strconv.ParseInt(n.Value, 0, 64)
	if err != nil {
		return
	}
	x.replace(n.Pos(), n.End(), strconv.FormatInt(value+1, 10))
	if value > 0 {
		x.replace(n.Pos(), n.End(), strconv.FormatInt(value-1, 10))
	}
}

// skip has a function return at once, with nothing.
func (x *editor) skip(t *ast.FuncType, body *ast.BlockStmt) {
	if len(body.List) == 0 {
		return
	}
	var zeros []string
	for _, result := range fieldsOf(t.Results) {
		zeros = append(zeros, "*new("+x.text(result.Type)+")")
		for range len(result.Names) - 1 {
			zeros = append(zeros, zeros[len(zeros)-1])
		}
	}
	at := body.Lbrace + 1
	x.edit(edit{from: x.file.Offset(at), to: x.file.Offset(at), with: " return " + strings.Join(zeros, ", ") + ";", line: x.file.Line(at)})
}

func fieldsOf(list *ast.FieldList) []*ast.Field {
	if list == nil {
		return nil
	}
	return list.List
}

// reaches reports whether an assignment is seen beyond the function: to a field or an entry.
func reaches(target ast.Expr) bool {
	switch target.(type) {
	case *ast.SelectorExpr, *ast.IndexExpr, *ast.StarExpr:
		return true
	}
	return false
}

// logs reports whether a call writes a log.
func logs(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of := ""
	switch x := method.X.(type) {
	case *ast.Ident:
		of = x.Name
	case *ast.SelectorExpr:
		of = x.Sel.Name
	}
	switch strings.ToLower(of) {
	case "slog", "log", "logger":
		return true
	}
	return false
}

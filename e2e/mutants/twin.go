package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// Compiling takes longer than most tests take to notice a mutant. So many mutants are compiled
// at once: each function that is edited gets a twin for each edit of it, and asks at its
// beginning which mutant acts in this run.

// chosen is the variable of each edited package that has the number of the mutant that acts.
const chosen = "mutant__"

// chooser is a file of an edited package. The name comes first in its package, so that it is
// initialised first.
func chooser(of string) (name, text string) {
	return "0_mutant.go", fmt.Sprintf("package %s\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\nvar %s, _ = strconv.Atoi(os.Getenv(%q))\n", of, chosen, mutantVariable)
}

// mutantVariable is the environment variable that has the mutant's number.
const mutantVariable = "WINDLASS_MUTANT"

// function is one whose body may be edited: bytes of its file.
type function struct {
	of       string // its package
	from, to int
	name     patch
	// named gives names to what it is given without one, so that it can be passed on.
	named []patch
	body  int // what comes after its {
	// call is how it calls a twin, without its name.
	receiver, call string
	results        bool
}

// patch replaces bytes of a file.
type patch struct {
	from, to int
	with     string
}

func patched(source []byte, from, to int, patches ...patch) []byte {
	slices.SortStableFunc(patches, func(a, b patch) int { return cmp.Compare(a.from, b.from) })
	var out []byte
	for _, p := range patches {
		out = append(append(out, source[from:p.from]...), p.with...)
		from = p.to
	}
	return append(out, source[from:to]...)
}

// function reads a declaration.
func (x *editor) function(of string, f *ast.FuncDecl) *function {
	at := func(n ast.Node) (from, to int) { return x.file.Offset(n.Pos()), x.file.Offset(n.End()) }
	fn := &function{of: of, body: x.file.Offset(f.Body.Lbrace) + 1, results: f.Type.Results != nil}
	fn.from, fn.to = x.file.Offset(f.Type.Func), x.file.Offset(f.End()) // without its comment
	fn.name.from, fn.name.to = at(f.Name)
	names := func(list *ast.FieldList) (names []string) {
		for _, field := range fieldsOf(list) {
			fresh := func() string { return fmt.Sprintf("given%d__", len(fn.named)) }
			for _, name := range field.Names {
				if name.Name == "_" {
					from, to := at(name)
					names = append(names, fresh())
					fn.named = append(fn.named, patch{from, to, fresh()})
					continue
				}
				names = append(names, name.Name)
			}
			if len(field.Names) == 0 {
				from, _ := at(field.Type)
				names = append(names, fresh())
				fn.named = append(fn.named, patch{from, from, fresh() + " "})
			}
			if _, ok := field.Type.(*ast.Ellipsis); ok {
				names[len(names)-1] += "..."
			}
		}
		return names
	}
	if f.Recv != nil {
		fn.receiver = names(f.Recv)[0] + "."
	}
	var types []string
	for _, field := range fieldsOf(f.Type.TypeParams) {
		for _, name := range field.Names {
			types = append(types, name.Name)
		}
	}
	if len(types) > 0 {
		fn.call = "[" + strings.Join(types, ", ") + "]"
	}
	fn.call += "(" + strings.Join(names(f.Type.Params), ", ") + ")"
	return fn
}

// twins is a file with all these mutants of it, by their numbers; errors of the compiler name
// the twin as if it were a file.
func twins(source []byte, mutants map[int]edit) []byte {
	var patches []patch
	var after bytes.Buffer
	dispatch := map[*function]string{}
	for _, number := range slices.Sorted(maps.Keys(mutants)) {
		e := mutants[number]
		fn := e.in
		name := fmt.Sprintf("%s__%d", source[fn.name.from:fn.name.to], number)
		call := fn.receiver + name + fn.call
		if fn.results {
			call = "return " + call
		} else {
			call += "; return"
		}
		if _, known := dispatch[fn]; !known {
			patches = append(patches, fn.named...)
		}
		dispatch[fn] += fmt.Sprintf(" if %s == %d { %s };", chosen, number, call)
		fmt.Fprintf(&after, "\n//line %s:1\n%s\n", twinFile(number), patched(source, fn.from, fn.to,
			append([]patch{{fn.name.from, fn.name.to, name}, {e.from, e.to, e.with}}, fn.named...)...))
	}
	for fn, text := range dispatch {
		patches = append(patches, patch{fn.body, fn.body, text})
	}
	return append(patched(source, 0, len(source), patches...), after.Bytes()...)
}

func twinFile(number int) string { return fmt.Sprintf("mutant-%d", number) }

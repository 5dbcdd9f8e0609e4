package migrate

import (
	_ "embed"
	"fmt"
	"strings"
)

// Program is whose flag it is.
type Program string

// The programs that are migrated from.
const (
	Autoscaler Program = "cas"
	Handler    Program = "nth"
)

// Name of the program for people.
func (p Program) Name() string {
	if p == Handler {
		return "Node Termination Handler"
	}
	return "Cluster Autoscaler"
}

// Kinds of flags.
const (
	boolean  = "bool"
	list     = "list"
	integer  = "int"
	float    = "float"
	duration = "duration"
)

// What a flag becomes that is none of Windlass's.
const (
	sameName = "="
	nothing  = "-"
	toDecide = "?"
	provider = "provider"
	config   = "config"
	region   = "region"
	port     = "port"
)

// Row is what the table says of a flag.
type Row struct {
	Of   Program
	Flag string
	Kind string
	// Default is theirs. OtherDefault: Windlass has another.
	Default      string
	OtherDefault bool
	Becomes      string
	Rule         string
	// Differs is the row of docs/differences-from-cluster-autoscaler.md about it, if any.
	Differs string
	Why     string
}

// target is the flag of Windlass's that the flag becomes, and of which programs; "" for none.
func (r Row) target() (flag string, scaler, agent bool) {
	name, ok := strings.CutPrefix(r.Becomes, "--")
	switch {
	case r.Becomes == sameName, r.Becomes == provider, r.Becomes == config:
		return r.Flag, true, false
	case ok:
		return name, true, false
	}
	if name, ok := strings.CutPrefix(r.Becomes, "agent --"); ok {
		return name, false, true
	}
	if name, ok := strings.CutPrefix(r.Becomes, "both --"); ok {
		return name, true, true
	}
	return "", false, false
}

func (r Row) component() string {
	name, _ := strings.CutPrefix(r.Becomes, "component ")
	if name == r.Becomes {
		return ""
	}
	return name
}

// saysNothing reports whether a value is theirs without the flag.
func (r Row) saysNothing(value string) bool { return value == "" || value == r.Default }

var (
	//go:embed flags.txt
	flagsText string
	table     = mustRows(flagsText)
	byName    = index(table)
)

// Rows are the table.
func Rows() []Row { return table }

// Lookup returns the row of a flag; _ may stand for - in its name.
func Lookup(of Program, name string) (Row, bool) {
	row, ok := byName[key{of, strings.ReplaceAll(name, "_", "-")}]
	return row, ok
}

type key struct {
	of   Program
	flag string
}

func index(rows []Row) map[key]Row {
	by := make(map[key]Row, len(rows))
	for _, r := range rows {
		by[key{r.Of, r.Flag}] = r
	}
	return by
}

// mustRows reads a table that is part of the program.
func mustRows(text string) []Row {
	var rows []Row
	for _, cells := range cellsOf(text, 8) {
		rest, other := strings.CutPrefix(cells[3], "!")
		rows = append(rows, Row{
			Of: Program(cells[0]), Flag: cells[1], Kind: cells[2], Default: rest, OtherDefault: other,
			Becomes: cells[4], Rule: cells[5], Differs: cells[6], Why: cells[7],
		})
	}
	return rows
}

// cellsOf are the cells of each line that is no comment.
func cellsOf(text string, columns int) [][]string {
	var all [][]string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "\t")
		if len(cells) != columns {
			panic(fmt.Sprintf("%q has %d cells, want %d", line, len(cells), columns))
		}
		all = append(all, cells)
	}
	return all
}

package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// table is a CSV file whose first line names the columns.
type table struct {
	rows   *csv.Reader
	head   []string
	column map[string]int
}

// openTable reads the first line. Columns that are not wanted are ignored.
func openTable(in io.Reader, wanted ...string) (*table, error) {
	t := table{rows: csv.NewReader(in), column: map[string]int{}}
	t.rows.ReuseRecord = true
	head, err := t.rows.Read()
	if err != nil {
		return nil, fmt.Errorf("reading the head of the table: %w", err)
	}
	t.head = slices.Clone(head)
	t.head[0] = strings.TrimPrefix(t.head[0], "\ufeff") // as spreadsheets begin a file
	for i, name := range t.head {
		name = strings.TrimSpace(name)
		if _, twice := t.column[name]; twice && slices.Contains(wanted, name) {
			return nil, fmt.Errorf("there are two columns %s", name)
		}
		t.column[name] = i
	}
	for _, name := range wanted {
		if _, has := t.column[name]; name != "" && !has {
			return nil, fmt.Errorf("there is no column %s: is this another --trace-format? want one of %s", name, strings.Join(FormatNames, ", "))
		}
	}
	return &t, nil
}

// each hands out the rows below the head. An error names the line.
func (t *table) each(do func(record []string) error) error {
	for {
		record, err := t.rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the table: %w", err)
		}
		if err := do(record); err != nil {
			line, _ := t.rows.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// at is what a record has in a column; empty where there is no such column.
func (t *table) at(record []string, name string) string {
	i, has := t.column[name]
	if !has {
		return ""
	}
	return strings.TrimSpace(record[i])
}

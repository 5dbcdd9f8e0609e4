package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	const output = `goos: linux
pkg: windlass.dev/windlass/scaler/plan
BenchmarkHomogeneous/cold-2  	       2	        72.10 MB	       120.7 ms	        30.00 target-MB	       150.0 target-ms
BenchmarkHomogeneous/cold-2  	       2	        20.10 MB	       160.7 ms	        30.00 target-MB	       150.0 target-ms
BenchmarkHomogeneous/cold-2  	       2	        71.10 MB	       140.7 ms	        30.00 target-MB	       150.0 target-ms
BenchmarkEvaluation/needed-2         	      10	 104857600 ns/op
BenchmarkTalks-2   	a line of its own
      20	         0 ns/op	        41.50 p50-ms	        50.00 target-p50-ms
--- FAIL: BenchmarkZonal/wide-2
    growth_bench_test.go:52: 3 pods in  app-9986
--- FAIL: BenchmarkZonal
PASS
ok  	windlass.dev/windlass/scaler/plan	6.089s
`
	const want = `
benchmark         figure        target  ok?
Homogeneous/cold  71.1 MB       ≤ 30    missed
Homogeneous/cold  141 ms        ≤ 150   yes
Talks             41.5 p50-ms   ≤ 50    yes
Evaluation/needed 104857600 ns/op
Zonal/wide                              FAILED
Zonal                                   FAILED
`
	var out strings.Builder
	if err := parseAndShow(strings.NewReader(output), &out); err != nil {
		t.Fatal(err)
	}
	// Padding is not what this is about.
	if diff := cmp.Diff(words(want), words(out.String())); diff != "" {
		t.Errorf("(-want +got)\n%s\n%s", diff, out.String())
	}
}

func words(table string) [][]string {
	var rows [][]string
	for line := range strings.Lines(table) {
		rows = append(rows, strings.Fields(line))
	}
	return rows
}

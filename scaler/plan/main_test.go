package plan_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain has random tests draw the same worlds every time, unless -rapid.seed says
// otherwise: a change is judged by what it changed. New worlds are looked through by
// `make laws`.
func TestMain(m *testing.M) {
	flag.Parse()
	const name = "rapid.seed"
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if !given {
		if err := flag.Set(name, "1"); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	printDecisions()
	os.Exit(code)
}

// Require says what this host lacks for real machines, a line for each thing, and fails
// if that is anything.
package main

import (
	"fmt"
	"os"

	"windlass.dev/windlass/e2e/machine"
)

func main() {
	missing := machine.Missing()
	if len(missing) == 0 {
		return
	}
	fmt.Fprintln(os.Stderr, "This host can have no real machines:")
	for _, what := range missing {
		fmt.Fprintln(os.Stderr, "  "+what)
	}
	os.Exit(1)
}

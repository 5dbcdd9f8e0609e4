//go:build !linux

// Boot is the init of a test machine, which there is on Linux only.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "boot: real machines need Linux")
	os.Exit(1)
}

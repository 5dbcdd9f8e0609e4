// Table runs all benchmarks one after the other and prints one table of what
// they found at its end:
//
//	go run ./e2e/bench/table                   # all, as make bench does
//	go run ./e2e/bench/table -bench AntiAffinity -count 3
//	go run ./e2e/bench/table -read bench.txt   # the table of an output that was kept
//
// A benchmark that has a target for one of its figures reports it as a metric of
// its own: target-ms beside ms, or target-x-loop beside x-loop where a decision alone is
// timed, in multiples of a plain loop that the same run timed. Targets are upper bounds. A missed one is shown
// and is no failure: machines differ. Wrong results are.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("table", flag.ContinueOnError)
	read := flags.String("read", "", "print the table of this output of go test, and run nothing; - is standard input")
	which := flags.String("bench", ".", "which benchmarks to run, as of go test")
	benchtime := flags.String("benchtime", "1s", "as of go test")
	count := flags.Int("count", 1, "as of go test; the table has the middle of the figures")
	packages := flags.String("packages", "./...", "where they are")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *read != "" {
		return readFile(*read, out)
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-p", "1", "-timeout", "60m", "-run", "^$",
		"-bench", *which, "-benchtime", *benchtime, "-count", fmt.Sprint(*count), *packages)
	cmd.Stderr = os.Stderr
	output, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("running go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("running go test: %w", err)
	}
	results, err := parse(io.TeeReader(output, out))
	return errors.Join(err, cmd.Wait(), show(out, results))
}

func readFile(name string, out io.Writer) error {
	if name == "-" {
		return parseAndShow(os.Stdin, out)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return parseAndShow(f, out)
}

func parseAndShow(in io.Reader, out io.Writer) error {
	results, err := parse(in)
	return errors.Join(err, show(out, results))
}

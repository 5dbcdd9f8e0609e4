package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// answer is what became of one request.
type answer struct {
	from  string
	kept  bool
	begun time.Time
	took  time.Duration
	err   error
}

// tally counts answers, and prints each failure as it comes.
type tally struct {
	mu       sync.Mutex
	out      io.Writer
	requests int
	failed   int
	longest  time.Duration
	// from counts the answers of each server.
	from map[string]int
}

func newTally(out io.Writer) *tally { return &tally{out: out, from: map[string]int{}} }

func (t *tally) add(a answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests++
	t.longest = max(t.longest, a.took)
	if a.err == nil {
		t.from[a.from]++
		return
	}
	t.failed++
	connection := "new"
	if a.kept {
		connection = "kept"
	}
	fmt.Fprintf(t.out, "FAILED at=%s took=%s connection=%s %v\n",
		a.begun.UTC().Format(time.RFC3339Nano), a.took.Round(time.Millisecond), connection, a.err)
}

// summary is one line of everything so far.
func (t *tally) summary() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var from []string
	for _, name := range slices.Sorted(maps.Keys(t.from)) {
		from = append(from, fmt.Sprintf("%s:%d", name, t.from[name]))
	}
	return fmt.Sprintf("summary requests=%d failed=%d longest=%s from=%s",
		t.requests, t.failed, t.longest.Round(time.Millisecond), strings.Join(from, ","))
}

// summarize prints a summary at each interval, whenever asked, and when ctx ends.
func (t *tally) summarize(ctx context.Context, interval time.Duration, asked <-chan os.Signal) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			t.print(t.summary())
			return
		case <-asked:
		case <-ticker.C:
		}
		t.print(t.summary())
	}
}

func (t *tally) print(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintln(t.out, line)
}

// verdict is an error if a request failed, or if there was none.
func (t *tally) verdict() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.failed > 0:
		return fmt.Errorf("%d of %d requests failed", t.failed, t.requests)
	case t.requests == 0:
		return fmt.Errorf("no request was sent")
	}
	return nil
}

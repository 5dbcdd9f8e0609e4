package world

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestClock: a program that is built with the overlay reads the clock that is set, and the
// host's where none is.
func TestClock(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a part of the standard library")
	}
	dir := t.TempDir()
	overlay, err := overlayClock(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	program, source := filepath.Join(dir, "now"), filepath.Join(dir, "main.go")
	const text = "package main\n\nimport \"time\"\n\nfunc main() { println(time.Now().Unix()) }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay="+overlay, "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	k := &programs{dir: dir}
	if err := os.MkdirAll(filepath.Dir(k.clockOf("p")), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, ahead := range []time.Duration{time.Hour, -time.Hour, 0} {
		if err := k.setClock("p", ahead); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Env = []string{clockFile + "=" + k.clockOf("p")}
		before := time.Now()
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		seconds, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if off := time.Unix(seconds, 0).Sub(before.Truncate(time.Second)); off < ahead || off > ahead+time.Since(before)+time.Second {
			t.Errorf("off by %s, want %s", off, ahead)
		}
	}
}

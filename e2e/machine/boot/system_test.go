//go:build linux

package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"windlass.dev/windlass/e2e/machine"
)

// A program that cannot be started again yet is tried until it can.
func TestRestartAgain(t *testing.T) {
	complaints, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	was := os.Stderr
	os.Stderr = stderr
	t.Cleanup(func() { os.Stderr = was })
	dir := t.TempDir()
	program, log := filepath.Join(dir, "program"), filepath.Join(dir, "log")
	if err := syscall.Mkfifo(log, 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := os.OpenFile(log, os.O_RDWR, 0) // opening it to write never waits then
	if err != nil {
		t.Fatal(err)
	}

	replace(t, program, `rm "$0"`)
	s := &service{program: machine.Program{Name: "program", Path: program, Log: log}}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	await(t, complaints, "starting program again")
	replace(t, program, "echo it is back; exec sleep 600")
	await(t, said, "it is back")
	if err := s.kill(); err != nil {
		t.Error(err)
	}
}

// replace gives a program its name when it is whole.
func replace(t *testing.T, program, script string) {
	t.Helper()
	if err := os.WriteFile(program+".new", []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(program+".new", program); err != nil {
		t.Fatal(err)
	}
}

// await reads until a line has the text.
func await(t *testing.T, from io.Reader, text string) {
	t.Helper()
	for lines := bufio.NewScanner(from); lines.Scan(); {
		if strings.Contains(lines.Text(), text) {
			return
		}
	}
	t.Fatalf("nothing said %q", text)
}

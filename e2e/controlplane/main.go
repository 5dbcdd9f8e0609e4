// Controlplane builds and runs a real Kubernetes control plane for tests: etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler and kwok, from the
// versions pinned in this module's own go.mod.
//
//	controlplane build [name...]   build the programs into the cache
//	controlplane where             print the directory they are built into
//	controlplane up --dir DIR      build, start, wait until ready, then obey stdin
//
// The program itself is a supervisor that needs the standard library only; the
// pinned modules are compiled into the programs that it starts, never into it.
// Package map:
//
//	components.go  what is started, with which flags, and how to ask if it is well
//	build.go       the programs: go build, cache, lock, progress
//	cluster.go     up: certificates, files, processes in order, readiness
//	process.go     one child process that cannot outlive the supervisor, by process_linux.go;
//	               elsewhere, by process_other.go, it can
//	pki.go         keys, certificates, kubeconfigs
//	control.go     the commands on stdin
//	outage.go      what an API server that was away does to the others
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage:
  controlplane build [name...]        build programs into the cache (default: all that "up" needs, and kubectl)
  controlplane where                  print the directory that "build" writes to
  controlplane up --dir DIR [flags]   start a control plane; "up -h" lists the flags
`

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	err := run(ctx, os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return flag.ErrHelp
	}
	switch args[0] {
	case "build":
		return runBuild(ctx, args[1:])
	case "where":
		return runWhere(ctx)
	case "up":
		return runUp(ctx, args[1:])
	}
	fmt.Fprint(os.Stderr, usage)
	return fmt.Errorf("unknown command %q", args[0])
}

func runBuild(ctx context.Context, names []string) error {
	b, err := newBuilder(ctx, os.Stderr)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		names = defaultPrograms
	}
	if err := b.build(ctx, names); err != nil {
		return err
	}
	fmt.Println(b.dir)
	return nil
}

func runWhere(ctx context.Context) error {
	b, err := newBuilder(ctx, os.Stderr)
	if err != nil {
		return err
	}
	fmt.Println(b.dir)
	return nil
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"windlass.dev/windlass/e2e/machine"
)

// containerdWithin is how long containerd may take until it listens.
const containerdWithin = 30 * time.Second

// boot makes a machine of these namespaces and starts its programs.
func boot(ctx context.Context, o machine.Order) (*system, error) {
	if err := enter(o.Cgroups); err != nil {
		return nil, err
	}
	if err := mounts(o); err != nil {
		return nil, err
	}
	if err := syscall.Sethostname([]byte(o.Hostname)); err != nil {
		return nil, fmt.Errorf("naming the machine %s: %w", o.Hostname, err)
	}
	if o.IP.IsValid() {
		if err := machine.Configure(ctx, o.IP); err != nil {
			return nil, err
		}
	}
	s := newSystem(o)
	if err := s.start(o.Containerd.Name); err != nil {
		return nil, err
	}
	if err := listening(ctx, o.Socket); err != nil {
		return nil, err
	}
	if err := importImages(ctx, o); err != nil {
		return nil, err
	}
	for _, p := range o.Programs {
		if p.Held {
			continue
		}
		if err := s.start(p.Name); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// enter moves this process, which is called 0 there, to cgroups.
func enter(groups []string) error {
	for _, file := range groups {
		if err := os.WriteFile(file, []byte("0"), 0o644); err != nil {
			return fmt.Errorf("entering the machine's cgroup: %w", err)
		}
	}
	return nil
}

// listening waits until somebody accepts connections at a socket.
func listening(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, containerdWithin)
	defer cancel()
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for containerd: %w", err)
		case <-pace.C:
		}
	}
}

// importImages gives containerd what a registry would, where the kubelet looks for it.
func importImages(ctx context.Context, o machine.Order) error {
	for _, archive := range o.Images {
		if err := images(ctx, o, "import", archive); err != nil {
			return err
		}
	}
	for name, image := range o.AlsoCalled {
		if err := images(ctx, o, "tag", image, name); err != nil {
			return err
		}
	}
	return nil
}

func images(ctx context.Context, o machine.Order, args ...string) error {
	cmd := exec.CommandContext(ctx, "ctr", append([]string{"--address", o.Socket, "--namespace", "k8s.io", "images"}, args...)...)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ctr images %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(said))
	}
	return nil
}

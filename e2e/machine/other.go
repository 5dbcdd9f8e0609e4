//go:build !linux

package machine

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
)

var errNotLinux = errors.New("real machines need Linux")

// Hub is the network of machines, which there is on Linux only.
type Hub struct{}

// Missing says that this is not Linux.
func Missing() []string { return []string{errNotLinux.Error()} }

// Inside is false.
func Inside() bool { return false }

// Enter fails.
func Enter(context.Context, []string, io.Writer, io.Writer) error { return errNotLinux }

// OpenHub fails.
func OpenHub(*slog.Logger) (*Hub, error) { return nil, errNotLinux }

// Plug fails.
func (*Hub) Plug(context.Context, Uplink) error { return errNotLinux }

// Unplug fails.
func (*Hub) Unplug(string) error { return errNotLinux }

// Configure fails.
func Configure(context.Context, netip.Addr) error { return errNotLinux }

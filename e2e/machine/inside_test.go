//go:build linux

package machine

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// configureRole is a first argument that makes this program do a machine's own part of
// Plug, and end.
const configureRole = "configure-machine"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == configureRole {
		if err := configure(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	m.Run()
}

func configure(address string) error {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return err
	}
	return Configure(context.Background(), ip)
}

// inside is true where a test of real machines may run. Elsewhere it runs the test
// there and is false, or skips it where this host cannot.
func inside(t *testing.T) bool {
	t.Helper()
	if Inside() {
		return true
	}
	needMachines(t)
	out := t.Output()
	if err := Enter(t.Context(), []string{"-test.run=^" + t.Name() + "$", "-test.v"}, out, out); err != nil {
		t.Fatalf("inside: %v", err)
	}
	return false
}

// needMachines skips a test where real machines cannot be made, unless the environment
// says that they must be.
func needMachines(t *testing.T) {
	t.Helper()
	missing := Missing()
	if len(missing) == 0 {
		return
	}
	text := "this host cannot make real machines, it lacks\n  " + strings.Join(missing, "\n  ")
	if os.Getenv("WINDLASS_MACHINES") == "must" {
		t.Fatal(text)
	}
	t.Skip(text)
}

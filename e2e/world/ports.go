package world

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Port is a TCP port of 127.0.0.1 that is kept for one program, also while it does not run.
type Port struct {
	Number int
	claim  net.Listener
}

// TakePort finds a free port below those that the kernel hands out by itself and those of
// the control planes (20000 and up). One of the kernel's would be free as it is found, and
// taken by a connection of another program before its own listens.
//
// It is claimed by a socket that bears its number as a name, in the abstract namespace, which
// leaves no file behind (unix(7)): worlds of several processes choose at one moment. The control
// plane takes its ports in the same way; it is a module of its own, and cannot call this.
func TakePort() (*Port, error) {
	const first, last = 10000, 20000
	var err error
	for range 100 {
		number := first + rand.IntN(last-first)
		var claim, probe net.Listener
		if claim, err = net.Listen("unix", fmt.Sprintf("@windlass-world-%d", number)); err != nil {
			continue
		}
		p := &Port{number, claim}
		if probe, err = net.Listen("tcp4", p.Address()); err != nil {
			p.Release()
			continue
		}
		probe.Close()
		return p, nil
	}
	return nil, fmt.Errorf("finding a free port of 127.0.0.1: %w", err)
}

// Address is host:port.
func (p *Port) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Number)) }

// Release lets others have the port.
func (p *Port) Release() { p.claim.Close() }

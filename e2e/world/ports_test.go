package world

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
)

// A port that was taken is nobody else's while its program does not listen: not another
// program's, and not that of a connection, for which the kernel chooses.
func TestTakePort(t *testing.T) {
	chosen, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range") // ip(7)
	if err != nil {
		t.Skip(err)
	}
	lowest, err := strconv.Atoi(strings.Fields(string(chosen))[0])
	if err != nil {
		t.Fatal(err)
	}
	taken := map[int]bool{}
	for range 500 { // of ten thousand: two would be the same
		p, err := TakePort()
		if err != nil {
			t.Fatal(err)
		}
		defer p.Release()
		if taken[p.Number] {
			t.Fatalf("port %d was taken twice", p.Number)
		}
		taken[p.Number] = true
		if p.Number >= lowest {
			t.Errorf("port %d is one of those from %d, which the kernel hands out", p.Number, lowest)
		}
		l, err := net.Listen("tcp4", p.Address())
		if err != nil {
			t.Fatalf("its own program cannot listen: %v", err)
		}
		l.Close()
	}
}

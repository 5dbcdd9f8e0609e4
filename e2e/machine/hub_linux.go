package machine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
)

// Hub is the world's side of the network: the router that every machine hangs on.
type Hub struct {
	log *slog.Logger

	mu     sync.Mutex
	cables map[string]cable // by the name of the world's end
}

// OpenHub makes this network namespace the world's: Address and Metadata are its own,
// and it forwards. It refuses outside of what Enter made.
func OpenHub(log *slog.Logger) (*Hub, error) {
	if !Inside() {
		return nil, errors.New("opening the network of machines: this is the network of the host; machine.Enter makes one that may be changed")
	}
	if err := set(routerSettings); err != nil {
		return nil, err
	}
	addresses := fmt.Sprintf("link set lo up\naddress replace %s/32 dev lo\naddress replace %s/32 dev lo\n", Address, Metadata)
	if err := run(context.Background(), addresses, "ip", "-batch", "-"); err != nil {
		return nil, fmt.Errorf("giving the world its addresses: %w", err)
	}
	return &Hub{log: log, cables: map[string]cable{}}, nil
}

// Plug connects a machine: from here to its network namespace, where Configure does
// the rest. A machine that is plugged in already is unplugged before.
func (h *Hub) Plug(ctx context.Context, u Uplink) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := cable{Uplink: u, end: endName(u.ID)}
	if other, taken := h.cables[c.end]; taken && other.ID != u.ID {
		return fmt.Errorf("connecting machine %s: %s has a name that ends alike", u.ID, other.ID)
	}
	if err := h.unplug(u.ID); err != nil {
		return err
	}
	h.cables[c.end] = c
	if err := c.connect(ctx); err != nil {
		return errors.Join(fmt.Errorf("connecting machine %s: %w", u.ID, err), h.unplug(u.ID))
	}
	h.log.Debug("a machine is connected", "machine", u.ID, "interface", c.end, "ip", u.IP, "pods", u.PodCIDR)
	return nil
}

// Unplug takes away all that Plug did, whether the machine still runs or not. It is no
// error if the machine was not connected.
func (h *Hub) Unplug(id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unplug(id)
}

func (h *Hub) unplug(id string) error {
	end := endName(id)
	c, plugged := h.cables[end]
	if !plugged || c.ID != id {
		return nil
	}
	// A machine must be able to go although the test's own time is over.
	if err := c.disconnect(context.Background()); err != nil {
		return fmt.Errorf("disconnecting machine %s: %w", id, err)
	}
	delete(h.cables, end)
	h.log.Debug("a machine is disconnected", "machine", id, "interface", end)
	return nil
}

// setting is a file below /proc/sys/net and what it is to say.
type setting struct{ name, value string }

// routerSettings make a namespace a router. The other three are the kernel's own
// defaults, which a namespace inherits from its host otherwise.
var routerSettings = []setting{
	{"ipv4/ip_forward", "1"},
	{"ipv4/conf/all/rp_filter", "0"},
	{"ipv4/conf/default/rp_filter", "0"},
	{"ipv4/conf/all/arp_ignore", "0"},
}

// set writes settings of this network namespace.
func set(settings []setting) error {
	for _, s := range settings {
		if err := os.WriteFile("/proc/sys/net/"+s.name, []byte(s.value), 0o644); err != nil {
			return fmt.Errorf("setting net.%s to %s: %w", strings.ReplaceAll(s.name, "/", "."), s.value, err)
		}
	}
	return nil
}

package machine

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// machineEnd is what a machine calls its end of the cable.
const machineEnd = "eth0"

// cable is a pair of virtual Ethernet devices, of which the world holds one end.
type cable struct {
	Uplink
	end string // the world's end
}

// endName is what the world calls its end of a machine's cable: Linux takes 15 letters.
func endName(id string) string {
	const most = 12
	return "wl-" + id[max(0, len(id)-most):]
}

// connect makes the cable and all that leads over it.
func (c cable) connect(ctx context.Context) error {
	if err := run(ctx, c.links(), "ip", "-batch", "-"); err != nil {
		return err
	}
	if !c.IMDS.IsValid() {
		return nil
	}
	// The metadata service listens on the world's loopback, where no packet from
	// elsewhere may go unless the device that it comes by says so.
	if err := set([]setting{{"ipv4/conf/" + c.end + "/route_localnet", "1"}}); err != nil {
		return err
	}
	return c.redirect(ctx, "--append")
}

// links are the commands of ip(8) that make the cable. The machine's end is made where
// the machine is, so that it is never seen under its name anywhere else.
func (c cable) links() string {
	return fmt.Sprintf(`link add %[1]s type veth peer name %[2]s netns %[3]d
link set %[1]s up
route add %[4]s/32 dev %[1]s src %[5]s
route add %[6]s via %[4]s dev %[1]s onlink src %[5]s
`, c.end, machineEnd, c.PID, c.IP, Address, c.PodCIDR)
}

// disconnect takes away all that connect did, or what is left of it: the devices go
// with the machine's namespace, and their routes with the devices.
func (c cable) disconnect(ctx context.Context) error {
	if c.IMDS.IsValid() {
		if err := c.redirect(ctx, "--delete"); err != nil && c.redirect(ctx, "--check") == nil {
			return err
		}
	}
	if err := run(ctx, "", "ip", "link", "delete", c.end); err != nil && exists(c.end) {
		return err
	}
	return nil
}

// exists reports whether there is an interface of this name here.
func exists(name string) bool {
	_, err := net.InterfaceByName(name)
	return err == nil
}

// redirect adds the rule that leads this machine's metadata requests to its own
// service, or deletes or checks it. Rules go by the device and not by the address that
// a packet says it is from, so nobody asks in the name of another machine.
func (c cable) redirect(ctx context.Context, do string) error {
	rule := fmt.Sprintf("PREROUTING --in-interface %s --destination %s/32 --protocol tcp --dport 80 --jump DNAT --to-destination %s", c.end, Metadata, c.IMDS)
	return run(ctx, "", "iptables", append([]string{"--wait", "--table", "nat", do}, strings.Fields(rule)...)...)
}

// Configure is the machine's part of Plug, done in its own network namespace once the
// cable is there: its address, the way out, and forwarding for its pods.
func Configure(ctx context.Context, ip netip.Addr) error {
	commands := fmt.Sprintf("link set lo up\naddress replace %[1]s/32 dev %[2]s\nlink set %[2]s up\nroute replace default via %[3]s dev %[2]s onlink src %[1]s\n", ip, machineEnd, Address)
	if err := run(ctx, commands, "ip", "-batch", "-"); err != nil {
		return fmt.Errorf("configuring the machine's network: %w", err)
	}
	return set(machineSettings)
}

// machineSettings are a router's, for its pods; and Services must work between pods
// on one bridge, whose packets iptables would not see otherwise.
var machineSettings = append([]setting{{"bridge/bridge-nf-call-iptables", "1"}}, routerSettings...)

package fit

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// hostPort is a port of the node that one pod only can have.
type hostPort struct {
	Protocol corev1.Protocol `json:"p"`
	IP       string          `json:"i"`
	Port     int32           `json:"n"`
}

const anyIP = "0.0.0.0"

// hostPorts are those of the containers that run as long as the pod does.
func hostPorts(spec *corev1.PodSpec) []hostPort {
	var ports []hostPort
	take := func(c *corev1.Container) {
		for _, p := range c.Ports {
			if p.HostPort > 0 {
				ports = append(ports, hostPort{
					Protocol: cmp.Or(p.Protocol, corev1.ProtocolTCP), IP: cmp.Or(p.HostIP, anyIP), Port: p.HostPort,
				})
			}
		}
	}
	for i := range spec.Containers {
		take(&spec.Containers[i])
	}
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			take(c)
		}
	}
	slices.SortFunc(ports, func(a, b hostPort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.IP, b.IP))
	})
	return ports
}

// clashes reports whether both cannot be had on one node.
func (p hostPort) clashes(q hostPort) bool {
	if p.Port != q.Port || p.Protocol != q.Protocol {
		return false
	}
	return p.IP == q.IP || p.IP == anyIP || q.IP == anyIP
}

func (p hostPort) String() string { return fmt.Sprintf("%d/%s", p.Port, p.Protocol) }

// clash finds the first of the wanted ports that somebody has.
func clash(wanted, taken []hostPort) (hostPort, bool) {
	for _, w := range wanted {
		if slices.ContainsFunc(taken, w.clashes) {
			return w, true
		}
	}
	return hostPort{}, false
}

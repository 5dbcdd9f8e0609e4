package fit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"windlass.dev/windlass/pkg/fleet"
)

// Class is all of a pod that decides where it fits. Pods of one class are
// interchangeable, so each question is asked once for all of them.
type Class struct {
	// Key is canonical: equal for equal pods, whatever their names and owners.
	Key string
	// NotConsidered names what the pod asks for and this package does not look
	// at, in words, sorted; empty for most.
	NotConsidered []string

	requests    []amount // by resource number, none of them 0
	ports       []hostPort
	nodeName    string
	selector    map[string]string
	affinity    *corev1.NodeSelector
	required    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
	// singular classes ask for single nodes by name, so that equal looks do not
	// mean equal answers.
	singular bool
}

// Tenant is a pod with its class.
type Tenant struct {
	Pod   *fleet.Pod
	Class *Class
}

// classKey is what a class is made of, in an order that encodes canonically:
// maps are sorted by the encoder, lists by newClass.
type classKey struct {
	Requests      []amountKey          `json:"r,omitempty"`
	Ports         []hostPort           `json:"p,omitempty"`
	NodeName      string               `json:"n,omitempty"`
	Selector      map[string]string    `json:"s,omitempty"`
	Affinity      *corev1.NodeSelector `json:"a,omitempty"`
	Tolerations   []corev1.Toleration  `json:"t,omitempty"`
	NotConsidered []string             `json:"x,omitempty"`
}

type amountKey struct {
	Name corev1.ResourceName `json:"r"`
	N    int64               `json:"n"`
}

// newClass reads a pod's spec. unseen is what is not considered of it.
func newClass(n *names, spec *corev1.PodSpec, unseen []string) *Class {
	c := &Class{
		NotConsidered: unseen,
		ports:         hostPorts(spec),
		nodeName:      spec.NodeName,
		selector:      spec.NodeSelector,
		affinity:      requiredAffinity(spec),
		required:      nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *spec}),
		tolerations:   spec.Tolerations,
	}
	c.requests = requestsOf(n, spec)
	c.singular = c.nodeName != "" || c.asksForHosts()
	c.Key = c.key(n)
	return c
}

func requestsOf(n *names, spec *corev1.PodSpec) []amount {
	v := n.vectorOf(Requests(spec))
	v.add(podCount, 1)
	var requests []amount
	for i, amt := range v {
		if amt != 0 {
			requests = append(requests, amount{i, amt})
		}
	}
	return requests
}

func (c *Class) key(n *names) string {
	k := classKey{
		Ports: c.ports, NodeName: c.nodeName, Selector: c.selector, Affinity: c.affinity,
		NotConsidered: c.NotConsidered,
	}
	for _, r := range c.requests {
		k.Requests = append(k.Requests, amountKey{n.names[r.resource], r.n})
	}
	slices.SortFunc(k.Requests, func(a, b amountKey) int { return cmp.Compare(a.Name, b.Name) })
	k.Tolerations = slices.Clone(c.tolerations)
	slices.SortFunc(k.Tolerations, func(a, b corev1.Toleration) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator),
			cmp.Compare(a.Value, b.Value), cmp.Compare(a.Effect, b.Effect))
	})
	out, err := json.Marshal(k)
	if err != nil {
		panic(fmt.Sprintf("a class key holds only what encodes: %v", err))
	}
	return string(out)
}

// Request is what the class asks of a resource, in thousandths for cpu and in
// whole units otherwise.
func (c *Class) request(resource int) int64 {
	for _, r := range c.requests {
		if r.resource == resource {
			return r.n
		}
	}
	return 0
}

// asksForHosts says whether labels or fields that differ from node to node of
// one kind are asked for.
func (c *Class) asksForHosts() bool {
	if _, ok := c.selector[corev1.LabelHostname]; ok {
		return true
	}
	if c.affinity == nil {
		return false
	}
	return slices.ContainsFunc(c.affinity.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
		return len(t.MatchFields) > 0 || slices.ContainsFunc(t.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
			return e.Key == corev1.LabelHostname
		})
	})
}

func requiredAffinity(spec *corev1.PodSpec) *corev1.NodeSelector {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// hostPort is a port of the node that one pod only can have.
type hostPort struct {
	Protocol corev1.Protocol `json:"p"`
	IP       string          `json:"i"`
	Port     int32           `json:"n"`
}

const anyIP = "0.0.0.0"

func hostPorts(spec *corev1.PodSpec) []hostPort {
	var ports []hostPort
	take := func(c corev1.Container) {
		for _, p := range c.Ports {
			if p.HostPort > 0 {
				ports = append(ports, hostPort{
					Protocol: cmp.Or(p.Protocol, corev1.ProtocolTCP), IP: cmp.Or(p.HostIP, anyIP), Port: p.HostPort,
				})
			}
		}
	}
	for _, c := range spec.Containers {
		take(c)
	}
	for _, c := range spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			take(c)
		}
	}
	slices.SortFunc(ports, func(a, b hostPort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.IP, b.IP))
	})
	return ports
}

// clashes says that both cannot be had on one node.
func (p hostPort) clashes(q hostPort) bool {
	if p.Port != q.Port || p.Protocol != q.Protocol {
		return false
	}
	return p.IP == q.IP || p.IP == anyIP || q.IP == anyIP
}

func (p hostPort) String() string { return fmt.Sprintf("%d/%s", p.Port, p.Protocol) }

// CPUAndMemory is what the class requests, in thousandths of a cpu and in
// bytes.
func (c *Class) CPUAndMemory() (milli, bytes int64) { return c.request(cpu), c.request(memory) }

package plan_test

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// Clusters that are larger than need be.

// uniform: equal nodes with so many equal pods each, of which a hundred fill a node.
func uniform(nodes, podsPerNode int) *city {
	c := newCity()
	m := machine{kind: "m5.2xlarge", milliCPU: 100 * 100, memory: 100 * 100 * mib}
	c.group("web", m, nodes)
	one := pods(100, 100*mib).owned("web")
	for i := range nodes {
		n := c.node(0, m, benchZones[i%len(benchZones)])
		for range podsPerNode {
			c.run(one, n)
		}
	}
	return c
}

// tangled: nodes with thirty pods each, which request about 40 % of them, of so many
// specs with as many pods each. Of ten specs one keeps its pods on different hosts, one
// spreads them over the zones, and two are guarded by a budget of a tenth.
func tangled(nodes, specs int) *city {
	const podsPerNode = 30
	c := newCity()
	m := machine{kind: "m6i.4xlarge", milliCPU: 15_890, memory: 60 * gib}
	c.group("web", m, nodes)
	free := map[*fleet.Node]int{}
	inZone := map[string][]*fleet.Node{}
	c.Nodes = make([]fleet.Node, 0, nodes) // so that they stay where they are
	for i := range nodes {
		zone := benchZones[i%len(benchZones)]
		n := c.node(0, m, zone)
		free[n], inZone[zone] = podsPerNode, append(inZone[zone], n)
	}
	each := nodes * podsPerNode / specs
	for spec := range specs {
		name := "app-" + strconv.Itoa(spec)
		t := pods(50*(1+c.dice.Int64N(8)), 128*mib*(1+c.dice.Int64N(12))).labelled(labelApp, name).owned(name)
		spread := spec%10 == 1
		switch {
		case spec%10 == 0:
			t = t.apart(likes(labelApp, name), corev1.LabelHostname)
		case spread:
			t = t.evenly(likes(labelApp, name), corev1.LabelTopologyZone)
		}
		if spec%5 == 2 {
			c.Budgets = append(c.Budgets, fleet.Budget{
				Namespace: metav1.NamespaceDefault, Name: name, Selector: likes(labelApp, name),
				Allowed: int32(each / 10), Healthy: int32(each), Desired: int32(each - each/10),
			})
		}
		for pod := range each {
			zone := benchZones[pod%len(benchZones)]
			if !spread {
				zone = benchZones[c.dice.IntN(len(benchZones))]
			}
			c.run(t, c.vacancy(inZone, zone, spread, free))
		}
	}
	return c
}

// vacancy finds a node with room for a pod more, in the zone if there is one or it must
// be, and no two of a few hundred in a row on the same.
func (c *city) vacancy(inZone map[string][]*fleet.Node, zone string, must bool, free map[*fleet.Node]int) *fleet.Node {
	for _, z := range append([]string{zone}, benchZones...) {
		if must && z != zone {
			break
		}
		for i, n := range inZone[z] {
			if free[n] == 0 {
				continue
			}
			free[n]--
			inZone[z] = append(inZone[z][i+1:len(inZone[z]):len(inZone[z])], inZone[z][:i+1]...) // it comes last now
			return n
		}
	}
	panic(fmt.Sprintf("no node has room in %s", zone))
}

// marked marks all nodes as unneeded for an hour.
func (c *city) marked() *city {
	for i := range c.Nodes {
		c.Nodes[i].Taints = append(c.Nodes[i].Taints, contract.UnneededTaint(benchNow.Add(-time.Hour)))
	}
	return c
}

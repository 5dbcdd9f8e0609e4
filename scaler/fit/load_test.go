package fit_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"windlass.dev/windlass/scaler/fit"
)

// loadedPlace is a place with pods on it, pods that wait, and a load that comes or goes.
type loadedPlace struct {
	*fit.Cluster
	*fit.Place
	waiting, loaded []fit.Tenant
	load            fit.Load
	text            string
}

// drawLoadedPlace draws one whose load is not there; the pods of the load have no rules.
func drawLoadedPlace(t *rapid.T, rules ...string) *loadedPlace {
	text, _ := drawNodes(t, 1, 1)
	draw := func(name, where string, gpus, milli int, rules ...string) (pods int) {
		pods = rapid.IntRange(0, 5).Draw(t, name)
		for i := range pods {
			text += fmt.Sprintf("pod %s-%d %s cpu=%dm gpu=%d %s\n", name, i, where, 100*rapid.IntRange(0, milli).Draw(t, "cpu"),
				rapid.IntRange(0, gpus).Draw(t, "gpu"), rapid.SampledFrom(append(rules, "")).Draw(t, "rules"))
		}
		return pods
	}
	waiting, there, load := draw("w", "waiting", 1, 25, rules...), draw("there", "on=n-000", 0, 10, rules...), draw("load", "on=n-000", 0, 10)
	s := parse(t, text)
	c := clusterOf(s)
	tenants := func(name string, count int) (list []fit.Tenant) {
		for i := range count {
			list = append(list, c.Tenant(podNamed(s, fmt.Sprintf("%s-%d", name, i))))
		}
		return list
	}
	p := &loadedPlace{Cluster: c, Place: c.Add(c.TemplateFrom(&s.Nodes[0], none)), waiting: tenants("w", waiting), loaded: tenants("load", load), text: text}
	for _, tenant := range p.loaded {
		p.load.Add(tenant.Class)
	}
	for _, tenant := range tenants("there", there) {
		c.Put(tenant, p.Place)
	}
	return p
}

// What might not be held with a load is held by no place on which the load is, and what
// might be, is, where pods have nothing against each other but ports: those of the load
// are not asked.
func TestMightHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawLoadedPlace(t, "hostport=80", "hostport=81", "selector=disk=ssd")
		for _, w := range p.waiting {
			might := p.MightHold(w.Class, p.load, p.Place)
			start := p.Fork()
			for _, tenant := range p.loaded {
				p.Put(tenant, p.Place)
			}
			if why := p.Fits(w.Class, p.Place); might != (len(why) == 0) {
				t.Fatalf("pod %s might be held: %t; with the load on the place: %v\n%s", w.Pod.Name, might, why, p.text)
			}
			p.Revert(start)
		}
	})
}

// What might not be held without a load is not held when that has left, and what might be,
// is, where pods have nothing against each other.
func TestMightHoldWithout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawLoadedPlace(t, "selector=disk=ssd")
		for _, w := range p.waiting {
			without := p.Fits(w.Class, p.Place)
			start := p.Fork()
			for _, tenant := range p.loaded {
				p.Put(tenant, p.Place)
			}
			if might := p.MightHoldWithout(w.Class, p.load, p.Place); might != (len(without) == 0) {
				t.Fatalf("pod %s might be held: %t; without the load: %v\n%s", w.Pod.Name, might, without, p.text)
			}
			p.Revert(start)
		}
	})
}

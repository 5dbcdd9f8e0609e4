package fit_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"windlass.dev/windlass/scaler/fit"
)

// What might not be held with a load is held by no place on which the load is, and what
// might be, is, where pods have nothing against each other but ports: those of the load
// are not asked.
func TestMightHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := func(label string) string {
			return rapid.SampledFrom([]string{"", "hostport=80", "hostport=81", "selector=disk=ssd"}).Draw(t, label)
		}
		text, _ := drawNodes(t, 1, 1)
		waiting, there, coming := rapid.IntRange(1, 5).Draw(t, "waiting"), rapid.IntRange(0, 5).Draw(t, "there"), rapid.IntRange(0, 5).Draw(t, "coming")
		for i := range waiting {
			text += fmt.Sprintf("pod w-%d waiting cpu=%dm gpu=%d %s\n", i, 100*rapid.IntRange(0, 25).Draw(t, "cpu"), rapid.IntRange(0, 1).Draw(t, "gpu"), rules("rules"))
		}
		for i := range there {
			text += fmt.Sprintf("pod there-%d on=n-000 cpu=%dm %s\n", i, 100*rapid.IntRange(0, 10).Draw(t, "cpu"), rules("rules"))
		}
		for i := range coming {
			text += fmt.Sprintf("pod load-%d on=n-000 cpu=%dm\n", i, 100*rapid.IntRange(0, 10).Draw(t, "cpu"))
		}
		s := parse(t, text)
		c := clusterOf(s)
		place := c.Add(c.LooksOf(&s.Nodes[0], none))
		var load fit.Load
		var loaded []fit.Tenant
		for i := range coming {
			tenant := c.Tenant(podNamed(s, fmt.Sprint("load-", i)))
			load.Add(tenant.Class)
			loaded = append(loaded, tenant)
		}
		for i := range there {
			c.Put(c.Tenant(podNamed(s, fmt.Sprint("there-", i))), place)
		}
		for i := range waiting {
			class := c.Tenant(podNamed(s, fmt.Sprint("w-", i))).Class
			might := c.MightHold(class, load, place)
			start := c.Fork()
			for _, tenant := range loaded {
				c.Put(tenant, place)
			}
			if why := c.Fits(class, place); might != (len(why) == 0) {
				t.Fatalf("pod w-%d might be held: %t; with the load on the place: %v\n%s", i, might, why, text)
			}
			c.Revert(start)
		}
	})
}

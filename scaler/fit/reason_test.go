package fit_test

import (
	"testing"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

// Each row asks why the pod p does not go to the node n, because of other pods. There
// is a node m in zone b too.
func TestReasonsOfOtherPods(t *testing.T) {
	for _, tc := range []struct{ name, pods, want string }{
		{
			"its own anti-affinity", "pod q on=n labels=app=web\npod p waiting labels=app=web apart",
			"anti-affinity with app=web, and pod default/q is there (kubernetes.io/hostname)",
		},
		{
			"that of a pod that is there", "pod q on=n labels=app=web apart\npod p waiting labels=app=web",
			"anti-affinity with app=web of pod default/q (kubernetes.io/hostname)",
		},
		{"of a pod that is elsewhere", "pod q on=m labels=app=web apart\npod p waiting labels=app=web", ""},
		{
			"its company is in another zone", "pod q on=m labels=app=web\npod p waiting labels=app=web together=" + zone,
			"no other pod matches its affinity with app=web in a",
		},
		{"it is the first of its company", "pod p waiting labels=app=web together=" + zone, ""},
		{
			"the node is in no domain of its company", "pod q on=m labels=app=web\npod p waiting labels=app=web together=rack",
			"affinity with app=web: it has no label rack",
		},
		{
			"too many in the zone", "pod q on=n labels=app=web\npod p waiting labels=app=web spread=" + zone,
			"spread app=web over topology.kubernetes.io/zone: 1 in a, at most 1 more than 0",
		},
		{
			"too many on the node", "pod q on=n labels=app=web\npod p waiting labels=app=web spread=kubernetes.io/hostname",
			"spread app=web over kubernetes.io/hostname: 1 in n, at most 1 more than 0",
		},
		{"as many everywhere", "pod q on=n labels=app=web\npod r on=m labels=app=web\npod p waiting labels=app=web spread=" + zone, ""},
		{
			"the node is in no domain to spread over", "pod p waiting labels=app=web spread=rack",
			"spread app=web over rack: it has no such label",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := parse(t, "group web zones=a,b\nnode n zone=a\nnode m zone=b\n"+tc.pods)
			c := clusterOf(s)
			places := map[string]*fit.Place{}
			for i := range s.Nodes {
				places[s.Nodes[i].Name] = c.Add(c.TemplateFrom(&s.Nodes[i], none))
			}
			for _, p := range s.Pods {
				if p.Node != "" {
					c.Put(c.Tenant(p), places[p.Node])
				}
			}
			if got := c.Fits(c.Tenant(podNamed(s, "p")).Class, places["n"]).String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Node templates have equal keys where the same pods fit, and only there: whoever asks many
// groups need not ask similar groups again.
func TestKeyOfLooks(t *testing.T) {
	const like = "group like type=m5.large zones=a"
	for _, tc := range []struct {
		name, other string
		alike       bool
	}{
		{"another name", "group other type=m5.large zones=a", true},
		{"another zone", "group other type=m5.large zones=b", false},
		{"more cpu", "group other type=m5.large zones=a cpu=3", false},
		{"a label", "group other type=m5.large zones=a labels=disk=ssd", false},
		{"a taint", "group other type=m5.large zones=a taints=x=y:NoSchedule", false},
		{"a taint that bars nobody", "group other type=m5.large zones=a taints=x=y:PreferNoSchedule", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := parse(t, like+"\n"+tc.other)
			c := clusterOf(s)
			keys := map[string]string{}
			for _, g := range s.Groups {
				keys[g.Name] = c.TemplateOf(&g.NodeTemplates[0]).Key()
			}
			if got := keys["like"] == keys["other"]; got != tc.alike {
				t.Errorf("alike: %t, want %t\n%s\n%s", got, tc.alike, keys["like"], keys["other"])
			}
		})
	}
}

// A pod of a DaemonSet that would run on one node and not on the other separates their
// templates, though both had the same key before it was reserved for.
func TestKeyOfLooksFollowsWhatIsReserved(t *testing.T) {
	s := parse(t, "group web\nnode n\ndaemonset proxy cpu=100m tolerates=*")
	c := fit.NewRules().Cluster(fit.World{DaemonSets: s.DaemonSets})
	looks := c.TemplateFrom(&s.Nodes[0], none)
	before := looks.Key()
	c.Reserve(looks, []*fleet.Pod{})
	if looks.Key() == before {
		t.Error("the key is the same with and without what the DaemonSet takes")
	}
}

package cloud

import (
	"cmp"
	"container/heap"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Cloud is the state of one account in one region. It is not safe for concurrent use.
type Cloud struct {
	spec    Spec
	started time.Time
	now     time.Time

	timers timers
	made   int // how many ids were made; ids are hashes of it, so that runs repeat

	groups    []*group
	instances []*instance // in the order of their launch; the terminated ones linger
	byID      map[string]*instance
	templates []LaunchTemplate
	hosts     map[string]int // next host number by zone

	activities []*activity // oldest first
	timeouts   []Timeout
	shortages  []Shortage
	launched   map[string]*launchCall // by group and client token

	events []Instance

	// address gives a new instance the address of its metadata service.
	address func(id string) string
}

// New makes the cloud of the spec; the first instances start at now. address is asked, once per instance, for the address of its metadata service; it
// may be nil.
func New(spec Spec, now time.Time, address func(id string) string) (*Cloud, error) {
	spec = withDefaults(spec)
	if err := check(spec); err != nil {
		return nil, err
	}
	if address == nil {
		address = func(string) string { return "" }
	}
	c := &Cloud{
		spec: spec, started: now, now: now, byID: map[string]*instance{}, hosts: map[string]int{}, launched: map[string]*launchCall{},
		templates: slices.Clone(spec.LaunchTemplates), address: address,
	}
	for _, g := range spec.Groups {
		if err := c.AddGroup(g, now); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// AddGroup makes another group, as CreateAutoScalingGroup would.
func (c *Cloud) AddGroup(spec Group, now time.Time) error {
	c.Advance(now)
	spec, template := completeGroup(spec, c.spec.Region)
	if c.findGroup(spec.Name) != nil {
		return Errorf(400, "AlreadyExists", "AutoScalingGroup by this name already exists - A group with the name %s already exists", spec.Name)
	}
	before := c.templates
	if template != nil {
		c.templates = append(slices.Clone(c.templates), *template)
	}
	if err := c.checkGroup(spec); err != nil {
		c.templates = before
		return fmt.Errorf("group %q: %w", spec.Name, err)
	}
	g := newGroup(c, spec)
	c.groups = append(c.groups, g)
	g.because("a user request created an AutoScalingGroup changing the desired capacity from 0 to %d", g.desired)
	c.reconcileNow(g)
	return nil
}

// Region and Account name where the cloud is.
func (c *Cloud) Region() string { return c.spec.Region }

// Account is the twelve-digit account id.
func (c *Cloud) Account() string { return c.spec.Account }

// Started is when the cloud was made.
func (c *Cloud) Started() time.Time { return c.started }

// LaunchTakes is how long one LaunchInstances call takes.
func (c *Cloud) LaunchTakes() time.Duration { return c.scaled(c.spec.Timing.LaunchInstances) }

// Lag is how old the answer to a call that describes may be.
func (c *Cloud) Lag() time.Duration { return c.scaled(c.spec.Timing.Lag) }

// Spec is the completed spec that the cloud was made from.
func (c *Cloud) Spec() Spec { return c.spec }

// TakeEvents returns the snapshots of instances that changed since the last call, in order.
func (c *Cloud) TakeEvents() []Instance {
	events := c.events
	c.events = nil
	return events
}

// Advance carries out, in order, all that is due by now.
func (c *Cloud) Advance(now time.Time) {
	for len(c.timers) > 0 && !c.timers[0].at.After(now) {
		t := heap.Pop(&c.timers).(*timer)
		c.now = later(c.now, t.at)
		t.do()
	}
	c.now = later(c.now, now)
}

// Next is when Advance will have something to do.
func (c *Cloud) Next() (time.Time, bool) {
	if len(c.timers) == 0 {
		return time.Time{}, false
	}
	return c.timers[0].at, true
}

// after does something later. A scaled duration has gone through c.scaled already.
func (c *Cloud) after(d time.Duration, do func()) {
	heap.Push(&c.timers, &timer{at: c.now.Add(d), seq: c.id(), do: do})
}

// scaled is how long a duration of the spec takes.
func (c *Cloud) scaled(d Duration) time.Duration {
	return time.Duration(float64(d) / c.spec.TimeScale)
}

func (c *Cloud) findGroup(name string) *group {
	i := slices.IndexFunc(c.groups, func(g *group) bool { return g.spec.Name == name })
	if i < 0 {
		return nil
	}
	return c.groups[i]
}

func (c *Cloud) groupOf(i *instance) *group { return c.findGroup(i.Group) }

// managed finds an instance that belongs to a group.
func (c *Cloud) managed(id string) (*instance, *group, error) {
	i := c.byID[id]
	if i == nil || i.Gone || i.Group == "" {
		return nil, nil, noManagedInstance(id)
	}
	return i, c.groupOf(i), nil
}

// id makes the next number that every id is made of.
func (c *Cloud) id() int {
	c.made++
	return c.made
}

// hexID makes an id of AWS: seventeen hexadecimal digits after a prefix.
func (c *Cloud) hexID(prefix string) string {
	return prefix + "-0" + digest(fmt.Sprint(prefix, c.spec.Region, c.id()))[:16]
}

// uuid makes an id of the form that activities, tokens and refreshes have.
func (c *Cloud) uuid() string {
	return uuidOf(fmt.Sprint(c.spec.Region, c.id()))
}

func uuidOf(seed string) string {
	h := digest(seed)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:32]
}

func digest(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// timer is something to do at a time; those of one time run in the order in which they were set.
type timer struct {
	at  time.Time
	seq int
	do  func()
}

type timers []*timer

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	return cmp.Or(t[i].at.Compare(t[j].at), cmp.Compare(t[i].seq, t[j].seq)) < 0
}
func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)   { *t = append(*t, x.(*timer)) }
func (t *timers) Pop() any {
	old := *t
	last := old[len(old)-1]
	*t = old[:len(old)-1]
	return last
}

// Now is the time up to which the cloud has been advanced.
func (c *Cloud) Now() time.Time { return c.now }

// Zones are the zones of the region: a, b and c, and those that groups use besides.
func (c *Cloud) Zones() []string {
	zones := []string{c.spec.Region + "a", c.spec.Region + "b", c.spec.Region + "c"}
	for _, g := range c.groups {
		for _, z := range g.spec.Zones {
			if !slices.Contains(zones, z) {
				zones = append(zones, z)
			}
		}
	}
	return zones
}

// Snapshot is the cloud as it is now, to be looked at and not to be changed: nothing happens in it any more.
func (c *Cloud) Snapshot() *Cloud {
	s := *c
	s.timers, s.events, s.launched, s.groups, s.instances, s.activities = nil, nil, nil, nil, nil, nil
	s.byID = make(map[string]*instance, len(c.byID))
	for _, i := range c.instances {
		i := &instance{Instance: i.snapshot(), cloud: &s, notices: i.notices, data: i.data}
		for n := range i.Waiting {
			i.actions = append(i.actions, &i.Waiting[n])
		}
		s.instances = append(s.instances, i)
		s.byID[i.ID] = i
	}
	for _, g := range c.groups {
		g := *g
		g.cloud, g.suspended, g.refreshes = &s, maps.Clone(g.suspended), slices.Clone(g.refreshes)
		for n, r := range g.refreshes {
			g.refreshes[n] = &refresh{Refresh: r.Refresh}
		}
		s.groups = append(s.groups, &g)
	}
	for _, a := range c.activities {
		s.activities = append(s.activities, &activity{a.Activity})
	}
	return &s
}

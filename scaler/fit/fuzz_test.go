package fit_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	helper "k8s.io/component-helpers/resource"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/fit/oracle"
)

var (
	pairs    = flag.Int("pairs", 100_000, "how many (pod, place) pairs TestAgainstScheduler compares")
	seed     = flag.Uint64("seed", 1, "the first random world of TestAgainstScheduler; each is the seed of the next plus one")
	only     = flag.Int("minor", 0, "compare by the rules of Kubernetes 1.minor alone")
	features = flag.Uint("features", uint(modelled), "a bit for each part of the rules that worlds make use of")
	most     = flag.Int("mismatches", 3, "stop after so many")
	omit     = flag.String("omit", "", "leave these pods and nodes out of random worlds, such as p3,n1")
)

// modelled are the parts of the rules that fit follows so far.
const modelled = feature(1<<11 - 1)

// The minor versions whose feature gates are compared.
var minors = []int{33, 34, 35, 36}

// Whatever kube-scheduler decides on a pod and a node, fit decides too: in random
// clusters that make use of all its rules, at every step of a packing, with the
// feature gates of each version. The reasons agree as far as the scheduler gives
// them: it stops at the first plugin that refuses, which must be among fit's rules.
//
// A mismatch prints how to see it again. `make fuzz` compares more.
func TestAgainstScheduler(t *testing.T) {
	began := time.Now()
	versions := minors
	if *only != 0 {
		versions = []int{*only}
	}
	total := tally{}
	for _, minor := range versions {
		judge, err := oracle.New(t.Context(), fmt.Sprint("1.", minor))
		if err != nil {
			t.Fatal(err)
		}
		c := newComparison(minor, judge)
		for s := *seed; c.pairs < *pairs/len(versions) && total.mismatches+c.mismatches < *most; s++ {
			if found := c.run(t, s, splitList(*omit)); found != nil {
				c.mismatches++
				t.Error(c.shrink(t, s, found))
			}
		}
		total.add(c.tally)
	}
	t.Logf("%d pairs in %d worlds from seed %d: %d mismatches, %.1f s\nkube-scheduler's answers: %s",
		total.pairs, total.worlds, *seed, total.mismatches, time.Since(began).Seconds(), total.answers)
	if total.mismatches == 0 && total.pairs >= 50_000 {
		total.answers.checkVariety(t, total.pairs)
	}
}

// tally counts what was compared.
type tally struct {
	pairs, worlds, mismatches int
	answers                   answers
}

func (t *tally) add(o tally) {
	t.pairs += o.pairs
	t.worlds += o.worlds
	t.mismatches += o.mismatches
	for plugin, n := range o.answers {
		t.answers.count(plugin, n)
	}
}

// answers counts for each plugin how often kube-scheduler named it; "" counts
// the pairs that fit.
type answers map[string]int

func (a *answers) count(plugin string, n int) {
	if *a == nil {
		*a = answers{}
	}
	(*a)[plugin] += n
}

func (a answers) String() string {
	texts := []string{fmt.Sprintf("fits %d", a[""])}
	for _, plugin := range slices.Sorted(maps.Keys(a)) {
		if plugin != "" {
			texts = append(texts, fmt.Sprintf("%s %d", plugin, a[plugin]))
		}
	}
	return strings.Join(texts, ", ")
}

// refusing are the plugins that worlds with a feature give reason to refuse.
var refusing = map[feature][]string{
	0:         {"", "NodeResourcesFit"},
	ports:     {"NodePorts"},
	nodeTerms: {"NodeAffinity"},
	taints:    {"NodeUnschedulable", "TaintToleration"},
	podTerms:  {"InterPodAffinity"},
	spread:    {"PodTopologySpread"},
	volumes:   {"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"},
	devices:   {"DynamicResources"},
	declared:  {"NodeDeclaredFeatures"},
}

// checkVariety fails where an answer is so rare that little was compared.
func (a answers) checkVariety(t *testing.T, pairs int) {
	for part, plugins := range refusing {
		for _, plugin := range plugins {
			if feature(*features)&part == part && a[plugin] < pairs/5000 && (*only == 0 || *only >= 36) {
				t.Errorf("of %d pairs only %d get the answer %q: that compares little", pairs, a[plugin], plugin)
			}
		}
	}
}

// comparison is of one version's rules. What fit keeps goes from world to world, as it goes
// from evaluation to evaluation.
type comparison struct {
	minor  int
	oracle *oracle.Oracle
	rules  *fit.Rules
	// specs are shared by pods of equal ones, as those that are observed.
	specs map[string]*corev1.PodSpec
	tally
}

func newComparison(minor int, judge *oracle.Oracle) comparison {
	c := comparison{minor: minor, oracle: judge}
	c.forget()
	return c
}

// forget drops all that was kept.
func (c *comparison) forget() { c.rules, c.specs = fit.NewRules(), map[string]*corev1.PodSpec{} }

// bench is one world, as both see it.
type bench struct {
	dice
	*comparison
	t       *testing.T
	world   world
	shown   []*fleet.Pod // the pods of the world
	cluster *fit.Cluster

	places []*fit.Place
	nodes  []string // of the oracle, by the places' index
	// waiting are pods without a node, seated those with one.
	waiting []*pod
	seated  map[*pod]int // index of the place
	closed  map[*fit.Place]bool
	steps   []string
	found   *mismatch
}

// pod is a pod as the API has it, and as fit has it.
type pod struct {
	*corev1.Pod
	tenant fit.Tenant
}

// run compares one world, step by step, without the pods and nodes of those names.
// It returns the first mismatch, nil without one.
func (c *comparison) run(t *testing.T, seed uint64, omitted []string) *mismatch {
	w := newWorld(seed, c.minor, feature(*features))
	w.omit(omitted)
	if c.worlds++; c.worlds%50 == 0 {
		c.forget()
	}
	d := newDice(^seed)
	shown := c.show(w.Pods)
	var steps []string
	for look := range d.between(1, 2) {
		if look > 0 {
			steps = append(steps, "look again")
		}
		b := &bench{dice: d, comparison: c, t: t, world: w, shown: shown, seated: map[*pod]int{}, closed: map[*fit.Place]bool{}, steps: steps}
		b.begin()
		for range b.between(2, 5) {
			if !b.compare() || !b.step() {
				break
			}
		}
		if b.found == nil {
			b.compare()
		}
		if b.found != nil {
			b.found.omitted = omitted
			return b.found
		}
		steps = b.steps
	}
	return nil
}

// show gives the pods as the scaler observes them.
func (c *comparison) show(pods []*corev1.Pod) []*fleet.Pod {
	var shown []*fleet.Pod
	for _, p := range pods {
		seen := fleetPod(p)
		key := short(seen.Spec)
		if known, ok := c.specs[key]; ok {
			seen.Spec = known
		}
		c.specs[key] = seen.Spec
		shown = append(shown, seen)
	}
	return shown
}

// begin shows the world to both.
func (b *bench) begin() {
	w := b.world.World
	var alive []*corev1.Pod
	for _, p := range w.Pods {
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			alive = append(alive, p) // the scheduler does not see the others
		}
	}
	w.Pods = alive
	bare := w
	bare.Nodes = nil
	ignored := b.ignored()
	for _, n := range w.Nodes {
		bare.Nodes = append(bare.Nodes, without(n, ignored))
	}
	b.oracle.Reset(bare)

	b.cluster = b.rules.Cluster(fit.World{
		Kubernetes: fmt.Sprintf("v1.%d.2", b.minor), Pods: b.shown,
		Namespaces: w.Namespaces, Storage: w.Storage, Devices: w.Devices, Closing: closing,
	})
	for _, n := range w.Nodes {
		node := fleet.NodeFrom(n)
		b.places = append(b.places, b.cluster.Add(b.cluster.TemplateFrom(&node, ignored)))
		b.nodes = append(b.nodes, n.Name)
	}
	running := make([][]fit.Tenant, len(b.places))
	for i, p := range b.world.Pods {
		if b.shown[i].Ended() {
			continue
		}
		p := &pod{p, b.cluster.Tenant(b.shown[i])}
		if p.Spec.NodeName == "" {
			b.waiting = append(b.waiting, p)
			continue
		}
		place := slices.Index(b.nodes, p.Spec.NodeName)
		running[place] = append(running[place], p.tenant)
		b.seated[p] = place
	}
	for i, tenants := range running {
		b.cluster.Furnish(b.places[i], b.cluster.NewCrew(tenants))
	}
}

// ignored returns which taints fit has to ignore in this world.
func (b *bench) ignored() func(corev1.Taint) bool {
	if b.dice.Rand == nil || b.chance(75) {
		return none
	}
	return func(t corev1.Taint) bool { return t.Key == "spot" || t.Key == corev1.TaintNodeUnschedulable }
}

// without is the node as if it had none of those taints.
func without(n *corev1.Node, ignored func(corev1.Taint) bool) *corev1.Node {
	bare := n.DeepCopy()
	bare.Spec.Taints = slices.DeleteFunc(bare.Spec.Taints, ignored)
	bare.Spec.Unschedulable = n.Spec.Unschedulable && !ignored(corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	return bare
}

// fleetPod is the pod as the scaler observes it.
func fleetPod(p *corev1.Pod) *fleet.Pod {
	seen := fleet.PodFrom(p)
	if len(p.Status.ContainerStatuses) > 0 {
		seen.Allocate(helper.PodRequests(p, helper.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true}))
	}
	return &seen
}

// compare asks both about every waiting pod and every place.
func (b *bench) compare() bool {
	row := b.cluster.NewRow(b.places)
	for _, p := range b.waiting {
		question := b.oracle.Ask(p.Pod)
		var first *fit.Place
		for i, place := range b.places {
			if b.closed[place] {
				continue // rows leave it out, and it is never asked alone
			}
			b.pairs++
			want, got := question.On(b.nodes[i]), b.cluster.Fits(p.tenant.Class, place)
			b.answers.count(want.Plugin, 1)
			if why := differ(want, got); why != "" {
				b.mismatch(p, b.nodes[i], why)
				return false
			}
			if first == nil && want.Plugin == "" {
				first = place
			}
		}
		if got := row.Find(p.tenant.Class); got != first {
			b.mismatch(p, "any", fmt.Sprintf("in a row it fits %s first, want %s", nameOf(got), nameOf(first)))
			return false
		}
	}
	return true
}

func nameOf(p *fit.Place) string {
	if p == nil {
		return "no place"
	}
	return p.Name
}

// differ returns how two verdicts disagree; "" if they do not.
func differ(want oracle.Verdict, got fit.Reasons) string {
	if want.Plugin == "" && len(got) == 0 {
		return ""
	}
	if want.Plugin != "" && slices.ContainsFunc(got, func(r fit.Reason) bool { return pluginOf(r.Rule) == want.Plugin }) {
		return ""
	}
	if want.Plugin == "" {
		return fmt.Sprintf("kube-scheduler: fits; fit: %s (%s)", got, rulesOf(got))
	}
	return fmt.Sprintf("kube-scheduler: %s %q; fit: %s (%s)", want.Plugin, want.Reasons, got, rulesOf(got))
}

// pluginOf a rule. NodeAffinity looks at selectors too.
func pluginOf(r fit.Rule) string {
	if r == fit.RuleSelector {
		return "NodeAffinity"
	}
	return string(r)
}

func rulesOf(reasons fit.Reasons) string {
	var rules []string
	for _, r := range reasons {
		rules = append(rules, string(r.Rule))
	}
	return strings.Join(rules, ", ")
}

func (b *bench) mismatch(p *pod, node, why string) {
	b.found = &mismatch{
		what:  fmt.Sprintf("pod %s/%s, node %s: %s", p.Namespace, p.Name, node, why),
		steps: b.steps, world: b.world,
	}
}

// step does something to both; false if they disagree about it.
func (b *bench) step() bool {
	switch b.IntN(10) {
	case 0:
		b.open()
	case 1:
		b.lift()
	case 2:
		return b.whatIf()
	case 3:
		return b.pour()
	default:
		return b.seat()
	}
	return true
}

func (b *bench) told(format string, args ...any) {
	b.steps = append(b.steps, fmt.Sprintf(format, args...))
}

// open adds a node of some node template.
func (b *bench) open() {
	shape := one(b.dice, b.world.shapes...)
	name := fmt.Sprint("new-", len(b.steps))
	b.told("open %s", name)
	place := b.cluster.Open(name, b.cluster.TemplateOf(&shape))
	b.places, b.nodes = append(b.places, place), append(b.nodes, name)

	var csi *storagev1.CSINode
	if shape.Drivers != nil {
		csi = &storagev1.CSINode{Spec: storagev1.CSINodeSpec{Drivers: shape.Drivers}}
		csi.Name = name
	}
	var slices []*resourcev1.ResourceSlice
	for _, s := range shape.Slices {
		moved := s.DeepCopy()
		moved.Name, moved.Spec.NodeName, moved.Spec.Pool.Name = "slice-"+name, &name, name
		slices = append(slices, moved)
	}
	b.oracle.Open(nodeOf(shape, name), csi, slices)
}

// closing are the taints of nodes that are to go. Some pods tolerate one of them.
var closing = []corev1.Taint{{Key: "spot", Value: "closing", Effect: corev1.TaintEffectNoSchedule}, {Key: "closing", Effect: corev1.TaintEffectNoSchedule}}

// close has a node be one that is to go.
func (b *bench) close(at int) {
	b.told("close %s", b.nodes[at])
	b.cluster.Close(b.places[at])
	b.oracle.Taint(b.nodes[at], closing...)
	b.closed[b.places[at]] = true
}

// lift takes a pod off its node.
func (b *bench) lift() {
	var candidates []*pod
	for p := range b.seated {
		candidates = append(candidates, p)
	}
	if len(candidates) == 0 {
		return
	}
	slices.SortFunc(candidates, func(p, q *pod) int { return strings.Compare(p.Name, q.Name) })
	p := one(b.dice, candidates...)
	b.told("lift %s off %s", p.Name, b.nodes[b.seated[p]])
	b.cluster.Lift(p.tenant, b.places[b.seated[p]])
	b.oracle.Lift(p.Pod)
	delete(b.seated, p)
}

// seat gives a waiting pod a place that it fits, if there is one.
func (b *bench) seat() bool {
	if len(b.waiting) == 0 {
		return true
	}
	i := b.IntN(len(b.waiting))
	p := b.waiting[i]
	for _, at := range b.Perm(len(b.places)) {
		if b.closed[b.places[at]] {
			continue
		}
		if fits := len(b.cluster.Fits(p.tenant.Class, b.places[at])) == 0; b.cluster.TrySeat(p.tenant, b.places[at]) != fits {
			b.mismatch(p, b.nodes[at], fmt.Sprintf("fits: %t, but seated: %t", fits, !fits))
			return false
		} else if !fits {
			continue
		}
		b.told("seat %s on %s", p.Name, b.nodes[at])
		if err := b.oracle.Seat(p.Pod, b.nodes[at]); err != nil {
			b.mismatch(p, b.nodes[at], fmt.Sprintf("fit seats it; kube-scheduler: %v", err))
			return false
		}
		b.waiting = slices.Delete(slices.Clone(b.waiting), i, i+1)
		b.seated[p] = at
		return true
	}
	return true
}

// pour seats waiting pods in a row of places, each at the first that it fits.
func (b *bench) pour() bool {
	row := b.cluster.NewRow(b.places)
	b.told("pour")
	for _, p := range b.waiting[:b.IntN(len(b.waiting)+1)] {
		question := b.oracle.Ask(p.Pod)
		want := slices.IndexFunc(b.nodes, func(n string) bool { return question.On(n).Plugin == "" })
		got := slices.Index(b.places, row.Seat(p.tenant)) // -1 for none
		if got != want {
			b.mismatch(p, "any", fmt.Sprintf("in a row it is seated at place %d, want %d", got, want))
			return false
		}
		if got < 0 {
			continue
		}
		if err := b.oracle.Seat(p.Pod, b.nodes[got]); err != nil {
			b.t.Fatal(err)
		}
		b.told("seat %s on %s", p.Name, b.nodes[got])
		b.seated[p] = got
	}
	b.waiting = slices.DeleteFunc(slices.Clone(b.waiting), func(p *pod) bool { _, seated := b.seated[p]; return seated })
	return true
}

// whatIf does some steps, compares, and takes them back.
func (b *bench) whatIf() bool {
	mark, done := b.cluster.Fork(), b.oracle.Steps()
	places, nodes, waiting, seated := b.places, b.nodes, b.waiting, maps.Clone(b.seated)
	b.told("fork")
	for range b.between(1, 3) {
		switch b.IntN(5) {
		case 0:
			b.open()
		case 1:
			b.lift()
		case 2:
			b.close(b.IntN(len(b.places)))
		default:
			if !b.seat() {
				return false
			}
		}
	}
	if !b.compare() {
		return false
	}
	b.told("revert")
	b.cluster.Revert(mark)
	clear(b.closed)
	if err := b.oracle.Revert(done); err != nil {
		b.t.Fatal(err)
	}
	b.places, b.nodes, b.waiting, b.seated = slices.Clip(places), slices.Clip(nodes), waiting, seated
	return true
}

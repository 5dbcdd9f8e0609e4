package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// Format prints a snapshot as lines that Parse reads, sorted by verb and name.
// What a scenario can say comes back as it was; of other snapshots it is a
// summary.
func Format(s fleet.Snapshot) string {
	p := printer{s: s, nodeOf: map[string]bool{}}
	p.line("now", printTime(s.Now))
	for _, n := range s.Nodes {
		p.nodeOf[n.InstanceID()] = true
	}
	each(s.Groups, func(g fleet.Group) string { return g.Name }, p.group)
	each(s.DaemonSets, func(d fleet.DaemonSet) string { return d.Namespace + "/" + d.Name }, p.daemonSet)
	each(s.Nodes, func(n fleet.Node) string { return n.Name }, p.node)
	each(s.Pods, (*fleet.Pod).Key, p.pod)
	each(s.Budgets, fleet.Budget.Key, p.budget)
	p.owners(s.Owners)
	each(s.Buffers, fleet.Buffer.Key, p.buffer)
	each(s.Quotas, fleet.Quota.Key, p.quota)
	p.storage(s.Storage)
	each(s.Nodes, func(n fleet.Node) string { return n.Name }, p.words)
	for _, name := range slices.Sorted(maps.Keys(s.Agents)) {
		p.line("agent", name, flag("ready", s.Agents[name]), flag("gone", !s.Agents[name]))
	}
	p.state(s.State)
	if s.Priorities != nil {
		p.line("priorities", `"`+*s.Priorities+`"`)
	}
	if s.Cluster != "" {
		p.line("cluster", string(s.Cluster))
	}
	each(s.Autoscalers, fleet.Autoscaler.String, func(a fleet.Autoscaler) {
		p.line("rival", a.Namespace+"/"+a.Name, flag("windlass", a.Kind == fleet.Windlass), flag("status", a.Sign == fleet.SignStatus),
			at("renewed", a.Renewed), said("holder", a.Holder), flag("powerless", a.Powerless), flag("younger", a.Younger), said("groups", strings.Join(a.Groups, ",")))
	})
	for _, id := range slices.Sorted(maps.Keys(s.Machines)) {
		m := s.Machines[id]
		p.line("machine", id, said("state", m.State), said("group", m.Group), flag("hibernates", m.Hibernates))
	}
	each(s.NodePools, func(n fleet.NodePool) string { return n.Name }, p.nodePool)
	each(s.TerminationHandlers, func(h fleet.TerminationHandler) string { return h.Owner }, func(h fleet.TerminationHandler) {
		p.line("handler", h.Namespace+"/"+h.Owner[strings.LastIndexByte(h.Owner, ' ')+1:], said("queue", h.Queue))
	})
	for _, o := range s.Outages {
		p.line("outage", printTime(o.Until), at("from", o.From))
	}
	if !s.Leads.IsZero() {
		p.line("leads", printTime(s.Leads))
	}
	return p.out.String()
}

// each prints a list in the order of its names.
func each[T any](list []T, name func(T) string, print func(T)) {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b T) int { return cmp.Compare(name(a), name(b)) })
	for _, thing := range sorted {
		print(thing)
	}
}

type printer struct {
	s      fleet.Snapshot
	nodeOf map[string]bool
	out    strings.Builder
}

// line prints a verb, a name and those words that are not empty.
func (p *printer) line(verb, name string, words ...string) {
	p.out.WriteString(verb + " " + name)
	for _, w := range words {
		if w == "" {
			continue
		}
		if strings.ContainsAny(w, " \t#") {
			w = `"` + w + `"`
		}
		p.out.WriteString(" " + w)
	}
	p.out.WriteString("\n")
}

// said is a word unless its value is empty; flag one if it is so; at one unless
// the moment is zero; other one unless the value is the usual one.
func said(key, value string) string {
	if value == "" {
		return ""
	}
	return key + "=" + value
}

func flag(key string, is bool) string {
	if !is {
		return ""
	}
	return key
}

func at(key string, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return key + "=" + printTime(t)
}

func other(key, value, usual string) string {
	if value == usual {
		return ""
	}
	return key + "=" + value
}

func (p *printer) nodePool(n fleet.NodePool) {
	words := []string{said("taints", printTaints(n.Taints))}
	for _, r := range n.Requirements {
		words = append(words, said(strings.ToLower(string(r.Operator)), r.Key+":"+strings.Join(r.Values, "|")))
	}
	p.line("nodepool", n.Name, words...)
}

func (p *printer) group(g fleet.Group) {
	words := []string{
		fmt.Sprintf("min=%d", g.Min), fmt.Sprintf("max=%d", g.Max), fmt.Sprintf("desired=%d", g.Desired),
		said("zones", strings.Join(g.Zones, ",")), flag("shapeless", len(g.NodeTemplates) == 0), flag("uncountable", g.Uncountable), flag("external", g.External), said("held", g.Held), flag("unread", g.Unread),
	}
	if len(g.NodeTemplates) > 0 {
		s := g.NodeTemplates[0]
		words = append(words, other("type", s.InstanceType, "m5.large"))
		words = append(words, roomWords(s.Allocatable, instanceTypes[s.InstanceType])...)
		words = append(words, said("labels", printPairs(s.Labels)), said("taints", printTaints(s.Taints)), said("image", s.Image))
		if len(s.Largest) > 0 {
			words = append(words, said("largest", s.Largest.Cpu().String()+"/"+s.Largest.Memory().String()))
		}
		words = append(words, printPrice(s.PricePerHour))
	}
	words = append(words, flag("pool", g.WarmPool != nil), flag("refreshed", g.Refresh != nil))
	if r := g.Replacement; r != nil {
		words = append(words, printReplacement(*r))
	}
	words = append(words, said("template", g.Template), flag("mixed", g.Mixed), flag("spot", g.Spot))
	for _, h := range g.Hooks {
		words = append(words, printHook(h))
	}
	for _, f := range g.Failures {
		words = append(words, said("failed", strings.TrimSuffix(printTime(f.At)+"/"+f.Cause+"/"+f.Zone, "/")))
	}
	for _, f := range g.Faults {
		words = append(words, said("fault", f))
	}
	words = append(words, said("owner", string(g.Owner)), flag("observed", g.Observed), said("suspended", strings.Join(g.Suspended, ",")), flag("unhooked", g.HooksUnknown && g.HooksFault == ""), said("unhooked", g.HooksFault), flag("steered", g.Synchronous))
	if t := g.ScaleDown.UtilizationThreshold; t != nil {
		words = append(words, said("threshold", strconv.FormatFloat(*t, 'g', -1, 64)))
	}
	if t := g.ScaleDown.GPUUtilizationThreshold; t != nil {
		words = append(words, said("gputhreshold", strconv.FormatFloat(*t, 'g', -1, 64)))
	}
	if ignore := g.ScaleDown.IgnoreDaemonSets; ignore != nil {
		words = append(words, said("ignoredaemonsets", strconv.FormatBool(*ignore)))
	}
	if t := g.ScaleDown.UnneededTime; t != nil {
		words = append(words, said("unneeded", t.Duration.String()))
	}
	if t := g.ScaleDown.UnreadyTime; t != nil {
		words = append(words, said("unreadytime", t.Duration.String()))
	}
	if t := g.ScaleDown.MaxNodeProvisionTime; t != nil {
		words = append(words, said("provisiontime", t.Duration.String()))
	}
	words = append(words, said("headroom", g.Headroom.String()))
	p.line("group", g.Name, words...)
	each(g.Instances, func(i fleet.Instance) string { return i.ID }, func(i fleet.Instance) {
		if p.nodeOf[i.ID] && "i-"+strings.TrimPrefix(i.ID, "i-") == i.ID && p.named(i.ID) {
			return // its node's line stands for it
		}
		p.line("instance", i.ID, said("group", g.Name), other("zone", i.Zone, firstZone(&g)), other("type", i.Type, instanceType(&g)),
			other("state", i.State, fleet.InService), at("leaving", i.TerminatingSince), flag("exact", i.TerminatingExact), flag("protected", i.Protected), flag("unhealthy", i.Unhealthy), said("template", i.Template), printUnmade(i))
	})
}

func printUnmade(i fleet.Instance) string {
	if i.Failed == "" {
		return ""
	}
	return said("unmade", printTime(i.FailedSince)+"/"+i.Failed)
}

func printPrice(f float64) string { return other("price", strconv.FormatFloat(f, 'g', -1, 64), "0") }

func printReplacement(r fleet.Replacement) string {
	if r.Ended.IsZero() {
		return said("replaced", r.Cause)
	}
	return said("replaced", r.Cause+"/"+printTime(r.Ended))
}

// named reports whether an instance has the name that its node's line gives it.
func (p *printer) named(id string) bool {
	return slices.ContainsFunc(p.s.Nodes, func(n fleet.Node) bool { return "i-"+n.Name == id })
}

// missing is the first usual label that a node has not.
func missing(usual, labels map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(usual)) {
		if _, ok := labels[key]; !ok {
			return key
		}
	}
	return ""
}

func roomWords(have, usual corev1.ResourceList) []string {
	var words []string
	for _, r := range []struct {
		word string
		name corev1.ResourceName
	}{{"cpu", corev1.ResourceCPU}, {"mem", corev1.ResourceMemory}, {"pods", corev1.ResourcePods}, {"gpu", gpu}} {
		q, u := have[r.name], usual[r.name]
		if q.Cmp(u) != 0 {
			words = append(words, said(r.word, q.String()))
		}
	}
	return words
}

func (p *printer) node(n fleet.Node) {
	g, i := p.memberOf(n)
	usualLabels, usualRoom := map[string]string{}, instanceTypes["m5.large"]
	var usualTaints []corev1.Taint
	var groupName, zone, state, leaving, exact, protected, template string
	if g != nil {
		protected, template = flag("protected", i.Protected), other("template", i.Template, g.Template)
		groupName, zone = g.Name, other("zone", n.Zone(), firstZone(g))
		state, leaving, exact = other("state", i.State, fleet.InService), at("leaving", i.TerminatingSince), flag("exact", i.TerminatingExact)
		if len(g.NodeTemplates) > 0 {
			usualLabels, usualTaints, usualRoom = g.NodeTemplates[0].Labels, g.NodeTemplates[0].Taints, g.NodeTemplates[0].Allocatable
		}
	}
	since, unneeded, err := contract.Unneeded(n.Taints)
	words := []string{
		said("group", groupName), zone, state, leaving, exact, protected, template,
		flag("notready", !n.Ready), flag("cordoned", n.Unschedulable), other("age", p.s.Now.Sub(n.Created).String(), firstAge.String()),
		said("labels", printPairs(extra(n.Labels, usualLabels))), said("unlabel", missing(usualLabels, n.Labels)), said("taints", printTaints(ownTaints(n.Taints, usualTaints))),
	}
	if unneeded && err == nil {
		words = append(words, at("unneeded", since))
	}
	words = append(words, roomWords(n.Allocatable, usualRoom)...)
	if i != nil {
		words = append(words, printPrice(i.PricePerHour))
	}
	if q, ok := n.Capacity[corev1.ResourceMemory]; ok {
		words = append(words, said("reports", q.String()))
	}
	words = append(words, other("attached", strconv.Itoa(n.Attached), "0"), said("annotate", printPairs(ownAnnotations(n.Annotations))))
	p.line("node", n.Name, words...)
}

func (p *printer) memberOf(n fleet.Node) (*fleet.Group, *fleet.Instance) {
	for g := range p.s.Groups {
		for i := range p.s.Groups[g].Instances {
			if p.s.Groups[g].Instances[i].ID == n.InstanceID() {
				return &p.s.Groups[g], &p.s.Groups[g].Instances[i]
			}
		}
	}
	return nil, nil
}

// extra are labels that the node's line must say.
func extra(labels, usual map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range labels {
		if k != corev1.LabelHostname && k != corev1.LabelTopologyZone && usual[k] != v {
			out[k] = v
		}
	}
	return out
}

func ownTaints(taints, usual []corev1.Taint) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range taints {
		same := func(u corev1.Taint) bool { return u.MatchTaint(&t) && u.Value == t.Value }
		if t.Key != contract.TaintDraining && t.Key != contract.TaintUnneeded && !slices.ContainsFunc(usual, same) {
			out = append(out, t)
		}
	}
	return out
}

func ownAnnotations(annotations map[string]string) map[string]string {
	out := maps.Clone(annotations)
	for _, key := range []string{contract.AnnotationDrainRequest, contract.AnnotationDrainReport, contract.AnnotationDrainPermit, contract.AnnotationDrainNotYet, contract.AnnotationTerminating} {
		delete(out, key)
	}
	return out
}

// words prints what scaler, agent and people wrote on a node.
func (p *printer) words(n fleet.Node) {
	if value, ok := n.Annotations[contract.AnnotationDrainRequest]; ok {
		p.request(n.Name, value)
	}
	if r, err := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport]); err == nil {
		p.line("report", n.Name, said("phase", string(r.Phase)), said("answers", strings.Join(r.Answers, ",")), said("kind", string(r.Kind)),
			at("since", r.Since.Time), p.unlessNow("renewed", r.Renewed.Time), flag("crowded", r.Crowded), said("blocked", strings.Join(r.BlockedBy, ",")), other("left", strconv.Itoa(r.Left), "0"),
			said("message", r.Message), at("deadline", r.Deadline.Time), said("wants", r.Wants), patience(r.PermitWait), at("excluded", r.Excluded.Time), at("emptied", r.Emptied.Time))
	}
	if id, ok := n.Annotations[contract.AnnotationDrainPermit]; ok {
		p.line("permit", n.Name, said("id", id))
	}
	if word, err := contract.ParseNotYet(n.Annotations[contract.AnnotationDrainNotYet]); err == nil {
		p.line("notyet", n.Name, said("id", word.ID), at("at", word.At.Time), said("why", word.Why))
	}
	if id, ok := n.Annotations[contract.AnnotationTerminating]; ok {
		p.line("mark", n.Name, said("id", id))
	}
}

func patience(seconds int) string {
	if seconds == 0 {
		return ""
	}
	return said("patience", (time.Duration(seconds) * time.Second).String())
}

func (p *printer) unlessNow(key string, t time.Time) string {
	if t.Equal(p.s.Now) {
		return ""
	}
	return at(key, t)
}

func (p *printer) request(node, value string) {
	r, err := contract.ParseRequest(value)
	if err != nil || r.By == "" {
		p.line("request", node, said("raw", value))
		return
	}
	p.line("request", node, said("kind", string(r.Kind)), said("id", r.ID), other("by", r.By, contract.AppScaler),
		at("at", r.At.Time), at("deadline", r.Deadline.Time), said("reason", r.Reason), flag("unready", r.Unready))
}

func (p *printer) pod(pod *fleet.Pod) {
	p.line("pod", strings.TrimPrefix(pod.Key(), "default/"), p.podWords(pod)...)
}

// podAge says when a pod was created, unless that is usual.
func (p *printer) podAge(created fleet.Second) string {
	if created == fleet.SecondOf(p.s.Now.Add(-firstAge)) {
		return ""
	}
	return "age=" + p.s.Now.Sub(created.Time()).String()
}

func (p *printer) podWords(pod *fleet.Pod) []string {
	usual := NewWorld().newPod(pod.Key())
	words := []string{said("on", pod.Node), flag("unjudged", pod.Node == "" && pod.Scheduling == fleet.Unjudged), flag("gated", pod.Scheduling == fleet.Gated), flag("unbindable", pod.Scheduling == fleet.Unbindable),
		said("nominated", pod.Nominated()), p.podAge(pod.Created), at("ends", pod.Deleted.Time())}
	if pod.Scheduling != fleet.Unjudged {
		if pod.Judged != fleet.SecondOf(p.s.Now) {
			words = append(words, at("judged", pod.Judged.Time()))
		}
	}
	if pod.Node != "" {
		words = append(words, flag("starting", pod.Phase == fleet.PodPending), flag("unready", pod.Phase == fleet.PodRunning && !pod.Ready))
	}
	words = append(words, flag("succeeded", pod.Phase == fleet.PodSucceeded), flag("failed", pod.Phase == fleet.PodFailed))
	if !maps.Equal(pod.Labels, usual.Labels) {
		words = append(words, said("labels", printPairs(pod.Labels)))
	}
	switch o := pod.Owner; {
	case o == nil:
		words = append(words, "naked")
	case o.Kind != usual.Owner.Kind || o.Name != usual.Owner.Name:
		words = append(words, said("owner", o.Kind+"/"+o.Name))
	}
	words = append(words, specWords(pod.Spec)...)
	return append(words, said("annotate", printPairs(pod.Annotations)))
}

func specWords(spec *corev1.PodSpec) []string {
	if spec == nil {
		return nil
	}
	var words []string
	requests := map[corev1.ResourceName]resource.Quantity{}
	add := func(list corev1.ResourceList) {
		for name, q := range list {
			sum := requests[name].DeepCopy()
			sum.Add(q)
			requests[name] = sum
		}
	}
	add(spec.Overhead)
	for _, c := range spec.Containers {
		add(c.Resources.Requests)
		for _, port := range c.Ports {
			words = append(words, other("hostport", strconv.Itoa(int(port.HostPort)), "0"))
		}
	}
	for _, r := range []struct {
		word string
		name corev1.ResourceName
	}{{"cpu", corev1.ResourceCPU}, {"mem", corev1.ResourceMemory}, {"gpu", gpu}} {
		if q, ok := requests[r.name]; ok {
			words = append(words, said(r.word, q.String()))
		}
	}
	if spec.Priority != nil {
		words = append(words, said("priority", strconv.Itoa(int(*spec.Priority))))
	}
	words = append(words, said("selector", printPairs(spec.NodeSelector)), said("tolerates", printTolerations(spec.Tolerations)),
		flag("local", slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil })))
	words = append(words, claimWords(spec)...)
	if a := spec.Affinity; a != nil {
		words = append(words, printApart(a.PodAntiAffinity), printTogether(a.PodAffinity), said("affinity", printAffinity(a.NodeAffinity)))
	}
	words = append(words, said("scheduler", spec.SchedulerName))
	if spec.SchedulingGroup != nil {
		words = append(words, said("podgroup", *spec.SchedulingGroup.PodGroupName))
	}
	for _, c := range spec.TopologySpreadConstraints {
		words = append(words, said("spread", c.TopologyKey))
	}
	return words
}

func printApart(a *corev1.PodAntiAffinity) string {
	if a == nil {
		return ""
	}
	key := a.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey
	if key == corev1.LabelHostname {
		return "apart"
	}
	return said("apart", key)
}

func printTogether(a *corev1.PodAffinity) string {
	if a == nil {
		return ""
	}
	return said("together", a.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey)
}

func printAffinity(a *corev1.NodeAffinity) string {
	if a == nil || a.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	var texts []string
	for _, term := range a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			texts = append(texts, e.Key+"="+strings.Join(e.Values, "|"))
		}
	}
	return strings.Join(texts, ",")
}

func (p *printer) budget(b fleet.Budget) {
	var selector string
	if b.Selector != nil && !maps.Equal(b.Selector.MatchLabels, map[string]string{"app": b.Name}) {
		selector = printPairs(b.Selector.MatchLabels)
	}
	p.line("pdb", strings.TrimPrefix(b.Key(), metav1.NamespaceDefault+"/"), fmt.Sprintf("allowed=%d", b.Allowed),
		other("healthy", strconv.Itoa(int(b.Healthy)), "2"), other("desired", strconv.Itoa(int(b.Desired)), "1"),
		said("match", selector), flag("all", b.Selector != nil && len(b.Selector.MatchLabels) == 0), flag("lenient", b.AlwaysAllowUnhealthy))
}

func (p *printer) daemonSet(d fleet.DaemonSet) {
	words := specWords(&d.Template.Spec)
	if usual := NewWorld().newPod(d.Namespace + "/" + d.Name).Labels; !maps.Equal(d.Template.Labels, usual) {
		words = append(words, said("labels", printPairs(d.Template.Labels)))
	}
	p.line("daemonset", strings.TrimPrefix(d.Namespace+"/"+d.Name, metav1.NamespaceDefault+"/"), words...)
}

func (p *printer) state(s fleet.State) {
	for _, m := range []struct {
		verb string
		of   map[string]time.Time
	}{{"grown", s.GrownAt}, {"shrunk", s.ShrunkAt}, {"failed", s.FailedAt}, {"heartbeat", s.Heartbeats}, {"completed", s.Completed}, {"pooling", s.Pooling}, {"outlived", s.Outlived}, {"unjoined", s.Unjoined}, {"deserted", s.Deserted}, {"awaited", s.Awaited}, {"disputed", s.Disputed}, {"owndrain", s.OwnDrains}, {"returning", s.Returning},
		{"recognised", s.Recognition.Groups}, {"launched", s.Recognition.Launched}, {"left", s.Recognition.Left}, {"graced", s.Recognition.Graced}} {
		for _, name := range slices.Sorted(maps.Keys(m.of)) {
			p.line(m.verb, name, at("at", m.of[name]), flag("pooled", m.of[name].IsZero()))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Recognition.Asked)) {
		p.line("asked", name, at("at", s.Recognition.Asked[name].At), fmt.Sprintf("count=%d", s.Recognition.Asked[name].Count))
	}
	for _, id := range slices.Sorted(maps.Keys(s.Recognition.Ended)) {
		x := s.Recognition.Ended[id]
		p.line("ended", id, said("group", x.Group), at("at", x.At), flag("launched", x.Launched))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Suspending)) {
		p.line("suspending", name, at("at", s.Suspending[name]), flag("done", s.Suspending[name].IsZero()))
	}
	for _, name := range slices.Sorted(maps.Keys(s.StandIns)) {
		p.line("alone", name, at("excluded", s.StandIns[name].Excluded), at("emptied", s.StandIns[name].Emptied))
	}
	for _, key := range slices.Sorted(maps.Keys(s.Held)) {
		p.line("held", key, at("at", s.Held[key]), flag("done", s.Held[key].IsZero()))
	}
	for _, name := range slices.Sorted(maps.Keys(s.CutIn)) {
		p.line("cutin", name, at("at", s.CutIn[name].At), said("instance", s.CutIn[name].Instance), said("hook", s.CutIn[name].Hook))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Bursts)) {
		p.line("burst", name, fmt.Sprintf("count=%d", s.Bursts[name]))
	}
	for _, m := range []struct {
		verb string
		of   map[string]fleet.BackOff
	}{{"backoff", s.BackOffs}, {"giveup", s.GiveUps}, {"unsteered", s.Unsteered}, {"swappause", s.ReplacementBackOffs}} {
		for _, name := range slices.Sorted(maps.Keys(m.of)) {
			b := m.of[name]
			p.line(m.verb, name, at("until", b.Until), fmt.Sprintf("count=%d", b.Count), said("cause", b.Cause))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Promises)) {
		x := s.Promises[key]
		p.line("promise", key, at("at", x.At), said("zones", strings.Join(x.Zones, ",")), other("count", strconv.Itoa(x.Count), "0"), at("until", x.Until), said("why", x.Why))
	}
	if !s.Steered.IsZero() {
		p.line("steered", printTime(s.Steered))
	}
	if x := s.Replacement; x != nil {
		p.line("swap", x.Group, said("of", strings.Join(x.Instances, ",")), said("zone", x.Zone), at("found", x.Found), at("launched", x.Launched), at("until", x.Until))
	}
	for _, key := range slices.Sorted(maps.Keys(s.Seen)) {
		q := s.Seen[key]
		p.line("seen", key, said("mem", q.String()))
	}
	for _, group := range slices.Sorted(maps.Keys(s.Lessons)) {
		l := s.Lessons[group]
		p.line("lesson", group, said("of", l.Of), said("labels", printPairs(l.Template.Labels)), said("taints", printTaints(l.Template.Taints)),
			said("room", printQuantities(l.Template.Allocatable)), said("features", strings.Join(l.Template.DeclaredFeatures, ",")))
	}
	for _, key := range slices.Sorted(maps.Keys(s.Launches)) {
		x, came, shown := s.Launches[key], "", ""
		if x.Answered {
			came = fmt.Sprintf("came=%d", x.Came)
		}
		if x.Shown {
			shown = "shown"
		}
		p.line("launch", key, said("token", x.Token), fmt.Sprintf("count=%d", x.Count), fmt.Sprintf("desired=%d", x.Desired), other("had", strconv.Itoa(x.Had), "0"),
			fmt.Sprintf("attempt=%d", x.Attempt), at("at", x.At), came, said("named", x.Named), shown)
	}
}

func printPairs(m map[string]string) string {
	var texts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		texts = append(texts, k+"="+m[k])
	}
	return strings.Join(texts, ",")
}

func printQuantities(m corev1.ResourceList) string {
	texts := map[string]string{}
	for name, q := range m {
		texts[string(name)] = q.String()
	}
	return printPairs(texts)
}

func printTaints(taints []corev1.Taint) string {
	var texts []string
	for _, t := range taints {
		texts = append(texts, t.ToString())
	}
	return strings.Join(texts, ",")
}

func printTolerations(list []corev1.Toleration) string {
	var texts []string
	for _, t := range list {
		switch {
		case t.Key == "":
			texts = append(texts, "*")
		case t.Operator == corev1.TolerationOpEqual:
			texts = append(texts, t.Key+"="+t.Value)
		default:
			texts = append(texts, t.Key)
		}
	}
	return strings.Join(texts, ",")
}

package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// firstAge is how long things have been there where their line says no age.
const firstAge = time.Hour

// nodeDraft is a node and its instance while its line is read.
type nodeDraft struct {
	*fleet.Node
	instance *fleet.Instance
	now      time.Time
}

// node NAME [group=NAME]: Ready, an hour old, of its group's shape in its first
// zone, on an instance i-NAME that is InService. Without a group it is an
// m5.large of nobody's; free stands for no instance of ours.
func node(w *World, l line) error {
	n := w.node(l.name)
	if n == nil {
		fresh, err := w.newNode(l.name, l.value("group"))
		if err != nil {
			return err
		}
		w.Nodes = append(w.Nodes, fresh)
		n = w.node(l.name)
	}
	n.Labels = maps.Clone(n.Labels) // snapshots of it are taken
	d := nodeDraft{Node: n, instance: w.instance(n.InstanceID()), now: w.Now}
	return nodeWords.apply(&d, l.without("group"))
}

// newNode makes the node, and its instance if that is not there yet.
func (w *World) newNode(name, groupName string) (fleet.Node, error) {
	n := fleet.Node{
		Name: name, UID: types.UID("uid-" + name), Created: w.Now.Add(-firstAge), Ready: true, ReadySince: w.Now.Add(-firstAge),
		Labels: map[string]string{corev1.LabelHostname: name}, Allocatable: instanceTypes["m5.large"],
	}
	if groupName == "" {
		return n, nil
	}
	g := w.group(groupName)
	if g == nil {
		return fleet.Node{}, fmt.Errorf("its group %q is not there", groupName)
	}
	zone := firstZone(g)
	if len(g.NodeTemplates) > 0 {
		n.Allocatable = g.NodeTemplates[0].Allocatable
		maps.Copy(n.Labels, g.NodeTemplates[0].Labels)
		n.Taints = slices.Clone(g.NodeTemplates[0].Taints)
	}
	if i := w.instance("i-" + name); i != nil {
		zone = i.Zone
	} else {
		g.Instances = append(g.Instances, fleet.Instance{ID: "i-" + name, Zone: zone, Type: instanceType(g), State: fleet.InService, Template: g.Template})
	}
	n.Labels[corev1.LabelTopologyZone] = zone
	n.ProviderID = "aws:///" + zone + "/i-" + name
	return n, nil
}

func firstZone(g *fleet.Group) string {
	if len(g.Zones) == 0 {
		return ""
	}
	return g.Zones[0]
}

func instanceType(g *fleet.Group) string {
	if len(g.NodeTemplates) == 0 {
		return ""
	}
	return g.NodeTemplates[0].InstanceType
}

var nodeWords = table[nodeDraft]{
	"ready":    becomes(true),
	"notready": becomes(false),
	"cordoned": func(d *nodeDraft, _ string) error { d.Unschedulable = true; return nil },
	"open":     func(d *nodeDraft, _ string) error { d.Unschedulable = false; return nil },
	"zone": setter(text, func(d *nodeDraft, v string) {
		d.Labels[corev1.LabelTopologyZone] = v
		if d.instance != nil {
			d.ProviderID = "aws:///" + v + "/" + d.instance.ID
			d.instance.Zone = v
		}
	}),
	"age": setter(duration, func(d *nodeDraft, t time.Duration) { d.Created = d.now.Add(-t) }),
	"cpu": setter(quantity, func(d *nodeDraft, q resource.Quantity) { d.resize(corev1.ResourceCPU, q) }),
	"mem": setter(quantity, func(d *nodeDraft, q resource.Quantity) { d.resize(corev1.ResourceMemory, q) }),
	"pods": setter(quantity, func(d *nodeDraft, q resource.Quantity) {
		d.resize(corev1.ResourcePods, q)
	}),
	"gpu": setter(quantity, func(d *nodeDraft, q resource.Quantity) { d.resize(gpu, q) }),
	// reports is the memory that the kubelet has found.
	"reports": setter(quantity, func(d *nodeDraft, q resource.Quantity) {
		d.Capacity = corev1.ResourceList{corev1.ResourceMemory: q}
	}),
	"template": setter(text, func(d *nodeDraft, v string) {
		if d.instance != nil {
			d.instance.Template = v
		}
	}),
	// price is that of its instance, in a group with several types: dollars an hour.
	"price": setter(share, func(d *nodeDraft, f float64) {
		if d.instance != nil {
			d.instance.PricePerHour = f
		}
	}),
	"labels": setter(pairs, func(d *nodeDraft, m map[string]string) { maps.Copy(d.Labels, m) }),
	"taints": setter(taints, func(d *nodeDraft, ts []corev1.Taint) {
		for _, t := range ts {
			d.Taints = contract.WithTaint(d.Taints, t)
		}
	}),
	// recommended: its agent has cordoned it then, for a rebalance recommendation.
	"recommended": setter(clockTime, func(d *nodeDraft, t time.Time) {
		d.Unschedulable = true
		id := "rebalance:" + d.Name
		d.annotate(contract.AnnotationCordonedBy, contract.Cordon{By: contract.AppAgent, Notice: id, At: contract.At(t)}.String())
		d.annotate(contract.AnnotationNotices, contract.NoticedList{{ID: id, Kind: contract.KindRebalance, Does: "cordon", At: contract.At(t)}}.String())
	}),
	// excluded keeps load balancers away.
	"excluded": func(d *nodeDraft, _ string) error {
		d.Labels[contract.LabelExcludeFromLoadBalancers] = "true"
		return nil
	},
	// attached is how many volumes are.
	"attached": setter(integer, func(d *nodeDraft, count int) { d.Attached = count }),
	"unlabel":  setter(text, func(d *nodeDraft, v string) { delete(d.Labels, v) }),
	"untaint":  setter(text, func(d *nodeDraft, v string) { d.Taints = contract.WithoutTaint(d.Taints, v) }),
	"unneeded": setter(clockTime, func(d *nodeDraft, t time.Time) {
		d.Taints = contract.WithTaint(d.Taints, contract.UnneededTaint(t))
	}),
	"hold":   func(d *nodeDraft, _ string) error { d.annotate(contract.AnnotationHold, "true"); return nil },
	"notice": func(d *nodeDraft, v string) error { return d.notice(v) },
	// provider is its provider id as it stands.
	"provider": setter(text, func(d *nodeDraft, v string) { d.ProviderID = v }),
	"annotate": setter(pairs, func(d *nodeDraft, m map[string]string) { d.annotateAll(m) }),
	"state": func(d *nodeDraft, v string) error {
		if d.instance == nil {
			return fmt.Errorf("it has no instance of ours")
		}
		d.instance.State = v
		switch {
		case !d.instance.Terminating():
			d.instance.TerminatingSince = time.Time{}
		case d.instance.TerminatingSince.IsZero():
			d.instance.TerminatingSince = d.now
		}
		return nil
	},
	"protected": func(d *nodeDraft, _ string) error {
		if d.instance == nil {
			return fmt.Errorf("it has no instance of ours")
		}
		d.instance.Protected = true
		return nil
	},
	"exact": func(d *nodeDraft, _ string) error {
		if d.instance != nil {
			d.instance.TerminatingExact = true
		}
		return nil
	},
	"leaving": setter(clockTime, func(d *nodeDraft, t time.Time) {
		if d.instance != nil {
			d.instance.TerminatingSince = t
		}
	}),
}

func (d *nodeDraft) resize(name corev1.ResourceName, q resource.Quantity) {
	d.Allocatable = maps.Clone(d.Allocatable)
	d.Allocatable[name] = q
}

// notice adds one to those that the agent has written down: kind/does/deadline, such as
// spot/drain/10:01:30, and /at since when it is known.
func (d *nodeDraft) notice(v string) error {
	words := strings.Split(v, "/")
	if len(words) != 3 && len(words) != 4 {
		return fmt.Errorf("want kind/does/deadline[/at]")
	}
	deadline, err := clockTime(words[2])
	if err != nil {
		return err
	}
	noted := contract.Noticed{ID: fmt.Sprintf("%s:%d", words[0], deadline.Unix()), Kind: contract.Kind(words[0]), Does: words[1], Deadline: contract.At(deadline)}
	if len(words) == 4 {
		at, err := clockTime(words[3])
		if err != nil {
			return err
		}
		noted.At = contract.At(at)
	}
	list, err := contract.ParseNoticed(d.Annotations[contract.AnnotationNotices])
	if err != nil {
		return err
	}
	d.annotate(contract.AnnotationNotices, append(list, noted).String())
	return nil
}

func (d *nodeDraft) annotateAll(m map[string]string) {
	for k, v := range m {
		d.annotate(k, v)
	}
}

func (d *nodeDraft) annotate(key, value string) { annotate(d.Node, key, value) }

func annotate(n *fleet.Node, key, value string) {
	n.Annotations = maps.Clone(n.Annotations)
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	n.Annotations[key] = value
}

// request NODE: kind=scale-down by=windlass-scaler at=now, with the id that the
// scaler would give it, and the draining taint. raw= is the annotation as it
// stands, without a taint.
func request(w *World, l line) error {
	n := w.node(l.name)
	if n == nil {
		return fmt.Errorf("there is no such node")
	}
	if raw := l.value("raw"); raw != "" {
		annotate(n, contract.AnnotationDrainRequest, unquoted(raw))
		return nil
	}
	r := contract.Request{Kind: contract.KindScaleDown, By: contract.AppScaler, At: contract.At(w.Now)}
	if err := requestWords.apply(&r, l.words); err != nil {
		return err
	}
	if r.ID == "" {
		r.ID = defaultID(n, r.Kind, w.Now)
	}
	w.Request(l.name, r)
	return nil
}

// becomes sets whether a node is Ready, now or since a time.
func becomes(ready bool) func(*nodeDraft, string) error {
	return func(d *nodeDraft, value string) (err error) {
		d.Ready, d.ReadySince = ready, d.now
		if value != "" {
			d.ReadySince, err = clockTime(value)
		}
		return err
	}
}

// unquoted is JSON of a line, in which ' stands for ".
func unquoted(raw string) string { return strings.ReplaceAll(raw, "'", `"`) }

func defaultID(n *fleet.Node, kind contract.Kind, now time.Time) string {
	switch kind {
	case contract.KindScaleDown:
		since, ok, err := contract.Unneeded(n.Taints)
		if !ok || err != nil {
			since = now
		}
		return contract.ScaleDownID(n.InstanceID(), since)
	case contract.KindASG:
		return contract.TerminateID(n.InstanceID())
	}
	return string(kind) + ":" + n.Name
}

var requestWords = table[contract.Request]{
	"id":       setter(text, func(r *contract.Request, v string) { r.ID = v }),
	"kind":     setter(contract.ParseKind, func(r *contract.Request, k contract.Kind) { r.Kind = k }),
	"by":       setter(text, func(r *contract.Request, v string) { r.By = v }),
	"reason":   setter(text, func(r *contract.Request, v string) { r.Reason = v }),
	"at":       setter(clockTime, func(r *contract.Request, t time.Time) { r.At = contract.At(t) }),
	"deadline": setter(clockTime, func(r *contract.Request, t time.Time) { r.Deadline = contract.At(t) }),
	"unready":  func(r *contract.Request, _ string) error { r.Unready = true; return nil },
}

// report NODE: phase=Draining, in answer to the request on the node if there is
// one, since now; with the draining taint of its kind. phase=none takes report
// and taint away, as an undo does. raw= is the annotation as it stands; see unquoted.
func report(w *World, l line) error {
	n := w.node(l.name)
	if n == nil {
		return fmt.Errorf("there is no such node")
	}
	if l.value("phase") == "none" {
		w.Undo(l.name)
		return nil
	}
	if raw := l.value("raw"); raw != "" {
		annotate(n, contract.AnnotationDrainReport, unquoted(raw))
		return nil
	}
	r := contract.Report{Phase: contract.PhaseDraining, Since: contract.At(w.Now), Renewed: contract.At(w.Now)}
	if old, err := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport]); err == nil {
		r = old
	} else if asked, err := contract.ParseRequest(n.Annotations[contract.AnnotationDrainRequest]); err == nil {
		r.Answers, r.Kind, r.Deadline = []string{asked.ID}, asked.Kind, asked.Deadline
	}
	if err := reportWords.apply(&r, l.words); err != nil {
		return err
	}
	if len(r.Answers) == 0 {
		r.Answers = []string{defaultID(n, r.Kind, w.Now)}
	}
	w.Report(l.name, r)
	return nil
}

var reportWords = table[contract.Report]{
	"phase": func(r *contract.Report, v string) error {
		if !slices.Contains(contract.Phases, contract.Phase(v)) {
			return fmt.Errorf("want one of %v, or none", contract.Phases)
		}
		r.Phase = contract.Phase(v)
		return nil
	},
	"answers":  setter(text, func(r *contract.Report, v string) { r.Answers = list(v) }),
	"kind":     setter(contract.ParseKind, func(r *contract.Report, k contract.Kind) { r.Kind = k }),
	"since":    setter(clockTime, func(r *contract.Report, t time.Time) { r.Since = contract.At(t) }),
	"renewed":  setter(clockTime, func(r *contract.Report, t time.Time) { r.Renewed = contract.At(t) }),
	"crowded":  func(r *contract.Report, _ string) error { r.Crowded = true; return nil },
	"blocked":  setter(text, func(r *contract.Report, v string) { r.BlockedBy = list(v) }),
	"left":     setter(integer, func(r *contract.Report, n int) { r.Left = n }),
	"excluded": setter(clockTime, func(r *contract.Report, t time.Time) { r.Excluded = contract.At(t) }),
	"emptied":  setter(clockTime, func(r *contract.Report, t time.Time) { r.Emptied = contract.At(t) }),
	"message":  setter(text, func(r *contract.Report, v string) { r.Message = v }),
	"deadline": setter(clockTime, func(r *contract.Report, t time.Time) { r.Deadline = contract.At(t) }),
	"wants": setter(text, func(r *contract.Report, v string) {
		r.Wants = v
		if v == "" {
			r.PermitWait = 0
		}
	}),
	"patience": setter(duration, func(r *contract.Report, d time.Duration) { r.PermitWait = int(d / time.Second) }),
}

// permit NODE: what its report wants, or id=.
func permit(w *World, l line) error {
	n := w.node(l.name)
	if n == nil {
		return fmt.Errorf("there is no such node")
	}
	id := l.value("id")
	if r, err := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport]); id == "" && err == nil {
		id = r.Wants
	}
	if id == "" {
		return fmt.Errorf("its report wants no permit and no id= is said")
	}
	w.Permit(l.name, id)
	return nil
}

// notYet NODE: the scaler told its drain at=now, by its own clock, to wait on; id= is what
// its report wants.
func notYet(w *World, l line) error {
	n := w.node(l.name)
	if n == nil {
		return fmt.Errorf("there is no such node")
	}
	word := contract.NotYet{At: contract.At(w.Now)}
	if r, err := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport]); err == nil {
		word.ID = r.Wants
	}
	words := table[contract.NotYet]{
		"id":  setter(text, func(x *contract.NotYet, v string) { x.ID = v }),
		"at":  setter(clockTime, func(x *contract.NotYet, t time.Time) { x.At = contract.At(t) }),
		"why": setter(text, func(x *contract.NotYet, v string) { x.Why = v }),
	}
	if err := words.apply(&word, l.words); err != nil {
		return err
	}
	annotate(n, contract.AnnotationDrainNotYet, word.String())
	return nil
}

// agent NODE: what is known of its agent, ready or gone.
func agent(w *World, l line) error {
	if w.node(l.name) == nil {
		return fmt.Errorf("there is no such node")
	}
	known := func(ready bool) func(*World, string) error {
		return func(w *World, _ string) error { put(&w.Agents, l.name, ready); return nil }
	}
	return table[World]{"ready": known(true), "gone": known(false)}.apply(w, l.words)
}

// mark NODE: the terminating mark, for the request on the node or id=.
func mark(w *World, l line) error {
	n := w.node(l.name)
	if n == nil {
		return fmt.Errorf("there is no such node")
	}
	id := l.value("id")
	if asked, err := contract.ParseRequest(n.Annotations[contract.AnnotationDrainRequest]); id == "" && err == nil {
		id = asked.ID
	}
	if id == "" {
		return fmt.Errorf("no request stands on it and no id= is said")
	}
	annotate(n, contract.AnnotationTerminating, id)
	return nil
}

func kindAndName(value string) (kind, name string, err error) {
	kind, name, ok := strings.Cut(value, "/")
	if !ok {
		return "", "", fmt.Errorf("want kind/name such as pod/app-1")
	}
	return kind, name, nil
}

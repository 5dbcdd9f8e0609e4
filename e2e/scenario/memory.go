package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/fleet"
)

// cluster UID: that of this cluster.
func cluster(w *World, l line) error {
	w.Cluster = types.UID(l.name)
	return nil
}

var rivalWords = table[fleet.Autoscaler]{
	"renewed":   setter(clockTime, func(a *fleet.Autoscaler, t time.Time) { a.Renewed = t }),
	"holder":    setter(text, func(a *fleet.Autoscaler, v string) { a.Holder = v }),
	"status":    func(a *fleet.Autoscaler, _ string) error { a.Sign = fleet.SignStatus; return nil },
	"windlass":  func(a *fleet.Autoscaler, _ string) error { a.Kind = fleet.Windlass; return nil },
	"powerless": func(a *fleet.Autoscaler, _ string) error { a.Powerless = true; return nil },
	"younger":   func(a *fleet.Autoscaler, _ string) error { a.Younger = true; return nil },
	"groups":    setter(text, func(a *fleet.Autoscaler, v string) { a.Groups = strings.Split(v, ",") }),
}

// rival NAMESPACE/NAME: another autoscaler, a Cluster Autoscaler by its lease unless it
// says status or windlass; renewed=now.
func rival(w *World, l line) error {
	namespace, name, found := strings.Cut(l.name, "/")
	if !found {
		return fmt.Errorf("%q: want namespace/name", l.name)
	}
	a := fleet.Autoscaler{Kind: fleet.ClusterAutoscaler, Sign: fleet.SignLease, Namespace: namespace, Name: name, Renewed: w.Now}
	if err := rivalWords.apply(&a, l.words); err != nil {
		return err
	}
	w.Autoscalers = append(w.Autoscalers, a)
	return nil
}

var nodePoolWords = table[fleet.NodePool]{
	"taints": setter(taints, func(p *fleet.NodePool, t []corev1.Taint) { p.Taints = t }),
	"in":     requirement(corev1.NodeSelectorOpIn),
	"notin":  requirement(corev1.NodeSelectorOpNotIn),
}

func requirement(operator corev1.NodeSelectorOperator) func(*fleet.NodePool, string) error {
	return func(p *fleet.NodePool, v string) error {
		key, values, found := strings.Cut(v, ":")
		if !found {
			return fmt.Errorf("%q: want key:value|value", v)
		}
		p.Requirements = append(p.Requirements, corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: strings.Split(values, "|")})
		return nil
	}
}

// nodepool NAME taints=… in=KEY:VALUE|VALUE notin=…: one of Karpenter's.
func nodePool(w *World, l line) error {
	p := fleet.NodePool{Name: l.name}
	if err := nodePoolWords.apply(&p, l.words); err != nil {
		return err
	}
	w.NodePools = append(w.NodePools, p)
	return nil
}

// machine INSTANCE state=stopped group= hibernates: what EC2 says of an instance whose node
// is not Ready; state=unknown where it says nothing any more.
func machine(w *World, l line) error {
	m := fleet.Machine{}
	words := table[fleet.Machine]{
		"state":      setter(text, func(m *fleet.Machine, v string) { m.State = v }),
		"group":      setter(text, func(m *fleet.Machine, v string) { m.Group = v }),
		"hibernates": func(m *fleet.Machine, _ string) error { m.Hibernates = true; return nil },
	}
	if err := words.apply(&m, l.words); err != nil {
		return err
	}
	w.Machines = maps.Clone(w.Machines)
	if w.Machines == nil {
		w.Machines = map[string]fleet.Machine{}
	}
	w.Machines[l.name] = m
	if m.State == "unknown" {
		delete(w.Machines, l.name)
	}
	return nil
}

// handler NAMESPACE/OWNER queue=URL: a Node Termination Handler, a DaemonSet without a
// queue and a Deployment with one.
func handler(w *World, l line) error {
	namespace, name, found := strings.Cut(l.name, "/")
	if !found {
		return fmt.Errorf("%q: want namespace/name", l.name)
	}
	h := fleet.TerminationHandler{Namespace: namespace}
	words := table[fleet.TerminationHandler]{"queue": setter(text, func(h *fleet.TerminationHandler, v string) { h.Queue = v })}
	if err := words.apply(&h, l.words); err != nil {
		return err
	}
	h.Owner = "daemon set " + name
	if h.Queue != "" {
		h.Owner = "deployment " + name
	}
	w.TerminationHandlers = append(w.TerminationHandlers, h)
	return nil
}

// outage TIME: the API server was away until then; from=TIME says since when. The last line
// about an outage that began at some moment counts.
func outage(w *World, l line) error {
	until, err := clockTime(l.name)
	if err != nil {
		return err
	}
	o := fleet.Outage{Until: until}
	words := table[fleet.Outage]{"from": setter(clockTime, func(o *fleet.Outage, t time.Time) { o.From = t })}
	if err := words.apply(&o, l.words); err != nil {
		return err
	}
	same := func(x fleet.Outage) bool { return x.From.Equal(o.From) }
	w.Outages = append(slices.DeleteFunc(slices.Clone(w.Outages), same), o)
	return nil
}

// steered TIME: nodes were last given another turn to be filled in then.
func steered(w *World, l line) (err error) {
	w.State.Steered, err = clockTime(l.name)
	return err
}

// leads TIME: this scaler has led since then.
func leads(w *World, l line) (err error) {
	w.Leads, err = clockTime(l.name)
	return err
}

// recognised GROUP at=TIME: a Node of one of its instances was seen.
func recognised(w *World, l line) error { return moment(&w.State.Recognition.Groups, w, l) }

// launched INSTANCE at=TIME: it has no Node, and came after we had asked for it then.
func launched(w *World, l line) error { return moment(&w.State.Recognition.Launched, w, l) }

// left INSTANCE at=TIME: its Node was seen while it was leaving.
func left(w *World, l line) error { return moment(&w.State.Recognition.Left, w, l) }

// graced INSTANCE at=TIME: a new leader leaves it in peace until then.
func graced(w *World, l line) error { return moment(&w.State.Recognition.Graced, w, l) }

// asked GROUP at=TIME count=1: so many instances were asked for and not seen yet.
func asked(w *World, l line) error {
	a := fleet.Asked{At: w.Now, Count: 1}
	words := table[fleet.Asked]{
		"at":    setter(clockTime, func(a *fleet.Asked, t time.Time) { a.At = t }),
		"count": setter(integer, func(a *fleet.Asked, n int) { a.Count = n }),
	}
	if err := words.apply(&a, l.words); err != nil {
		return err
	}
	put(&w.State.Recognition.Asked, l.name, a)
	return nil
}

// ended INSTANCE group=NAME at=TIME: it was ended, as no Node of it registered; launched
// says that it came after we had asked for it.
func ended(w *World, l line) error {
	e := fleet.Ended{At: w.Now}
	words := table[fleet.Ended]{
		"group":    setter(text, func(e *fleet.Ended, v string) { e.Group = v }),
		"at":       setter(clockTime, func(e *fleet.Ended, t time.Time) { e.At = t }),
		"launched": func(e *fleet.Ended, _ string) error { e.Launched = true; return nil },
	}
	if err := words.apply(&e, l.words); err != nil {
		return err
	}
	put(&w.State.Recognition.Ended, l.name, e)
	return nil
}

var backOffWords = table[fleet.BackOff]{
	"until": setter(clockTime, func(b *fleet.BackOff, t time.Time) { b.Until = t }),
	"count": setter(integer, func(b *fleet.BackOff, n int) { b.Count = n }),
	"cause": setter(text, func(b *fleet.BackOff, v string) { b.Cause = v }),
}

// backoff GROUP: until=TIME count=1 cause=WORD.
func backOff(w *World, l line) error { return pause(&w.State.BackOffs, l) }

// giveup INSTANCE: likewise.
func giveUp(w *World, l line) error { return pause(&w.State.GiveUps, l) }

// unsteered GROUP: likewise.
func unsteered(w *World, l line) error { return pause(&w.State.Unsteered, l) }

var launchWords = table[fleet.Launch]{
	"token":    setter(text, func(x *fleet.Launch, v string) { x.Token = v }),
	"count":    setter(integer, func(x *fleet.Launch, n int) { x.Count = n }),
	"desired":  setter(integer, func(x *fleet.Launch, n int) { x.Desired = n }),
	"had":      setter(integer, func(x *fleet.Launch, n int) { x.Had = n }),
	"attempt":  setter(integer, func(x *fleet.Launch, n int) { x.Attempt = n }),
	"at":       setter(clockTime, func(x *fleet.Launch, t time.Time) { x.At = t }),
	"answered": func(x *fleet.Launch, _ string) error { x.Answered = true; return nil },
	"came":     setter(integer, func(x *fleet.Launch, n int) { x.Answered, x.Came = true, n }),
	"named":    setter(text, func(x *fleet.Launch, v string) { x.Named = v }),
	"shown":    func(x *fleet.Launch, _ string) error { x.Shown = true; return nil },
}

// launch GROUP:ZONE token=HEX count=1 desired=0 attempt=1 at=now; came=N says that
// so many did, named=ID one of them, and shown that their group was read with as many.
func launch(w *World, l line) error {
	x := fleet.Launch{Count: 1, Attempt: 1, At: w.Now}
	if err := launchWords.apply(&x, l.words); err != nil {
		return err
	}
	put(&w.State.Launches, l.name, x)
	return nil
}

func pause(m *map[string]fleet.BackOff, l line) error {
	b := fleet.BackOff{Count: 1}
	if err := backOffWords.apply(&b, l.words); err != nil {
		return err
	}
	put(m, l.name, b)
	return nil
}

// grown GROUP at=TIME.
func grown(w *World, l line) error { return moment(&w.State.GrownAt, w, l) }

// shrunk GROUP at=TIME.
func shrunk(w *World, l line) error { return moment(&w.State.ShrunkAt, w, l) }

// failed GROUP at=TIME: a retirement of one of its nodes did.
func failed(w *World, l line) error { return moment(&w.State.FailedAt, w, l) }

// replacementBackOff GROUP until=TIME count=1 cause=….
func swapPause(w *World, l line) error { return pause(&w.State.ReplacementBackOffs, l) }

var swapWords = table[fleet.NodeReplacement]{
	"of":       setter(text, func(s *fleet.NodeReplacement, v string) { s.Instances = list(v) }),
	"zone":     setter(text, func(s *fleet.NodeReplacement, v string) { s.Zone = v }),
	"found":    setter(clockTime, func(s *fleet.NodeReplacement, t time.Time) { s.Found = t }),
	"launched": setter(clockTime, func(s *fleet.NodeReplacement, t time.Time) { s.Launched = t }),
	"until":    setter(clockTime, func(s *fleet.NodeReplacement, t time.Time) { s.Until = t }),
}

// swap GROUP of=INSTANCE,… zone=a found=TIME launched=TIME until=TIME.
func swap(w *World, l line) error {
	s := fleet.NodeReplacement{Group: l.name}
	if err := swapWords.apply(&s, l.words); err != nil {
		return err
	}
	w.State.Replacement = &s
	return nil
}

// burst GROUP count=N.
func burst(w *World, l line) error {
	n := 1
	words := table[int]{"count": setter(strconv.Atoi, func(to *int, read int) { *to = read })}
	if err := words.apply(&n, l.words); err != nil {
		return err
	}
	put(&w.State.Bursts, l.name, n)
	return nil
}

// heartbeat INSTANCE/HOOK at=TIME.
func heartbeat(w *World, l line) error { return moment(&w.State.Heartbeats, w, l) }

// completed INSTANCE/HOOK at=TIME.
func completed(w *World, l line) error { return moment(&w.State.Completed, w, l) }

// held INSTANCE/HOOK at=TIME: this leader has seen it held since then; done instead once its completion
// is no news.
func held(w *World, l line) error { return moment(&w.State.Held, w, l, doneWord) }

// cutin GROUP at=TIME instance=ID hook=NAME: something else completed a hook of ours.
func cutIn(w *World, l line) error {
	c := fleet.CutIn{At: w.Now}
	words := table[fleet.CutIn]{
		"at":       setter(clockTime, func(c *fleet.CutIn, t time.Time) { c.At = t }),
		"instance": setter(text, func(c *fleet.CutIn, v string) { c.Instance = v }),
		"hook":     setter(text, func(c *fleet.CutIn, v string) { c.Hook = v }),
	}
	if err := words.apply(&c, l.words); err != nil {
		return err
	}
	put(&w.State.CutIn, l.name, c)
	return nil
}

// pooling INSTANCE at=TIME.
func pooling(w *World, l line) error { return moment(&w.State.Pooling, w, l) }

// outlived INSTANCE at=TIME.
func outlived(w *World, l line) error { return moment(&w.State.Outlived, w, l) }

// alone NODE excluded=TIME emptied=TIME: the scaler drains it in place of its agent.
func alone(w *World, l line) error {
	var x fleet.LoneDrain
	words := table[fleet.LoneDrain]{
		"excluded": setter(clockTime, func(x *fleet.LoneDrain, t time.Time) { x.Excluded = t }),
		"emptied":  setter(clockTime, func(x *fleet.LoneDrain, t time.Time) { x.Emptied = t }),
	}
	if err := words.apply(&x, l.words); err != nil {
		return err
	}
	put(&w.State.StandIns, l.name, x)
	return nil
}

// unjoined INSTANCE at=TIME; pooled instead says that it stands in a warm pool.
func unjoined(w *World, l line) error { return moment(&w.State.Unjoined, w, l, pooledWord) }

// deserted INSTANCE at=TIME.
func deserted(w *World, l line) error { return moment(&w.State.Deserted, w, l) }

// suspending GROUP at=TIME; done instead says that it was seen so.
func suspending(w *World, l line) error { return moment(&w.State.Suspending, w, l, doneWord) }

// pooledWord stands for a time that has not begun, and doneWord for one that is over.
var pooledWord, doneWord = timeless("pooled"), timeless("done")

func timeless(word string) table[time.Time] {
	return table[time.Time]{word: func(to *time.Time, _ string) error { *to = time.Time{}; return nil }}
}

// disputed POD-UID at=TIME.
func disputed(w *World, l line) error { return moment(&w.State.Disputed, w, l) }

// owndrain INSTANCE at=TIME, or asg-terminate:INSTANCE.
func ownDrain(w *World, l line) error { return moment(&w.State.OwnDrains, w, l) }

var promiseWords = table[fleet.Promise]{
	"at":    setter(clockTime, func(p *fleet.Promise, t time.Time) { p.At = t }),
	"zones": setter(text, func(p *fleet.Promise, v string) { p.Zones = list(v) }),
	"count": setter(integer, func(p *fleet.Promise, n int) { p.Count = n }),
	"until": setter(clockTime, func(p *fleet.Promise, t time.Time) { p.Until = t }),
	"why":   setter(text, func(p *fleet.Promise, v string) { p.Why = v }),
}

// promise GROUP:DEFINITION:CLASS at=now zones=a; count= and until= say that it was not
// kept.
func promise(w *World, l line) error {
	p := fleet.Promise{At: w.Now}
	if err := promiseWords.apply(&p, l.words); err != nil {
		return err
	}
	put(&w.State.Promises, l.name, p)
	return nil
}

// awaited GROUP:LACKING at=TIME, awaited INSTANCE at=TIME.
func awaited(w *World, l line) error { return moment(&w.State.Awaited, w, l) }

// returning NODE at=TIME.
func returning(w *World, l line) error { return moment(&w.State.Returning, w, l) }

// seen TYPE/IMAGE mem=QUANTITY.
func seen(w *World, l line) error {
	var q resource.Quantity
	words := table[resource.Quantity]{"mem": setter(quantity, func(to *resource.Quantity, read resource.Quantity) { *to = read })}
	if err := words.apply(&q, l.words); err != nil {
		return err
	}
	put(&w.State.Seen, l.name, q)
	return nil
}

var lessonWords = table[fleet.Lesson]{
	"of":       setter(text, func(l *fleet.Lesson, v string) { l.Of = v }),
	"labels":   setter(pairs, func(l *fleet.Lesson, m map[string]string) { l.Template.Labels = m }),
	"taints":   setter(taints, func(l *fleet.Lesson, t []corev1.Taint) { l.Template.Taints = t }),
	"room":     setter(quantities, func(l *fleet.Lesson, r corev1.ResourceList) { l.Template.Allocatable = r }),
	"features": setter(text, func(l *fleet.Lesson, v string) { l.Template.DeclaredFeatures = list(v) }),
}

// lesson GROUP of=DEFINITION labels=disk=ssd room=cpu=4,memory=7Gi.
func lesson(w *World, l line) error {
	var taught fleet.Lesson
	if err := lessonWords.apply(&taught, l.words); err != nil {
		return err
	}
	put(&w.State.Lessons, l.name, taught)
	return nil
}

// moment reads a time, or one of the further words in its place.
func moment(m *map[string]time.Time, w *World, l line, further ...table[time.Time]) error {
	t := w.Now
	words := table[time.Time]{"at": setter(clockTime, func(to *time.Time, read time.Time) { *to = read })}
	for _, more := range further {
		maps.Copy(words, more)
	}
	if err := words.apply(&t, l.words); err != nil {
		return err
	}
	put(m, l.name, t)
	return nil
}

func put[V any](m *map[string]V, key string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = v
}

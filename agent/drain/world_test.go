package drain_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

const instance = "i-1"

var start = time.Date(2025, 1, 1, 10, 0, 0, 0, time.UTC)

// world is one node with its pods, budgets and metadata: what an agent sees,
// and what becomes of what it does. The agent's own memory (tries, heard,
// written) can be lost by a restart; the rest cannot.
type world struct {
	now     time.Time
	node    *fleet.Node
	pods    map[types.UID]fleet.Pod
	budgets map[string]*budget
	notices []notice.Notice
	// policy of the agent, and the flags that it is made of.
	policy                 drain.Policy
	responses, lastChances []string
	// attached are the volumes in the Node's status.
	attached []string

	// down: the API server does not answer. refuseWrites: it refuses patches.
	down, refuseWrites bool
	// stuck pods do not end when their grace does.
	stuck map[types.UID]bool

	// hidden budgets are not known to the agent, and unwatched ones cannot be
	// watched. undeletable: it has no right to delete pods.
	hidden, unwatched, undeletable bool
	// denied pods may not be evicted, says an admission rule, in these words.
	denied map[types.UID]bool
	denial string

	// The agent's own memory.
	heard, podsKnown    bool
	silent              bool // the metadata say nothing at all, before they are heard
	unclear             []notice.SourceName
	tries               drain.Tries
	stirred             map[string]time.Time
	written, unwritable time.Time
	crowded             bool // the API server has no time
	back                time.Time
	ending              map[types.UID]drain.Ending
	live                map[string]bool
	unwritten           *contract.Report
	unlisted            string

	// notYet is when the scaler's word on the Node arrived at the agent's process, and
	// heardNotYet which word that was. scaler goes on saying it.
	notYet      time.Time
	heardNotYet string
	scaler      scaler

	// told are the Events of this interruption, fulfilled the notices for which
	// the machine has come up again.
	told      told
	fulfilled map[string]bool

	// watch is the agent's of the pods, and askedAt when each was told to end.
	watch   watch
	askedAt map[types.UID]time.Time

	// asked are the pods whose eviction the API server was asked for, deletions those that it
	// granted.
	asked     map[types.UID]bool
	deletions map[types.UID]int
	evicted   []string
	created   int

	// returns is how long after an eviction, or after the pod's end, its owner's next pod
	// comes to this very node, if it may, and pending how much of that it was there before;
	// zero where others take it. closed is since when nothing may come that tolerates nothing.
	returns, pending time.Duration
	afterEnd         bool
	returned         map[types.UID]bool
	upcoming         []upcoming
	closed           time.Time
	storm            storm
}

// upcoming is a pod that kube-scheduler binds to a node at a moment.
type upcoming struct {
	at  time.Time
	pod fleet.Pod
}

// scaler is one that lets a drain wait, for as long as it lives.
type scaler struct {
	defers      string
	every       time.Duration
	next, until time.Time
}

// deferDrain writes the scaler's word, dated by its clock.
func (w *world) deferDrain(id string, at time.Time) {
	if w.node == nil {
		return
	}
	w.node.Annotations[contract.AnnotationDrainNotYet] = contract.NotYet{ID: id, At: contract.At(at)}.String()
}

// tellScaler is what the scaler does now: it speaks to drains that wait for their permit.
func (w *world) tellScaler() {
	s := &w.scaler
	if s.next.IsZero() || s.next.After(w.now) {
		return
	}
	s.next = w.now.Add(s.every)
	if s.next.After(s.until) {
		s.next = time.Time{}
	}
	if w.node == nil || w.down {
		return
	}
	if report, err := contract.ParseReport(w.node.Annotations[contract.AnnotationDrainReport]); err == nil && report.Wants == s.defers {
		w.deferDrain(s.defers, w.now)
	}
}

// hearNotYet is the agent noticing that the scaler has spoken again.
func (w *world) hearNotYet() {
	word := ""
	if w.node != nil {
		word = w.node.Annotations[contract.AnnotationDrainNotYet]
	}
	if word == w.heardNotYet {
		return
	}
	w.heardNotYet, w.notYet = word, w.now
	if word == "" {
		w.notYet = time.Time{}
	}
}

// budget allows disruptions; one that was spent comes back when a replacement
// is ready.
type budget struct {
	app     string
	allowed int
	heals   time.Duration
	healing []time.Time
	// free: pods that are not ready cost nothing (unhealthyPodEvictionPolicy
	// AlwaysAllow).
	free bool
}

func newWorld() *world {
	return &world{
		now: start, heard: true, podsKnown: true,
		node: &fleet.Node{
			Name: "n", ProviderID: "aws:///a/" + instance, BootID: "boot-1", Ready: true,
			Annotations: map[string]string{}, Labels: map[string]string{},
		},
		pods: map[types.UID]fleet.Pod{}, watch: watch{since: map[types.UID]time.Time{}}, budgets: map[string]*budget{},
		policy: testPolicy(), live: map[string]bool{}, denied: map[types.UID]bool{}, fulfilled: map[string]bool{},
		stuck: map[types.UID]bool{}, stirred: map[string]time.Time{}, ending: map[types.UID]drain.Ending{}, asked: map[types.UID]bool{}, askedAt: map[types.UID]time.Time{}, deletions: map[types.UID]int{}, returned: map[types.UID]bool{},
	}
}

func (w *world) view() drain.View {
	w.hearNotYet()
	v := drain.View{
		Now: w.now, PodsKnown: w.podsKnown, Heard: w.heard, Unclear: slices.Clone(w.unclear),
		Notices: slices.Clone(w.notices), Tries: w.tries, Stirred: maps.Clone(w.stirred), Ending: w.ending,
		Written: w.written, Unwritable: w.unwritable, Crowded: w.crowded, Back: w.back, NotYet: w.notYet,
		Live: maps.Clone(w.live), Attached: slices.Clone(w.attached), Unwritten: w.unwritten, Unlisted: w.unlisted,
	}
	if w.silent && !w.heard {
		v.Notices = nil
	}
	if w.node != nil {
		node := *w.node
		node.Annotations, node.Labels, node.Taints = maps.Clone(node.Annotations), maps.Clone(node.Labels), slices.Clone(node.Taints)
		v.Node = &node
	}
	if !w.podsKnown {
		return v
	}
	if !w.hidden {
		v.Budgets = drainable.NewBudgets(w.listBudgets())
	}
	pods := w.visible()
	for _, uid := range slices.Sorted(maps.Keys(pods)) {
		v.Pods = append(v.Pods, pods[uid])
	}
	return v
}

// listBudgets are the budgets as the agent knows them: those that it does not
// watch show what was so when they were listed, which is long ago.
func (w *world) listBudgets() []fleet.Budget {
	var list []fleet.Budget
	for _, key := range slices.Sorted(maps.Keys(w.budgets)) {
		b := w.budgets[key]
		namespace, name, _ := strings.Cut(key, "/")
		listed := fleet.Budget{
			Namespace: namespace, Name: name, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": b.app}},
			AlwaysAllowUnhealthy: b.free,
		}
		if w.live[namespace] {
			listed.Allowed = int32(b.allowed)
		}
		list = append(list, listed)
	}
	return list
}

// restart loses what only the agent's process keeps.
func (w *world) restart() {
	w.listAnew()
	w.heard, w.podsKnown = false, false
	w.tries, w.stirred, w.ending = drain.Tries{}, map[string]time.Time{}, map[types.UID]drain.Ending{}
	w.written, w.unwritable, w.back = time.Time{}, time.Time{}, time.Time{}
	w.live, w.unwritten, w.unlisted = map[string]bool{}, nil, ""
	w.notYet, w.heardNotYet = time.Time{}, ""
	w.storm.restarts++
}

// reboot brings the machine up again, and with it the agent. What it fulfils the agent can
// know by what it has written down: that an event was moved to now while the API server was
// away, it cannot.
func (w *world) reboot(boot string) {
	near := func(at time.Time) bool { return at.Sub(w.now) <= 5*time.Minute }
	for _, n := range w.notices {
		noted, isNoted := w.noted(n.ID)
		announced := n.Cause == notice.InstanceReboot || n.Cause == notice.SystemReboot || n.Cause == notice.SystemMaintenance
		if isNoted && announced && near(n.Deadline) && near(noted.Deadline.Time) {
			w.fulfilled[n.ID] = true
		}
	}
	w.node.BootID = boot
	w.restart()
}

func (w *world) noted(id string) (contract.Noticed, bool) {
	list, _ := contract.ParseNoticed(w.node.Annotations[contract.AnnotationNotices])
	return list.Find(id)
}

// hear is what the agent comes to know soon after a start.
func (w *world) hear() { w.heard, w.podsKnown, w.silent = true, true, false }

// send marks steps as sent, as the agent does before it asks.
func (w *world) send(steps []drain.Evict) {
	w.tries = w.tries.Send(w.now, steps...)
}

// apply writes the node and answers the evictions.
func (w *world) apply(next drain.Next) (lines []string) {
	w.storm = w.storm.after(w, next)
	w.write(next)
	w.send(next.Steps)
	w.live = map[string]bool{}
	for _, namespace := range next.WatchBudgets {
		w.live[namespace] = !w.unwatched && !w.down
	}
	for _, s := range next.Steps {
		answer := w.evict(s)
		w.tries = w.tries.Learn(s.UID, w.now, answer)
		line := fmt.Sprintf("%s/%s %s", s.Namespace, s.Name, answer.Outcome)
		if s.Delete {
			line = fmt.Sprintf("%s/%s deletion %s", s.Namespace, s.Name, answer.Outcome)
		}
		if answer.Budget != "" {
			line += " by " + answer.Budget
		}
		lines = append(lines, line)
	}
	return lines
}

func (w *world) write(next drain.Next) {
	if next.Node == nil {
		return
	}
	w.unwritten, w.unlisted = next.Report, next.Node.Annotations[contract.AnnotationNotices]
	if w.down {
		return
	}
	if w.refuseWrites {
		if w.unwritable.IsZero() {
			w.unwritable = w.now
		}
		return
	}
	w.told = w.told.after(w.node, next)
	w.node, w.written, w.unwritten, w.unlisted = next.Node, w.now, nil, ""
	if _, tainted := contract.Draining(w.node.Taints); !tainted || !w.node.Unschedulable {
		w.closed = time.Time{}
	} else if w.closed.IsZero() {
		w.closed = w.now
	}
}

func (w *world) evict(s drain.Evict) drain.Answer {
	if w.down {
		return drain.Answer{Outcome: drain.Failed, Message: "connection refused"}
	}
	w.asked[s.UID] = true
	pod, ok := w.pods[s.UID]
	if !ok {
		return drain.Answer{Outcome: drain.Gone}
	}
	if s.Delete && w.undeletable {
		return drain.Answer{Outcome: drain.Forbidden, Message: "pods is forbidden"}
	}
	if !s.Delete && w.denied[s.UID] {
		return drain.Answer{Outcome: drain.Forbidden, Message: cmp.Or(w.denial, "denied by a webhook")}
	}
	again := !pod.Deleted.IsZero() // then no budget is asked, and its time to end only ever shortened
	if !again {
		if budget := w.disrupt(pod, s.Delete); budget != "" {
			return drain.Answer{Outcome: drain.Refused, Budget: budget, Message: "no room"}
		}
	}
	w.deletions[s.UID]++
	grace := 30 * time.Second
	if g := pod.Spec.TerminationGracePeriodSeconds; g != nil {
		grace = time.Duration(*g) * time.Second
	}
	if s.Grace != nil {
		grace = time.Duration(*s.Grace) * time.Second
	}
	ends := w.now.Add(grace)
	if again && !ends.Before(pod.Deleted.Time()) {
		return drain.Answer{Outcome: drain.Accepted}
	}
	pod.Deleted = fleet.SecondOf(ends)
	w.pods[s.UID] = pod
	if again {
		return drain.Answer{Outcome: drain.Accepted}
	}
	w.askedAt[s.UID] = w.now
	w.evicted = append(w.evicted, pod.Key())
	w.storm.evict(w, pod)
	w.succeed(pod)
	return drain.Answer{Outcome: drain.Accepted}
}

// succeed has the owner of a pod that leaves make another one.
func (w *world) succeed(pod fleet.Pod) {
	if w.returns == 0 || pod.Owner == nil {
		return
	}
	at := w.now.Add(w.returns)
	if w.afterEnd {
		at = pod.Deleted.Time().Add(w.returns)
	}
	next := pod
	next.Created, next.Deleted, next.Ready = fleet.SecondOf(at.Add(-w.pending)), 0, true
	w.upcoming = append(w.upcoming, upcoming{at, next})
}

// schedule binds the pods whose time has come: to this node if nothing keeps them off it,
// else elsewhere. kube-scheduler hears late that a node is closed.
func (w *world) schedule() {
	const late = 2 * time.Second
	w.upcoming = slices.DeleteFunc(w.upcoming, func(next upcoming) bool {
		p := next.pod
		if next.at.After(w.now) {
			return false
		}
		open := w.closed.IsZero() || w.now.Sub(w.closed) <= late
		if open || len(p.Spec.Tolerations) > 0 || drainable.IsDaemonSet(&p) { // whose pods may be made past kube-scheduler
			name, _, _ := strings.Cut(p.Name, ".")
			p.Name = fmt.Sprintf("%s.%d", name, w.created+1)
			w.returned[w.addPod(p)] = true
		}
		return true
	})
}

// disrupt spends what an eviction costs the pod's budgets, and names the one that
// has no room. A deletion does not ask them, but costs them all the same.
func (w *world) disrupt(pod fleet.Pod, deletion bool) (refused string) {
	app := pod.Labels["app"]
	for _, key := range slices.Sorted(maps.Keys(w.budgets)) {
		b := w.budgets[key]
		if b.app != app || b.free && !pod.Ready {
			continue
		}
		if b.allowed == 0 && !deletion {
			return key
		}
		b.allowed--
		if b.heals > 0 {
			b.healing = append(b.healing, w.now.Add(b.heals))
		}
	}
	return ""
}

// pass lets time go by: pods end with their grace, budgets heal.
func (w *world) pass(to time.Time) {
	w.now = to
	for uid, pod := range w.pods {
		if !pod.Deleted.IsZero() && !pod.Deleted.Time().After(w.now) && !w.stuck[uid] && !w.down {
			delete(w.pods, uid)
			if w.watch.seen == nil {
				w.stirred[pod.Namespace] = w.now
			}
		}
	}
	for _, b := range w.budgets {
		b.healing = slices.DeleteFunc(b.healing, func(at time.Time) bool {
			if at.After(w.now) {
				return false
			}
			b.allowed++
			return true
		})
	}
	w.schedule()
	w.look()
	w.tries = w.tries.Only(func(uid types.UID) bool { _, ok := w.visible()[uid]; return ok }, w.now)
	w.tellScaler()
}

// soonest is the next moment at which something happens by itself, no later
// than wake; zero for never.
func (w *world) soonest(wake time.Time) time.Time {
	at := wake
	for _, pod := range w.pods {
		if pod.Deleted.Time().After(w.now) {
			at = notice.Earliest(at, pod.Deleted.Time())
		}
	}
	for key, b := range w.budgets {
		namespace, _, _ := strings.Cut(key, "/")
		for _, healed := range b.healing {
			if w.live[namespace] {
				at = notice.Earliest(at, healed)
			}
		}
	}
	for _, next := range w.upcoming {
		at = notice.Earliest(at, next.at)
	}
	at = notice.Earliest(notice.Earliest(at, w.hears()), w.scaler.next)
	if w.down || w.refuseWrites { // the agent tries again to write
		at = notice.Earliest(at, w.now.Add(time.Second))
	}
	return at
}

func (w *world) addPod(p fleet.Pod) types.UID {
	w.created++
	p.UID = types.UID(fmt.Sprintf("%s-%d", p.Name, w.created))
	w.pods[p.UID] = p
	return p.UID
}

// find is the pod of that name that came last.
func (w *world) find(key string) (types.UID, bool) {
	var found []types.UID
	for uid, p := range w.pods {
		if p.Key() == key {
			found = append(found, uid)
		}
	}
	if len(found) == 0 {
		return "", false
	}
	return slices.MaxFunc(found, func(a, b types.UID) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }), true
}

// newPod is an ordinary pod with an owner.
func newPod(key string) fleet.Pod {
	namespace, name, _ := strings.Cut(key, "/")
	app, _, _ := strings.Cut(name, "-")
	priority := int32(0)
	return fleet.Pod{
		Namespace: namespace, Name: name, Created: fleet.SecondOf(start.Add(-time.Hour)), Labels: map[string]string{"app": app},
		Annotations: map[string]string{}, Owner: &metav1.OwnerReference{Kind: "ReplicaSet", Name: app},
		Node: "n", Spec: &corev1.PodSpec{Priority: &priority}, Phase: fleet.PodRunning, Ready: true,
	}
}

// describe prints an answer.
func describe(was *fleet.Node, next drain.Next, now time.Time) []string {
	var lines []string
	if next.Node != nil {
		for _, change := range drain.Changes(*was, *next.Node) {
			if strings.HasPrefix(change, "annotation notices=") {
				change = "notices " + describeNotices(next.Node)
			}
			if !strings.HasPrefix(change, "annotation drain-report=") {
				lines = append(lines, "node: "+change)
			}
		}
		if next.Node.Annotations[contract.AnnotationDrainReport] != was.Annotations[contract.AnnotationDrainReport] {
			lines = append(lines, "node: report")
		}
	}
	for _, e := range next.Events {
		lines = append(lines, fmt.Sprintf("event: %s%s: %s", map[bool]string{true: "! "}[e.Warning], e.Reason, e.Message))
	}
	for _, s := range next.Steps {
		lines = append(lines, "step: "+s.String())
	}
	if r := next.Report; r != nil {
		lines = append(lines, "stands: "+describeReport(*r))
	}
	if !next.Wake.IsZero() {
		lines = append(lines, "wake: in "+next.Wake.Sub(now).Round(time.Millisecond).String())
	}
	return lines
}

// describeNotices prints the list on the Node in short.
func describeNotices(n *fleet.Node) string {
	list, err := contract.ParseNoticed(n.Annotations[contract.AnnotationNotices])
	if err != nil {
		return err.Error()
	}
	var items []string
	for _, n := range list {
		item := n.ID + " " + n.Does
		if !n.Due.IsZero() {
			item += " from " + clock(n.Due.Time)
		}
		if !n.Deadline.IsZero() {
			item += " until " + clock(n.Deadline.Time)
		}
		items = append(items, item+" "+n.Boot)
	}
	return strings.Join(items, "; ")
}

// clock prints a moment, with its day if that is not the first.
func clock(t time.Time) string {
	if t.YearDay() == start.YearDay() {
		return t.Format(time.TimeOnly)
	}
	return t.Format("Jan 2 " + time.TimeOnly)
}

func describeReport(r contract.Report) string {
	text := fmt.Sprintf("%s left=%d", r.Phase, r.Left)
	if r.Kind != "" {
		text += " " + string(r.Kind)
	}
	if len(r.Answers) > 0 {
		text += " for " + strings.Join(r.Answers, ",")
	}
	text += " since " + r.Since.Format(time.TimeOnly)
	if !r.Deadline.IsZero() {
		text += " until " + clock(r.Deadline.Time)
	}
	if len(r.BlockedBy) > 0 {
		text += " blocked by " + strings.Join(r.BlockedBy, ", ")
	}
	return text + ": " + cmp.Or(r.Message, "-")
}

// describeNode prints what Windlass writes of a node, but for the report.
func describeNode(n *fleet.Node) []string {
	if n == nil {
		return []string{"no node"}
	}
	var lines []string
	if n.Unschedulable {
		lines = append(lines, "unschedulable")
	}
	for _, t := range n.Taints {
		lines = append(lines, "taint "+t.ToString())
	}
	for _, m := range []struct {
		what string
		of   map[string]string
	}{{"label", n.Labels}, {"annotation", n.Annotations}} {
		for _, key := range slices.Sorted(maps.Keys(m.of)) {
			lines = append(lines, fmt.Sprintf("%s %s=%s", m.what, key, m.of[key]))
		}
	}
	return cmpEmpty(lines, "bare")
}

func cmpEmpty(lines []string, otherwise string) []string {
	if len(lines) == 0 {
		return []string{otherwise}
	}
	return lines
}

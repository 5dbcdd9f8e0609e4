package drain_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// TestScenarios plays the files of testdata, each a story about one node. A
// command first changes the world, one line for each change, and then
//
//	new      begins with a bare node at 10:00:00; the agent knows everything
//	change   prints nothing
//	decide   prints the answer, and does nothing
//	act      prints the answer, carries it out, prints what came of it
//	run for=2m   goes on acting, and prints what changes at which time
//	node     prints what Windlass has written on the Node
//	causes in=2h  prints what becomes of every cause and answer
//
// The laws are checked on every answer. `make update` writes what is printed.
//
// The changes are
//
//	node cordoned | uncordoned | gone | boot=b | taint=k=v:E | no-taint k | label k=v | no-label k |
//	     annotation k=v | no-annotation k        (k: short for the contract's keys)
//	request <value> | no-request | permit <id>
//	not-yet <id> [at 10:00:07]                       the scaler says so, by a clock of its own
//	not-yet <id> every 1m for 2h                     and says it again so often, and then is dead
//	terminated | spot in 2m | spot stop in 2m        as the metadata say it
//	notice cause[:detail] [in 2h [for 4h]] | no-notice [cause[:detail]]
//	reboot boot                                      and with the machine the agent
//	policy cause=ignore|cordon|drain[@lead]          as --notice-policy says it
//	policy last-chance cause=leave|delete | policy steps 0:0s,1000:20s
//	policy permit 5m | policy max-permit 24h | policy balancers 30s | policy volumes 2m | policy daemons
//	policy wait-for-jobs | policy keep-local-storage | policy kube-proxy | policy no-kube-proxy
//	policy dry-run | policy for-real
//	pod ns/name [grace=s] [priority=n] [critical] [daemon] [asks] [tolerates] [mirror]
//	    [naked] [safe=v] [ended] [local] [job] [claim=c]
//	attached [volume ...]                            what the Node's status shows
//	no-pod ns/name | ends ns/name | stuck ns/name | unready ns/name
//	budget ns/name app allowed=n [heals=20s] [free]    (guards the pods named app-…;
//	    free: but for those that are not ready)
//	answer ns/name outcome [budget] [message]    what came of an eviction that was sent
//	sent ns/name [deletion]                      an eviction is under way
//	budgets hidden | seen | unwatched | watched
//	denied ns/name | undeletable                 no right to evict it; none to delete
//	stirred ns
//	returns 1s | returns no           owners make another pod so long after an eviction, which
//	    kube-scheduler binds to this node, if that is open or the pod tolerates its taints
//	returns 70s pending | after-end   it was made soon after the eviction, and waited for a node;
//	    or so long after the end of the one before
//	after 5s | at 10:00:07
//	restart | hears | deaf | silent | sees | blind    (silent: deaf, and nothing was reported before)
//	unclear <path> | clear          a path of the metadata whose answer cannot be understood
//	down | up | unwritable | writable
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := newWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "new" {
				w = newWorld()
			}
			for _, line := range strings.Split(d.Input, "\n") {
				line, _, _ = strings.Cut(line, "#")
				if strings.TrimSpace(line) == "" {
					continue
				}
				if err := w.change(strings.TrimSpace(line)); err != nil {
					d.Fatalf(t, "%q: %v", line, err)
				}
			}
			switch d.Cmd {
			case "new", "change":
				return ""
			case "decide":
				return print(w.decide(t, false))
			case "act":
				return print(w.decide(t, true))
			case "run":
				var long string
				d.ScanArgs(t, "for", &long)
				length, err := time.ParseDuration(long)
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				return print(w.run(t, length))
			case "node":
				return print(describeNode(w.node))
			case "causes":
				var in time.Duration
				if d.HasArg("in") {
					var text string
					d.ScanArgs(t, "in", &text)
					in, _ = time.ParseDuration(text)
				}
				return print(tableOfCauses(t, in))
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

func testPolicy() drain.Policy {
	p := drain.DefaultPolicy()
	p.Version = "test"
	return p
}

func print(lines []string) string {
	return strings.Join(cmpEmpty(lines, "nothing"), "\n") + "\n"
}

// decide prints one answer, and carries it out if asked.
func (w *world) decide(t *testing.T, act bool) []string {
	next := drain.Decide(w.view(), w.policy)
	w.check(t, next)
	lines := describe(w.node, next, w.now)
	if act {
		lines = append(lines, w.apply(next)...)
		w.check(t, drain.Decide(w.view(), w.policy))
	}
	return lines
}

func (w *world) check(t require, next drain.Next) {
	t.Helper()
	for _, law := range broken(w, next) {
		t.Errorf("at %s: %s", w.now.Format(time.TimeOnly), law)
	}
	for _, law := range w.storm.broken() {
		t.Errorf("at %s: %s", w.now.Format(time.TimeOnly), law)
	}
	for uid, n := range w.deletions {
		if n > 1 {
			t.Errorf("pod %s was deleted %d times", uid, n)
		}
	}
}

// require is what testing and rapid have in common.
type require interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// run goes on for a time and prints, at each moment at which there is something
// new, what it is. What only repeats (a report renewed) is left out.
func (w *world) run(t require, length time.Duration) []string {
	var lines []string
	from, end, stands := w.now, w.now.Add(length), ""
	pass := func(to time.Time) {
		for _, law := range w.unasked(from, to) {
			t.Errorf("at %s: %s", w.now.Format(time.TimeOnly), law)
		}
		w.pass(to)
	}
	for turns := 0; !w.now.After(end); turns++ {
		if turns > 10_000 {
			t.Fatalf("a hot loop")
		}
		w.look()
		next := drain.Decide(w.view(), w.policy)
		w.check(t, next)
		told := next
		if w.down || w.refuseWrites {
			told.Node, told.Events = nil, nil
		}
		for _, line := range describe(w.node, told, w.now) {
			what, rest, _ := strings.Cut(line, ": ")
			if what == "wake" || what == "step" || line == "node: report" || (what == "stands" && rest == stands) {
				continue
			}
			if what == "stands" {
				stands = rest
			}
			lines = append(lines, w.now.Format("15:04:05.000")+" "+line)
		}
		before, written, tries := w.node, w.written, len(next.Steps)
		for _, line := range w.apply(next) {
			lines = append(lines, w.now.Format("15:04:05.000")+" "+line)
		}
		if tries > 0 || written != w.written || before != w.node {
			continue
		}
		to := w.soonest(next.Wake)
		if to.IsZero() {
			break
		}
		if !to.After(w.now) {
			t.Fatalf("woken at %s for %s and nothing was done", w.now, to)
		}
		if to.After(end) {
			break
		}
		pass(to)
	}
	if end.After(w.now) {
		pass(end)
	}
	return lines
}

// change carries out one line of a story.
func (w *world) change(line string) error {
	fields := strings.Fields(line)
	rest := strings.TrimSpace(strings.TrimPrefix(line, fields[0]))
	switch fields[0] {
	case "node":
		return w.changeNode(fields[1:], strings.TrimSpace(strings.TrimPrefix(rest, fields[1])))
	case "request":
		w.node.Annotations[contract.AnnotationDrainRequest] = rest
	case "no-request":
		delete(w.node.Annotations, contract.AnnotationDrainRequest)
	case "terminated":
		return w.hearBody(notice.ParseTargetState(instance, "Terminated"))
	case "spot":
		return w.changeSpot(fields[1:])
	case "notice":
		return w.changeNotice(fields[1:])
	case "no-notice":
		w.notices = slices.DeleteFunc(w.notices, func(n notice.Notice) bool { return strings.HasPrefix(n.ID, noticeID(rest)) })
		maps.DeleteFunc(w.fulfilled, func(id string, _ bool) bool { return strings.HasPrefix(id, noticeID(rest)) })
	case "permit":
		w.node.Annotations[contract.AnnotationDrainPermit] = rest
		delete(w.node.Annotations, contract.AnnotationDrainNotYet)
	case "not-yet":
		return w.changeNotYet(fields[1:])
	case "reboot":
		w.reboot(rest)
	case "policy":
		return w.changePolicy(fields[1], fields[2:])
	case "attached":
		w.attached = fields[1:]
	case "undeletable":
		w.undeletable = true
	case "pod":
		return w.changePod(fields[1:])
	case "no-pod", "ends", "stuck", "denied", "unready":
		return w.endPod(fields[0], rest)
	case "budget":
		return w.changeBudget(fields[1:])
	case "budgets":
		switch rest {
		case "hidden", "seen":
			w.hidden = rest == "hidden"
		case "unwatched", "watched":
			w.unwatched = rest == "unwatched"
			w.live = map[string]bool{}
		default:
			return fmt.Errorf("unknown word %s", rest)
		}
	case "sent", "answer":
		return w.changeTry(fields)
	case "returns":
		w.returns, _ = time.ParseDuration(fields[1])
		w.pending, w.afterEnd = 0, slices.Contains(fields, "after-end")
		if slices.Contains(fields, "pending") {
			w.pending = max(0, w.returns-time.Second)
		}
	case "stirred":
		w.stirred[rest] = w.now
	case "after":
		d, err := time.ParseDuration(rest)
		w.pass(w.now.Add(d))
		return err
	case "at":
		at, err := time.Parse("15:04:05.999", rest)
		w.pass(time.Date(2025, 1, 1, at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC))
		return err
	case "restart":
		w.restart()
	case "hears":
		w.hear()
	case "deaf", "silent":
		w.heard, w.silent = false, fields[0] == "silent"
	case "unclear":
		w.unclear = []notice.SourceName{notice.SourceName(rest)}
	case "clear":
		w.unclear = nil
	case "sees":
		w.podsKnown = true
	case "blind":
		w.podsKnown = false
	case "down", "up":
		if w.down && fields[0] == "up" {
			w.back = w.now
			w.relist()
			w.noteBack()
		}
		w.down = fields[0] == "down"
	case "late": // from now on, the watch of the pods
		late, err := time.ParseDuration(fields[1])
		if err != nil {
			return err
		}
		w.delay(late)
	case "crowded", "calm":
		w.crowded = fields[0] == "crowded"
	case "unwritable", "writable":
		w.refuseWrites, w.unwritable = fields[0] == "unwritable", time.Time{}
	default:
		return fmt.Errorf("unknown change %s", fields[0])
	}
	return nil
}

func (w *world) changeNode(fields []string, rest string) error {
	key, value, _ := strings.Cut(rest, "=")
	switch word, of, _ := strings.Cut(fields[0], "="); word {
	case "cordoned", "uncordoned":
		w.node.Unschedulable = word == "cordoned"
		if word == "uncordoned" {
			w.storm.reopened++
		}
	case "gone":
		w.node = nil
	case "boot":
		w.node.BootID = of
	case "taint":
		key, value, _ := strings.Cut(of, "=")
		value, effect, _ := strings.Cut(value, ":")
		taint := corev1.Taint{Key: full(key), Value: value, Effect: corev1.TaintEffect(effect)}
		w.node.Taints = append(w.node.Taints, taint)
	case "no-taint":
		w.node.Taints = contract.WithoutTaint(w.node.Taints, full(rest))
	case "label":
		w.node.Labels[full(key)] = value
	case "no-label":
		delete(w.node.Labels, full(rest))
	case "annotation":
		w.node.Annotations[full(key)] = value
	case "no-annotation":
		delete(w.node.Annotations, full(rest))
	default:
		return fmt.Errorf("unknown change %s", word)
	}
	return nil
}

// full spells out the contract's keys.
func full(key string) string {
	switch key {
	case "exclude":
		return contract.LabelExcludeFromLoadBalancers
	case "draining", "drain-report", "drain-permit", "drain-not-yet", "terminating", "served", "notices", "cordoned-by", "excluded-from-load-balancers", "unneeded", "hold":
		return contract.Prefix + key
	}
	return key
}

func (w *world) hearBody(notices []notice.Notice, err error) error {
	w.notices = append(w.notices, notices...)
	return err
}

// noticeID spells out the id of a notice of this instance: the cause, and what
// distinguishes it from others of its cause.
func noticeID(word string) string {
	cause, detail, more := strings.Cut(word, ":")
	if cause == "" {
		return ""
	}
	if more {
		return cause + ":" + instance + ":" + detail
	}
	return cause + ":" + instance
}

func (w *world) changeNotice(fields []string) error {
	cause, _, _ := strings.Cut(fields[0], ":")
	n := notice.Notice{
		ID: noticeID(fields[0]), Cause: notice.Cause(cause), Kind: notice.Cause(cause).Kind(),
		Source: "test", Reason: "they announce " + fields[0],
	}
	if n.Kind == "" {
		return fmt.Errorf("unknown cause %s", cause)
	}
	if len(fields) >= 3 {
		in, err := time.ParseDuration(fields[2])
		if err != nil {
			return err
		}
		n.Deadline = w.now.Add(in).Truncate(time.Second)
		n.Reason += " at " + clock(n.Deadline)
	}
	if len(fields) == 5 {
		length, err := time.ParseDuration(fields[4])
		if err != nil {
			return err
		}
		n.NotAfter = n.Deadline.Add(length)
	}
	if host := n.Cause == notice.SystemReboot || n.Cause == notice.SystemMaintenance; host && n.Deadline.Sub(w.now) > 5*time.Minute {
		delete(w.fulfilled, n.ID) // it was put off, and the reboot before was another one
	}
	w.notices = slices.DeleteFunc(w.notices, func(old notice.Notice) bool { return old.ID == n.ID })
	w.notices = append(w.notices, n)
	return nil
}

// changeNotYet lets the scaler write that it is not a drain's turn.
func (w *world) changeNotYet(fields []string) (err error) {
	w.scaler = scaler{}
	at := w.now
	switch {
	case len(fields) == 3 && fields[1] == "at":
		var by time.Time
		by, err = time.Parse(time.TimeOnly, fields[2])
		at = time.Date(start.Year(), start.Month(), start.Day(), by.Hour(), by.Minute(), by.Second(), 0, time.UTC)
	case len(fields) == 5:
		var every, until time.Duration
		every, err = time.ParseDuration(fields[2])
		if err == nil {
			until, err = time.ParseDuration(fields[4])
		}
		w.scaler = scaler{defers: fields[0], every: every, until: w.now.Add(until), next: w.now.Add(every)}
	case len(fields) > 1:
		err = fmt.Errorf("unknown words %v", fields[1:])
	}
	w.deferDrain(fields[0], at)
	return err
}

func (w *world) changePolicy(what string, words []string) (err error) {
	p := &w.policy
	switch what {
	case "last-chance":
		w.lastChances = append(w.lastChances, words...)
		p.Responses, err = notice.ParseResponses(w.responses, w.lastChances)
	case "steps":
		p.Steps, err = drainable.ParseSteps(words[0])
	case "permit":
		p.PermitWait, err = time.ParseDuration(words[0])
	case "max-permit":
		p.MaxPermitWait, err = time.ParseDuration(words[0])
	case "balancers":
		p.LoadBalancerWait, err = time.ParseDuration(words[0])
	case "volumes":
		p.VolumeWait, err = time.ParseDuration(words[0])
	case "daemons":
		p.EvictDaemonSets = true
	case "wait-for-jobs":
		p.WaitForJobs = true
	case "kube-proxy":
		p.KubeProxyTaint = true
	case "no-kube-proxy":
		p.KubeProxyTaint = false
	case "dry-run":
		p.DryRun = true
	case "for-real":
		p.DryRun = false
	case "keep-local-storage":
		p.KeepLocalStorage = true
	default:
		w.responses = append(w.responses, what)
		p.Responses, err = notice.ParseResponses(w.responses, w.lastChances)
	}
	return err
}

func (w *world) changeSpot(fields []string) error {
	action := "terminate"
	if fields[0] != "in" {
		action, fields = fields[0], fields[1:]
	}
	in, err := time.ParseDuration(fields[1])
	if err != nil {
		return err
	}
	body := fmt.Sprintf(`{"action":%q,"time":%q}`, action, w.now.Add(in).Format(time.RFC3339))
	return w.hearBody(notice.ParseInstanceAction(instance, body))
}

func (w *world) changePod(fields []string) error {
	p := newPod(fields[0])
	for _, word := range fields[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "grace":
			seconds, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return err
			}
			p.Spec.TerminationGracePeriodSeconds = &seconds
		case "priority":
			priority, err := strconv.ParseInt(value, 10, 32)
			if err != nil {
				return err
			}
			short := int32(priority)
			p.Spec.Priority = &short
		case "asks":
			p.Annotations[contract.AnnotationEvictDaemonSetPod] = "true"
		case "tolerates":
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		case "claim":
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: value, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: value}}})
		case "critical":
			p.Spec.PriorityClassName = "system-cluster-critical"
		case "job":
			p.Owner = &metav1.OwnerReference{Kind: "Job", Name: "j"}
		case "daemon":
			p.Owner = &metav1.OwnerReference{Kind: "DaemonSet", Name: "d"}
		case "mirror":
			p.Annotations[contract.AnnotationMirror] = "x"
		case "naked":
			p.Owner = nil
		case "safe":
			p.Annotations[contract.AnnotationSafeToEvict] = value
		case "ended":
			p.Phase = fleet.PodSucceeded
		case "local":
			p.Spec.Volumes = []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		default:
			return fmt.Errorf("unknown word %s", word)
		}
	}
	w.addPod(p)
	return nil
}

func (w *world) endPod(how, key string) error {
	uid, ok := w.find(key)
	if !ok {
		return fmt.Errorf("no such pod")
	}
	p := w.pods[uid]
	switch how {
	case "no-pod":
		delete(w.pods, uid)
		w.stirred[p.Namespace] = w.now
		return nil
	case "ends":
		p.Phase = fleet.PodSucceeded
	case "unready":
		p.Ready = false
	case "stuck": // its kubelet will never end it
		w.stuck[uid] = true
	case "denied":
		w.denied[uid] = true
	}
	w.pods[uid] = p
	return nil
}

func (w *world) changeBudget(fields []string) error {
	b := &budget{app: fields[1]}
	for _, word := range fields[2:] {
		key, value, _ := strings.Cut(word, "=")
		var err error
		switch key {
		case "free":
			b.free = true
		case "allowed":
			b.allowed, err = strconv.Atoi(value)
		case "heals":
			b.heals, err = time.ParseDuration(value)
		default:
			err = fmt.Errorf("unknown word %s", word)
		}
		if err != nil {
			return err
		}
	}
	w.budgets[fields[0]] = b
	return nil
}

func (w *world) changeTry(fields []string) error {
	uid, ok := w.find(fields[1])
	if !ok {
		return fmt.Errorf("no such pod")
	}
	if fields[0] == "sent" {
		w.tries = w.tries.Send(w.now, drain.Evict{UID: uid, Delete: len(fields) > 2})
		return nil
	}
	answer := drain.Answer{Outcome: drain.Outcome(fields[2])}
	if answer.Outcome == drain.Refused && len(fields) > 3 {
		answer.Budget, fields = fields[3], fields[1:]
	}
	answer.Message = strings.Join(fields[min(3, len(fields)):], " ")
	w.tries = w.tries.Learn(uid, w.now, answer)
	return nil
}

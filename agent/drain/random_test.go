package drain_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// TestRandom lets a node live through an hour of whatever can happen to it: pods
// come and go, budgets refuse and heal, every cause is announced and thought
// better of, people ask and cordon and uncordon, permits come or do not, machines
// reboot, the API server is away, the agent is killed at any step. No law is ever
// broken; at the end, with budgets that let it, a drain that is asked for ends,
// and without one nothing of ours is left and a person's cordon stands where it
// stood.
func TestRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &life{T: t, world: newWorld()}
		l.world.node.Unschedulable = rapid.Bool().Draw(t, "cordoned by a person")
		l.human = l.world.node.Unschedulable
		l.choosePolicy()
		for i := range rapid.IntRange(0, 4).Draw(t, "budgets") {
			l.story(fmt.Sprintf("budget shop/b%d %s allowed=%d heals=%ds", i, l.pick("app", apps...),
				rapid.IntRange(1, 2).Draw(t, "allowed"), rapid.IntRange(1, 60).Draw(t, "heals")))
		}
		for range rapid.IntRange(1, 30).Draw(t, "turns") {
			l.turn()
			l.world.run(t, time.Duration(rapid.IntRange(0, 90_000).Draw(t, "ms"))*time.Millisecond)
		}
		l.story("up")
		l.story("writable")
		l.story("node no-annotation terminating")
		if rapid.IntRange(0, 3).Draw(t, "ends deaf") == 0 {
			l.endDeaf()
			return
		}
		l.story("hears")
		l.story("clear")
		if rapid.Bool().Draw(t, "ends drained") {
			l.endDrained()
			return
		}
		l.endBare()
	})
}

// life is one random run.
type life struct {
	*rapid.T
	world *world
	// human: the node is cordoned, and not by us.
	human bool
	boots int
}

func (l *life) story(line string) {
	l.Logf("%s %s", l.world.now.Format(time.TimeOnly), line)
	if err := l.world.change(line); err != nil {
		l.Fatalf("%s: %v", line, err)
	}
}

func (l *life) pick(what string, from ...string) string {
	return rapid.SampledFrom(from).Draw(l.T, what)
}

// A failing case is printed with its seed; files would lie among the stories.
func init() { _ = flag.Set("rapid.nofailfile", "true") }

var apps = []string{"web", "db", "job"}

// announced are the causes that are announced, with what distinguishes two of one cause. The
// one that ends every life keeps its policy.
var announced = []string{
	"spot-terminate:a", "spot-stop:a", "spot-hibernate:a", "rebalance:a", "rebalance:b", "instance-reboot:a", "instance-reboot:b",
	"system-reboot:a", "system-maintenance:a", "instance-stop:a", "instance-retirement:a", "asg-warm", "asg-standby", "asg-detach",
}

func (l *life) choosePolicy() {
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(announced), 0, 5, rapid.ID).Draw(l.T, "policies") {
		cause, _, _ := strings.Cut(name, ":")
		answer := l.pick("answer", "ignore", "cordon", "drain", "drain@30s")
		if _, err := notice.ParseResponses([]string{cause + "=" + answer}, nil); err == nil && !l.world.answered(cause) {
			l.story("policy " + cause + "=" + answer)
		}
	}
	for _, kind := range []string{"spot", "asg", "maintenance"} {
		l.story("policy last-chance " + kind + "=" + l.pick("last chance", "leave", "delete"))
	}
	l.story("policy steps " + l.pick("steps", "0:0s,2000000000:15s", "0:0s", "-5:5s,0:10s,1000:20s,2000000000:10s"))
	l.story("policy permit " + l.pick("permit wait", "0s", "30s", "5m"))
	l.story("policy max-permit " + l.pick("longest wait", "0s", "10m", "24h"))
	l.story("policy balancers " + l.pick("balancer wait", "0s", "0s", "20s"))
	if rapid.Bool().Draw(l.T, "daemons") {
		l.story("policy daemons")
	}
	l.story("returns " + l.pick("returns", "no", "no", "1s", "3s", "20s pending", "70s", "2m pending", "40s after-end"))
	if rapid.Bool().Draw(l.T, "kube-proxy") {
		l.story("policy kube-proxy")
	}
	if rapid.Bool().Draw(l.T, "undeletable") {
		l.story("undeletable")
	}
}

// answered reports whether people have said something about a cause.
func (w *world) answered(cause string) bool {
	return slices.ContainsFunc(w.responses, func(r string) bool { return strings.HasPrefix(r, cause+"=") })
}

func (l *life) turn() {
	switch w := l.world; l.pick("turn", "pod", "pod", "pod", "notice", "notice", "terminated", "spot", "no-notice", "request", "no-request", "stuck",
		"hostile", "hostile", "permit", "not-yet", "reboot", "restart", "crash", "hears", "unclear", "server", "writes", "budgets", "person", "attached", "terminating") {
	case "pod":
		l.story(fmt.Sprintf("pod shop/%s-%d grace=%d %s %s", l.pick("app", apps...), rapid.IntRange(1, 3).Draw(l.T, "n"), rapid.IntRange(0, 200).Draw(l.T, "grace"),
			l.pick("priority", "", "", "critical", "priority=1000", "priority=-9"),
			l.pick("what", "", "", "claim=c", "tolerates", "daemon", "daemon asks", "daemon tolerates", "mirror", "naked", "safe=false", "safe=on-completion", "safe=true", "ended")))
	case "notice":
		l.story("notice " + l.pick("cause", announced...) + l.pick("deadline", "", " in 20s", " in 2m", " in 10m", " in 1h", " in 48h"))
	case "terminated":
		if !has(w.notices, contract.TerminateID(instance)) {
			l.story("terminated")
		}
	case "spot":
		l.story("no-notice spot-terminate") // the metadata may give it another time
		l.story(fmt.Sprintf("spot in %ds", rapid.IntRange(0, 120).Draw(l.T, "left")))
	case "no-notice":
		l.story("no-notice " + l.pick("which", append([]string{"", ""}, announced...)...))
	case "request":
		l.story("request " + l.pick("request", "upgrade", "two words", `{"id":"r","kind":"scale-down"}`, l.dated("r"), l.dated("r"), `{"id":"asg-terminate:i-1","kind":"asg"}`, `{"id":"asg-warm:i-1","kind":"asg"}`, `{"id":`))
	case "hostile":
		l.hostile()
	case "no-request":
		l.story("no-request")
	case "permit":
		l.story("permit " + l.pick("id", "r", noticeID(l.pick("cause", announced...))))
	case "not-yet":
		id := noticeID(l.pick("cause", announced...))
		if report, err := contract.ParseReport(w.node.Annotations[contract.AnnotationDrainReport]); err == nil && slices.Equal(strings.Fields(report.Wants), []string{report.Wants}) { // a story has no others
			id = report.Wants
		}
		l.story("not-yet " + id + l.pick("by the clock", "", " at 09:00:00", " at 23:00:00", " every 20s for 10m", " every 2m for 1h"))
	case "reboot":
		l.boots++
		l.story(fmt.Sprintf("reboot boot-r%d", l.boots))
		l.story(l.pick("hearing", "deaf", "silent"))
	case "stuck":
		if uids := slices.Sorted(maps.Keys(w.pods)); len(uids) > 0 {
			l.story("stuck " + w.pods[rapid.SampledFrom(uids).Draw(l.T, "of")].Key())
		}
	case "restart":
		l.story("restart")
		l.story(l.pick("hearing", "deaf", "silent"))
	case "crash":
		l.crash()
	case "hears":
		l.story("hears")
	case "unclear":
		l.story(l.pick("path", "clear", "unclear "+string(notice.FromTargetState), "unclear "+string(notice.FromMaintenance)))
	case "server":
		l.story(l.pick("server", "down", "up", "crowded", "calm", "late 0s", "late 3s", "late 20s", "late 50s", "late 2m"))
	case "writes":
		l.story(l.pick("node", "unwritable", "writable"))
	case "budgets":
		l.story("budgets " + l.pick("budgets", "hidden", "seen", "unwatched", "watched"))
	case "person":
		l.cordonByHand()
	case "attached":
		l.story("attached " + l.pick("volumes", "", "v1", "v1 v2"))
	case "terminating":
		l.story("node " + l.pick("mark", "annotation terminating=r", "annotation terminating=asg-warm:i-1", "no-annotation terminating", "no-annotation terminating"))
	}
}

// hostile draws what no well-meaning client sends: ids, dates and lists of any kind.
func (l *life) hostile() {
	w := l.world
	text := func(what string) string {
		return l.pick(what, "", "e", strings.Repeat("e", 600), strings.Repeat("ä", 300), "a:b,c\x00\n\u2028\"<ä>", strings.Repeat("\x01", 300), rapid.StringN(0, 40, 2000).Draw(l.T, what+" drawn"))
	}
	encoded := func(of any) string {
		value, err := json.Marshal(of)
		if err != nil {
			l.Fatalf("%v: %v", of, err)
		}
		return string(value)
	}
	switch l.pick("of", "events", "request", "owner", "memory", "grace") {
	case "grace":
		l.story("pod shop/greedy-1 grace=" + l.pick("grace", "700000", "9223372036854775807"))
	case "events":
		date := func(what string) string {
			return l.pick(what, "", "-1", "1 Jan 9999 10:00:00 GMT", "1 Jan 1900 10:00:00 GMT", "1 Jan 1970 00:00:00 GMT", "1 Jan 2200 00:00:00 GMT", "31 Dec 2199 23:59:59 GMT",
				w.now.Add(time.Hour).Format("2 Jan 2006 15:04:05 GMT"))
		}
		event := map[string]string{"Code": l.pick("code", "instance-stop", "instance-retirement", text("unknown code")), "Description": text("description"), "State": "active"}
		var list []map[string]string
		id, notBefore, notAfter := text("id"), date("not before"), date("not after")
		for i := range rapid.SampledFrom([]int{1, 2, 40, 100}).Draw(l.T, "events") {
			event["EventId"], event["NotBefore"], event["NotAfter"] = fmt.Sprintf("%d%s", i, id), notBefore, notAfter
			list = append(list, maps.Clone(event))
		}
		notices, err := notice.ParseMaintenance(instance, encoded(list))
		l.Logf("%d events, %d notices, error %v", len(list), len(notices), err)
		w.notices = append(slices.DeleteFunc(w.notices, func(n notice.Notice) bool { return n.Source == notice.FromMaintenance }), notices...)
	case "request":
		date := l.pick("date", "", "-1", "9999-12-31T23:59:59Z", "1900-01-01T00:00:00Z", "2200-01-01T00:00:00Z", "2199-12-31T23:59:59Z", "1970-01-01T00:00:00Z")
		l.story("request " + encoded(map[string]string{"id": text("id"), "reason": text("reason"), "by": text("by"), "deadline": date, "at": date}))
	case "owner":
		l.story("pod shop/web-9 tolerates")
		uid, _ := w.find("shop/web-9")
		p := w.pods[uid]
		p.Owner = &metav1.OwnerReference{Kind: "ReplicaSet", Name: text("owner")}
		w.pods[uid] = p
	case "memory":
		key := l.pick("key", contract.AnnotationNotices, contract.AnnotationServed, contract.AnnotationDrainNotYet, contract.AnnotationDryRun)
		if key == contract.AnnotationServed || key == contract.AnnotationNotices { // with it goes what a reboot has fulfilled
			clear(w.fulfilled)
		}
		many := "[" + strings.Repeat("{},", 70) + "{}]"
		l.story("node annotation " + key + "=" + l.pick("value", "{", "null", many, strings.Repeat("x", 40<<10)))
	}
}

// dated is a request whose deadline is some minutes away.
func (l *life) dated(id string) string {
	in := time.Duration(rapid.IntRange(1, 900).Draw(l.T, "deadline in")) * time.Second
	return fmt.Sprintf(`{"id":%q,"deadline":%q}`, id, l.world.now.Add(in).Format(time.RFC3339))
}

// crash carries out a part of what was decided, and the agent dies of it.
func (l *life) crash() {
	w := l.world
	next := drain.Decide(w.view(), w.policy)
	if rapid.Bool().Draw(l.T, "written") {
		w.write(next)
	}
	for _, s := range next.Steps {
		if rapid.Bool().Draw(l.T, "asked") {
			w.evict(s)
		}
	}
	l.story("restart")
}

// cordonByHand is a person's doing. Where our mark stands on a node that somebody
// has just uncordoned, a cordon is ours until the agent has looked.
func (l *life) cordonByHand() {
	_, ours := l.world.node.Annotations[contract.AnnotationCordonedBy]
	switch {
	case l.world.node.Unschedulable:
		l.story("node uncordoned")
		l.human = false
	case !ours:
		l.story("node cordoned")
		l.human = true
	}
}

// endDrained asks for a drain that overrides what pods say, and expects its end.
func (l *life) endDrained() {
	w := l.world
	l.story("no-notice")
	l.story("budgets seen")
	l.story("returns no")
	id := contract.TerminateID(instance)
	if rapid.Bool().Draw(l.T, "by a deadline") && !w.answered("instance-stop") {
		l.story("notice instance-stop:end in 10m")
		id = noticeID("instance-stop:end")
	} else {
		l.story("terminated")
		l.story(fmt.Sprintf(`request {"id":%q,"kind":"asg","deadline":%q}`, id, w.now.Add(10*time.Minute).Format(time.RFC3339)))
	}
	w.run(l.T, 2*time.Hour)
	maps.DeleteFunc(w.pods, func(_ types.UID, p fleet.Pod) bool { return drainable.GraceOf(&p) > time.Hour }) // it has had its weeks
	for uid, p := range w.pods {                                                                              // a budget may have kept it until the deadline, and now its own word does
		if contract.SafeToEvictOf(p.Annotations) != "" || p.Owner == nil {
			p.Phase = fleet.PodSucceeded
			w.pods[uid] = p
		}
	}
	w.run(l.T, time.Hour)
	report, err := contract.ParseReport(w.node.Annotations[contract.AnnotationDrainReport])
	if err != nil {
		l.Fatalf("no report at the end: %v", err)
	}
	if report.Phase != contract.PhaseDrained || !report.AnswersTo(id) {
		l.Fatalf("the drain did not end: %s", report)
	}
	if !w.node.Unschedulable {
		l.Fatalf("drained, but schedulable")
	}
}

func (l *life) endBare() {
	w := l.world
	l.story("no-notice")
	l.story("no-request")
	w.run(l.T, time.Hour)
	l.bare()
}

// bare expects that nothing of ours is left, but for the record of what was cancelled, and that
// a person's cordon stands.
func (l *life) bare() {
	w := l.world
	for _, s := range servedOf(l.T, w) {
		if _, metadata := notice.OfMetadata(s.ID); !metadata || !s.Withdrawn && !s.Fulfilled {
			l.Fatalf("remembers %+v", s)
		}
	}
	delete(w.node.Annotations, contract.AnnotationServed)
	want := "bare"
	if l.human {
		want = "unschedulable"
	}
	if got := describeNode(w.node); len(got) != 1 || got[0] != want {
		l.Fatalf("left on the node: %q, want %s", got, want)
	}
}

// endDeaf: what stands is ended; from then on the metadata never answer again. The
// scaler asks in their place, with the ids that they would give, and takes it back:
// the node is as it was.
func (l *life) endDeaf() {
	w := l.world
	l.story("hears")
	l.story("clear")
	l.story("no-notice")
	l.story("no-request")
	w.run(l.T, 15*time.Minute) // a spot interruption is over some minutes after its time
	l.story("restart")         // and never heard again
	for _, id := range rapid.SliceOfN(rapid.SampledFrom([]string{contract.WarmID(instance), contract.TerminateID(instance)}), 1, 3).Draw(l.T, "asked for") {
		l.story("sees")
		l.story(fmt.Sprintf("pod shop/web-1 grace=%d", rapid.IntRange(0, 90).Draw(l.T, "grace")))
		l.story(fmt.Sprintf(`request {"id":%q,"kind":"asg","deadline":%q}`, id, w.now.Add(10*time.Minute).Format(time.RFC3339)))
		w.run(l.T, time.Duration(rapid.IntRange(0, 1200).Draw(l.T, "seconds"))*time.Second)
		if rapid.Bool().Draw(l.T, "restarted") {
			l.story("restart")
		}
		if !w.node.Unschedulable {
			l.Fatalf("a drain for %s was asked for, and the node is schedulable", id)
		}
		l.story("no-request")
		w.run(l.T, time.Minute)
	}
	l.bare()
}

func has(list []notice.Notice, id string) bool {
	return slices.ContainsFunc(list, func(n notice.Notice) bool { return n.ID == id })
}

func servedOf(t *rapid.T, w *world) contract.ServedList {
	list, err := contract.ParseServed(w.node.Annotations[contract.AnnotationServed])
	if err != nil {
		t.Fatalf("%v", err)
	}
	return list
}

package remove

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/uninstall"
)

const ns = "windlass-system"

// fate is what goes on with a node when people uninstall.
type fate string

var fates = []fate{"quiet", "unneeded", "scale-down", "marked", "request", "spot", "rebalance", "held", "going", "out-of-service", "dry-run"}

// nodeSpec is a node of a random world.
type nodeSpec struct {
	Fate            fate
	Agent           bool // alive
	Lost            bool // its kubelet is: pods there are never gone
	Cordon, Hold    bool // by people
	Exclude         bool // their label
	Began, Remember bool // the agent had begun; it remembers what it served
}

type spec struct {
	Nodes               []nodeSpec
	Runs, Hooks         bool
	Suspended           bool
	Foreign, Claimed    bool
	Notifier, CASStatus bool
	Narrow              bool // a group is suspended that is not read
}

func specs() *rapid.Generator[spec] {
	return rapid.Custom(func(t *rapid.T) spec {
		flip := func(name string) bool { return rapid.Bool().Draw(t, name) }
		s := spec{Runs: flip("runs"), Hooks: flip("hooks"), Suspended: flip("suspended"), Foreign: flip("foreign"), Claimed: flip("claimed"), Notifier: flip("notifier"), CASStatus: flip("status"), Narrow: flip("narrow")}
		for range rapid.IntRange(0, 4).Draw(t, "nodes") {
			s.Nodes = append(s.Nodes, nodeSpec{Fate: rapid.SampledFrom(fates).Draw(t, "fate"), Agent: flip("agent"), Lost: flip("lost"), Cordon: flip("cordon"), Hold: flip("hold"), Exclude: flip("exclude"), Began: flip("began"), Remember: flip("remember")})
		}
		return s
	})
}

// bed is a cluster and a group that go on while Windlass is removed.
type bed struct {
	*testing.T
	client *fake.Clientset
	spec   spec
	before map[string]corev1.Node // as they were without Windlass
	groups map[string]*fleet.Group
	ticks  int
	counts
	trouble
	cancel context.CancelFunc
	dead   bool // it was killed: nothing of it arrives any more
	wrong  []string
	// drains is how many ticks agents take, and timers when hooks began to hold, or were prolonged.
	drains int
	timers map[string]time.Time
	beats  int
	// retries are errors after which it went on.
	retries []error
	busy    bool // AWS does not answer the next heartbeat
}

// counts is what a remover did.
type counts struct{ writes, calls int }

// trouble is what comes in its way.
type trouble struct {
	kill, fail int  // after so many writes, and at which call; 0 for never
	done       bool // the call that fails is done all the same, where it writes to the cluster
}

func newBed(t *testing.T, s spec, of trouble) *bed {
	b := &bed{T: t, spec: s, before: map[string]corev1.Node{}, groups: map[string]*fleet.Group{}, trouble: of, drains: 3, timers: map[string]time.Time{}}
	web := &fleet.Group{Name: "web", Hooks: []fleet.Hook{{Name: "windlass", Transition: fleet.OnTerminate, Heartbeat: metav1.Duration{Duration: holds}}, {Name: "other", Transition: fleet.OnTerminate}}}
	if s.Suspended {
		web.Suspended = []string{"AZRebalance"}
	}
	if s.Claimed {
		web.Owner = "this"
	}
	foreign := &fleet.Group{Name: "foreign", Owner: "another", Suspended: []string{"AZRebalance"}, Hooks: web.Hooks}
	b.groups["web"] = web
	if s.Foreign {
		b.groups["foreign"] = foreign
	}
	objects := []runtime.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "this"}}}
	suspending := []string{`"web":"0001-01-01T00:00:00Z"`}
	if s.Foreign {
		suspending = append(suspending, `"foreign":"0001-01-01T00:00:00Z"`)
	}
	if s.Narrow {
		suspending = append(suspending, `"narrow":"0001-01-01T00:00:00Z"`)
	}
	state := `{"suspending":{` + strings.Join(suspending, ",") + `}}`
	for name, data := range map[string]string{contract.ConfigMapState: state, contract.ConfigMapStatus: "", "windlass-settings-abc": "", "peoples": ""} {
		objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID(name)}, Data: map[string]string{"state": data}})
	}
	cas := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: contract.ConfigMapClusterAutoscalerStatus, UID: "cas", Annotations: map[string]string{contract.AnnotationLastUpdated: "then", contract.AnnotationStatusWritten: "then"}}}
	if !s.CASStatus {
		cas.Annotations[contract.AnnotationLastUpdated] = "later, by somebody"
	}
	objects = append(objects, cas)
	objects = append(objects, b.programs()...)
	for n, spec := range s.Nodes {
		objects = append(objects, b.node(n, spec)...)
	}
	b.client = fake.NewClientset(objects...)
	b.client.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if b.dead {
			return true, nil, context.Canceled
		}
		fails, err := b.fails(), apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
		if fails && !b.done {
			return true, nil, err
		}
		if verb := a.GetVerb(); verb != "get" && verb != "list" && b.cancel != nil {
			b.wrote(a)
			if fails {
				_, _, _ = clienttesting.ObjectReaction(b.client.Tracker())(a)
			}
		}
		return fails, nil, err
	})
	return b
}

// wrote notes a write of the remover, and kills it after its last.
func (b *bed) wrote(a clienttesting.Action) {
	b.writes++
	if a.GetResource().Resource == "nodes" && b.runs() {
		b.wrong = append(b.wrong, "a Node was written while the scaler ran")
	}
	if patch, is := a.(clienttesting.PatchAction); is && a.GetResource().Resource == "nodes" {
		if at := strings.TrimPrefix(patch.GetName(), "n"); slices.Contains([]fate{"spot", "held", "going"}, b.spec.Nodes[at[0]-'0'].Fate) {
			b.wrong = append(b.wrong, "a Node was written whose instance goes: "+patch.GetName())
		}
	}
	if a.GetResource().Resource == "daemonsets" {
		b.agentsStop()
	}
	b.die()
}

// fails counts a call of the remover, and reports whether it is the one that fails.
func (b *bed) fails() bool {
	if b.cancel == nil {
		return false
	}
	b.calls++
	return b.calls == b.fail
}

// die kills the remover after its last write, which has been done.
func (b *bed) die() {
	if b.writes == b.kill {
		b.dead = true
		b.cancel()
	}
}

// agentsStop judges whether an agent has something to do.
func (b *bed) agentsStop() {
	for at, s := range b.spec.Nodes {
		o, err := b.client.Tracker().Get(corev1.SchemeGroupVersion.WithResource("nodes"), "", fmt.Sprintf("n%d", at))
		if err != nil || !s.Agent {
			continue
		}
		r, err := contract.ParseReport(o.(*corev1.Node).Annotations[contract.AnnotationDrainReport])
		if err == nil && r.Phase.Open() {
			b.wrong = append(b.wrong, fmt.Sprintf("the agents were stopped in the drain of n%d", at))
		}
	}
}

func (b *bed) runs() bool {
	d, err := b.client.Tracker().Get(appsv1.SchemeGroupVersion.WithResource("deployments"), ns, contract.AppScaler)
	return err == nil && *d.(*appsv1.Deployment).Spec.Replicas > 0
}

func (b *bed) programs() (objects []runtime.Object) {
	labels := func(app string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: ns, Name: app, UID: types.UID(app), Labels: map[string]string{contract.LabelAppName: app}}
	}
	replicas, none := int32(1), int32(0)
	scaler := &appsv1.Deployment{ObjectMeta: labels(contract.AppScaler), Spec: appsv1.DeploymentSpec{Replicas: &none}}
	holder, seconds := "", int32(15)
	if b.spec.Runs {
		scaler.Spec.Replicas, holder = &replicas, "windlass-scaler-0"
		objects = append(objects, b.pod(contract.AppScaler, "", true))
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: contract.LeaseScaler, UID: "lease"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &metav1.MicroTime{Time: time.Now()}}}
	objects = append(objects, scaler, lease, &appsv1.DaemonSet{ObjectMeta: labels(contract.AppAgent)})
	if b.spec.Notifier {
		objects = append(objects, &appsv1.Deployment{ObjectMeta: labels(contract.AppNotifier), Spec: appsv1.DeploymentSpec{Replicas: &replicas}})
	}
	return objects
}

func (b *bed) pod(app, node string, ready bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: app + node, Labels: map[string]string{contract.LabelAppName: app}}, Spec: corev1.PodSpec{NodeName: node}}
	if ready {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	controller := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: app, Controller: &controller}}
	return p
}

func (b *bed) node(at int, s nodeSpec) []runtime.Object {
	name, id := fmt.Sprintf("n%d", at), fmt.Sprintf("i-%d", at)
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", Labels: map[string]string{"role": "web"}, Annotations: map[string]string{"theirs": "yes"}}}
	n.Spec.ProviderID = "aws:///eu-west-1a/" + id
	n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
	n.Spec.Unschedulable = s.Cordon
	if s.Hold {
		n.Annotations[contract.AnnotationHold] = "true"
	}
	if s.Exclude {
		n.Labels[contract.LabelExcludeFromLoadBalancers] = "true"
	}
	b.before[name] = *n.DeepCopy()
	instance := fleet.Instance{ID: id, State: fleet.InService}
	now := time.Now()
	a := n.Annotations
	report := func(kind contract.Kind, phase contract.Phase, deadline time.Time, answers string) {
		a[contract.AnnotationDrainReport] = contract.Report{Answers: []string{answers}, Kind: kind, Phase: phase, Deadline: contract.At(deadline)}.String()
		b.close(&n, kind, answers)
	}
	request := func(kind contract.Kind, by string) {
		a[contract.AnnotationDrainRequest] = contract.Request{ID: "r", Kind: kind, By: by}.String()
		if s.Began {
			report(kind, contract.PhaseDraining, time.Time{}, "r")
		}
	}
	switch s.Fate {
	case "unneeded":
		n.Spec.Taints = append(n.Spec.Taints, contract.UnneededTaint(now), corev1.Taint{Key: contract.TaintFillLater, Effect: corev1.TaintEffectPreferNoSchedule}, contract.KubeProxyTaint())
	case "scale-down":
		request(contract.KindScaleDown, contract.AppScaler)
		a[contract.AnnotationDrainPermit] = "r"
	case "marked":
		request(contract.KindScaleDown, contract.AppScaler)
		a[contract.AnnotationTerminating] = "r"
	case "request":
		request(contract.KindRequest, "ann")
	case "spot":
		report(contract.KindSpot, contract.PhaseDraining, now.Add(2*time.Minute), "spot")
	case "rebalance":
		report(contract.KindRebalance, contract.PhaseBlocked, time.Time{}, "rebalance")
	case "held":
		instance.State = fleet.TerminatingWait
		b.timers[id] = now
		report(contract.KindASG, contract.PhaseBlocked, time.Time{}, "asg")
	case "going":
		instance.State = fleet.TerminatingProceed
		a[contract.AnnotationTerminating] = "r"
	case "out-of-service":
		a[contract.AnnotationOutOfService] = id
		n.Spec.Taints = append(n.Spec.Taints, contract.OutOfServiceTaint())
	case "dry-run":
		a[contract.AnnotationDryRun] = `{"would":["cordon"]}`
		a[contract.AnnotationServed] = "[]"
	}
	b.groups["web"].Instances = append(b.groups["web"].Instances, instance)
	objects := []runtime.Object{&n}
	if s.Agent || s.Began {
		objects = append(objects, b.pod(contract.AppAgent, name, s.Agent))
	}
	return objects
}

// close is what a drain does to a node.
func (b *bed) close(n *corev1.Node, kind contract.Kind, id string) {
	n.Spec.Taints = append(n.Spec.Taints, contract.DrainingTaint(kind))
	if !n.Spec.Unschedulable {
		n.Spec.Unschedulable = true
		n.Annotations[contract.AnnotationCordonedBy] = contract.Cordon{By: contract.AppAgent, Notice: id}.String()
	}
	if _, has := n.Labels[contract.LabelExcludeFromLoadBalancers]; !has {
		n.Labels[contract.LabelExcludeFromLoadBalancers] = "true"
		n.Annotations[contract.AnnotationExcluded] = id
	}
}

// holds is the timeout of the hook, after which AWS ends what still waits.
const holds = 40 * time.Second

// tick is what everybody else does between two observations.
func (b *bed) tick() {
	b.ticks++
	tracker := b.client.Tracker()
	pods, deployments, sets, nodes := corev1.SchemeGroupVersion.WithResource("pods"), appsv1.SchemeGroupVersion.WithResource("deployments"), appsv1.SchemeGroupVersion.WithResource("daemonsets"), corev1.SchemeGroupVersion.WithResource("nodes")
	if d, err := tracker.Get(deployments, ns, contract.AppScaler); err == nil && *d.(*appsv1.Deployment).Spec.Replicas == 0 {
		_ = tracker.Delete(pods, ns, contract.AppScaler) // or it is gone
		if l, err := tracker.Get(coordinationv1.SchemeGroupVersion.WithResource("leases"), ns, contract.LeaseScaler); err == nil {
			none := ""
			l.(*coordinationv1.Lease).Spec.HolderIdentity = &none
			b.must(tracker.Update(coordinationv1.SchemeGroupVersion.WithResource("leases"), l, ns))
		}
	}
	_, err := tracker.Get(sets, ns, contract.AppAgent)
	agents := err == nil
	web := b.groups["web"]
	for at, s := range b.spec.Nodes {
		name, id := fmt.Sprintf("n%d", at), fmt.Sprintf("i-%d", at)
		if !agents && s.Lost {
			b.doom(contract.AppAgent + name)
		} else if !agents {
			_ = tracker.Delete(pods, ns, contract.AppAgent+name) // or it is gone
		}
		o, err := tracker.Get(nodes, "", name)
		if err != nil {
			continue
		}
		n := o.(*corev1.Node)
		ends := s.Fate == "spot" && b.ticks > 8 || s.Fate == "held" && time.Since(b.timers[id]) > holds
		if r, err := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport]); s.Fate == "held" && ends && s.Agent && err == nil && r.Phase.Open() {
			b.wrong = append(b.wrong, "the hook timed out in the drain of "+name)
		}
		if i := slices.IndexFunc(web.Instances, func(i fleet.Instance) bool { return i.ID == id }); i >= 0 && (ends || web.Instances[i].State == fleet.TerminatingProceed) {
			web.Instances = slices.Delete(web.Instances, i, i+1)
			b.must(tracker.Delete(nodes, "", name))
			continue
		}
		if agents && s.Agent {
			b.agent(n, s)
			b.must(tracker.Update(nodes, n, ""))
		}
	}
}

// doom deletes a pod that nobody ends.
func (b *bed) doom(pod string) {
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	o, err := b.client.Tracker().Get(pods, ns, pod)
	if err != nil || o.(*corev1.Pod).DeletionTimestamp != nil {
		return
	}
	o.(*corev1.Pod).DeletionTimestamp = &metav1.Time{Time: time.Now()}
	b.must(b.client.Tracker().Update(pods, o, ns))
}

func (b *bed) must(err error) {
	if err != nil {
		b.Fatal(err)
	}
}

// agent does as one does.
func (b *bed) agent(n *corev1.Node, s nodeSpec) {
	a := n.Annotations
	r, err := contract.ParseReport(a[contract.AnnotationDrainReport])
	_, requested := a[contract.AnnotationDrainRequest]
	kind, tainted := contract.Draining(n.Spec.Taints)
	if err == nil {
		kind = r.Kind
	}
	switch {
	case !tainted && err != nil:
	case kind == contract.KindScaleDown || kind == contract.KindRequest:
		if requested || a[contract.AnnotationTerminating] != "" {
			return
		}
		if _, ours := a[contract.AnnotationCordonedBy]; ours {
			n.Spec.Unschedulable = false
		}
		if _, ours := a[contract.AnnotationExcluded]; ours {
			delete(n.Labels, contract.LabelExcludeFromLoadBalancers)
		}
		n.Spec.Taints = contract.WithoutTaint(n.Spec.Taints, contract.TaintDraining)
		for _, key := range []string{contract.AnnotationCordonedBy, contract.AnnotationExcluded, contract.AnnotationDrainReport, contract.AnnotationDrainPermit} {
			delete(a, key)
		}
		if s.Remember {
			a[contract.AnnotationServed] = `[{"id":"r","withdrawn":true}]`
		}
	case r.Phase.Open() && b.ticks >= b.drains:
		r.Phase = contract.PhaseDrained
		a[contract.AnnotationDrainReport] = r.String()
	}
}

// The verbs of AWS.

func (b *bed) call(what string) error {
	if b.dead {
		return context.Canceled
	}
	if b.fails() {
		return asg.ErrUnavailable
	}
	if b.runs() {
		b.wrong = append(b.wrong, what+" while the scaler ran")
	}
	b.writes++
	b.die()
	return nil
}

func (b *bed) Serves(_ context.Context, group, instance string) error {
	for _, i := range b.groups[group].Instances {
		if i.ID == instance && i.State == fleet.InService {
			return nil
		}
	}
	return asg.ErrChanged
}

func (b *bed) Complete(_ context.Context, w asg.Wait) error {
	if err := b.call("complete"); err != nil {
		return err
	}
	for n := range b.groups[w.Group].Instances {
		if i := &b.groups[w.Group].Instances[n]; i.ID == w.Instance && i.State == w.State {
			o, err := b.client.Tracker().Get(corev1.SchemeGroupVersion.WithResource("nodes"), "", "n"+strings.TrimPrefix(w.Instance, "i-"))
			if err == nil && !strings.Contains(o.(*corev1.Node).Annotations[contract.AnnotationDrainReport], string(contract.PhaseDrained)) {
				b.wrong = append(b.wrong, "a drain was cut off: "+w.Instance)
			}
			i.State = fleet.TerminatingProceed
			return nil
		}
	}
	return asg.ErrAlready
}

func (b *bed) Heartbeat(_ context.Context, w asg.Wait) error {
	if err := b.call("heartbeat"); err != nil {
		return err
	}
	b.beats++
	if b.busy {
		b.busy = false
		return asg.ErrUnavailable
	}
	b.timers[w.Instance] = time.Now()
	return nil
}

func (b *bed) Resume(_ context.Context, group, process string) error {
	if err := b.call("resume"); err != nil {
		return err
	}
	b.groups[group].Suspended = slices.DeleteFunc(b.groups[group].Suspended, func(p string) bool { return p == process })
	return nil
}

func (b *bed) Disclaim(_ context.Context, group string, owner types.UID) error {
	if err := b.call("disclaim"); err != nil {
		return err
	}
	if b.groups[group].Owner != owner {
		return asg.ErrChanged
	}
	b.groups[group].Owner = ""
	return nil
}

func (b *bed) DeleteHook(_ context.Context, group, hook string) error {
	if err := b.call("delete hook"); err != nil {
		return err
	}
	for _, i := range b.groups[group].Instances {
		if i.State == fleet.TerminatingWait {
			b.wrong = append(b.wrong, "the hook was deleted while it held "+i.ID)
		}
	}
	b.groups[group].Hooks = slices.DeleteFunc(slices.Clone(b.groups[group].Hooks), func(h fleet.Hook) bool { return h.Name == hook })
	return nil
}

func (b *bed) remover() (*Remover, *[]uninstall.Step) {
	var done []uninstall.Step
	return &Remover{
		Client: b.client, Groups: b, Namespace: ns, Stop: true,
		Options: uninstall.Options{Hooks: b.spec.Hooks, TerminationHooks: []string{"windlass"}, LaunchHooks: []string{"windlass"}},
		Read: func(context.Context) ([]fleet.Group, error) {
			defer b.tick()
			if b.fails() {
				return nil, asg.ErrThrottled
			}
			var groups []fleet.Group
			for _, name := range slices.Sorted(maps.Keys(b.groups)) {
				g := *b.groups[name]
				g.Instances = slices.Clone(g.Instances)
				groups = append(groups, g)
			}
			return groups, nil
		},
		Say:   func(s uninstall.Step) { done = append(done, s) },
		Retry: func(err error) { b.retries = append(b.retries, err) },
	}, &done
}

func (b *bed) run(r *Remover, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	b.cancel, b.dead = cancel, false
	defer func() { b.cancel, b.dead = nil, false }()
	return r.Run(ctx)
}

// rest is what is there of the cluster and of AWS.
func (b *bed) rest() map[string]any {
	rest := map[string]any{}
	nodes, err := b.client.CoreV1().Nodes().List(b.Context(), metav1.ListOptions{})
	b.must(err)
	for _, n := range nodes.Items {
		n.ResourceVersion = "1"
		n.ManagedFields = nil
		rest["node "+n.Name] = n
	}
	configs, err := b.client.CoreV1().ConfigMaps(ns).List(b.Context(), metav1.ListOptions{})
	b.must(err)
	var names []string
	for _, c := range configs.Items {
		names = append(names, c.Name)
	}
	leases, err := b.client.CoordinationV1().Leases(ns).List(b.Context(), metav1.ListOptions{})
	b.must(err)
	for _, l := range leases.Items {
		names = append(names, l.Name)
	}
	slices.Sort(names)
	rest["objects"] = names
	for name, g := range b.groups {
		rest["group "+name] = fmt.Sprint(g.Owner, g.Suspended, g.Hooks)
	}
	return rest
}

// TestUninstallLaw: in whatever state Windlass is, and wherever uninstall is killed, run again it leaves
// Nodes as they were before Windlass, a person's word as it is, the groups of others alone, and
// cuts no drain off; what it did was listed. One call that fails does not end it once it has begun.
func TestUninstallLaw(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := specs().Draw(rt, "world")
		whole, all := uninstalled(t, rt, s, trouble{})
		kill := rapid.IntRange(1, all.writes).Draw(rt, "kill")
		killed, _ := uninstalled(t, rt, s, trouble{kill: kill})
		if diff := cmp.Diff(whole, killed); diff != "" {
			rt.Fatalf("killed after write %d of %d (-whole +killed):\n%s", kill, all.writes, diff)
		}
		fail := rapid.IntRange(1, all.calls).Draw(rt, "fail")
		failed, _ := uninstalled(t, rt, s, trouble{fail: fail, done: rapid.Bool().Draw(rt, "done")})
		if diff := cmp.Diff(whole, failed); diff != "" {
			rt.Fatalf("call %d of %d failed (-whole +failed):\n%s", fail, all.calls, diff)
		}
	})
}

func uninstalled(t *testing.T, rt *rapid.T, s spec, of trouble) (rest map[string]any, all counts) {
	var failures []string
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, s, of)
		r, done := b.remover()
		w, err := r.Observe(t.Context())
		b.must(err)
		b.ticks, b.calls = 0, 0
		listed := map[string]bool{}
		for _, step := range uninstall.Steps(w, r.Options) {
			listed[step.ID()] = true
		}
		err = b.run(r, time.Hour)
		if of.fail > 0 && err != nil && b.writes > 0 {
			failures = append(failures, fmt.Sprintf("a call that failed once ended it: %v", err))
		}
		if of != (trouble{}) && err != nil {
			err = b.run(r, time.Hour)
		}
		if err != nil {
			failures = append(failures, err.Error())
		}
		for _, step := range *done {
			if !listed[step.ID()] {
				failures = append(failures, "done, and not listed: "+step.String())
			}
		}
		failures = append(failures, b.wrong...)
		failures = append(failures, b.judge()...)
		rest, all = b.rest(), b.counts
		before := b.writes
		if err := b.run(r, time.Hour); err != nil || b.writes != before {
			failures = append(failures, fmt.Sprintf("a second run wrote %d times: %v", b.writes-before, err))
		}
	})
	if len(failures) > 0 {
		rt.Fatalf("%+v: %s", of, strings.Join(failures, "\n"))
	}
	return rest, all
}

// judge compares what is left with what was there before Windlass.
func (b *bed) judge() (wrong []string) {
	nodes, err := b.client.CoreV1().Nodes().List(b.Context(), metav1.ListOptions{})
	b.must(err)
	for _, n := range nodes.Items {
		was := b.before[n.Name]
		n.ResourceVersion, n.ManagedFields = "1", nil
		if diff := cmp.Diff(was, n); diff != "" {
			wrong = append(wrong, diff)
		}
	}
	rest := b.rest()
	objects := []string{"peoples", "windlass-settings-abc"}
	if b.spec.Narrow {
		objects = append(objects, contract.ConfigMapState)
	}
	if !b.spec.CASStatus {
		objects = append([]string{contract.ConfigMapClusterAutoscalerStatus}, objects...)
	}
	slices.Sort(objects)
	if diff := cmp.Diff(objects, rest["objects"]); diff != "" {
		wrong = append(wrong, diff)
	}
	web := b.groups["web"]
	if len(web.Suspended) > 0 || web.Owner != "" || len(web.Hooks) != map[bool]int{true: 1, false: 2}[b.spec.Hooks] {
		wrong = append(wrong, fmt.Sprintf("left of the group: %+v", web))
	}
	if f := b.groups["foreign"]; f != nil && (f.Owner != "another" || len(f.Suspended) != 1 || len(f.Hooks) != 2) {
		wrong = append(wrong, fmt.Sprintf("another cluster's group was changed: %+v", f))
	}
	return wrong
}

// A program that runs is not stopped unasked, and nothing is written beside it.
func TestRefusesBesideARunningScaler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, spec{Runs: true, Nodes: []nodeSpec{{Fate: "unneeded"}}}, trouble{})
		r, _ := b.remover()
		r.Stop = false
		err := b.run(r, time.Minute)
		if !errors.Is(err, ErrRuns) || !strings.Contains(err.Error(), "kubectl -n windlass-system scale deployment windlass-scaler --replicas=0") || b.writes != 0 {
			t.Errorf("%d writes, error %v", b.writes, err)
		}
	})
}

// Windlass is in another namespace than the one that was given: nothing is done to what it works on.
func TestRefusesAnotherNamespace(t *testing.T) {
	for _, s := range []spec{{Runs: true}, {Nodes: []nodeSpec{{Fate: "scale-down", Agent: true}}}, {Suspended: true}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t, s, trouble{})
			r, _ := b.remover()
			r.Namespace = "elsewhere"
			err := b.run(r, time.Minute)
			if !errors.Is(err, ErrElsewhere) || !strings.Contains(err.Error(), "give --namespace=windlass-system") || b.writes != 0 {
				t.Errorf("%+v: %d writes, error %v", s, b.writes, err)
			}
		})
	}
}

// An agent that only says what it would do undoes no drain.
func TestDryRunUndoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, spec{Nodes: []nodeSpec{{Fate: "scale-down", Began: true}}}, trouble{})
		pod := b.pod(contract.AppAgent, "n0", true)
		pod.Spec.Containers = []corev1.Container{{Name: "agent", Args: []string{"--dry-run=false", "--dry-run"}}}
		b.must(b.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, ns))
		r, _ := b.remover()
		if err := b.run(r, time.Minute); err != nil {
			t.Error(err)
		}
		for _, wrong := range b.judge() {
			t.Error(wrong)
		}
	})
}

// What AWS denies is said with its command; all else goes, and the state that knows of it stays.
func TestDeniedIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, spec{Suspended: true, Claimed: true, Nodes: []nodeSpec{{Fate: "unneeded"}}}, trouble{})
		r, _ := b.remover()
		r.Groups = denied{b}
		err := b.run(r, time.Minute)
		if err == nil || !strings.Contains(err.Error(), "aws autoscaling resume-processes --auto-scaling-group-name web --scaling-processes AZRebalance") {
			t.Errorf("error %v", err)
		}
		if got := fmt.Sprint(b.rest()["objects"]); !strings.Contains(got, contract.ConfigMapState) || strings.Contains(got, contract.ConfigMapStatus) || b.groups["web"].Owner != "" {
			t.Errorf("left are %s, group %+v", got, b.groups["web"])
		}
	})
}

// A program that cannot be stopped is said with its command, and nothing else is done beside it.
func TestNothingIsDoneBesideAProgram(t *testing.T) {
	for kind, s := range map[string]spec{
		"deployments": {Runs: true, Claimed: true, Nodes: []nodeSpec{{Fate: "unneeded"}}},
		"daemonsets":  {Claimed: true, Hooks: true, Nodes: []nodeSpec{{Fate: "unneeded", Agent: true}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t, s, trouble{})
			b.client.PrependReactor("*", kind, func(a clienttesting.Action) (bool, runtime.Object, error) {
				verb := a.GetVerb()
				return verb == "patch" || verb == "delete", nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("no right"))
			})
			r, _ := b.remover()
			err := b.run(r, time.Minute)
			if err == nil || !strings.Contains(err.Error(), "no right; by hand: kubectl -n windlass-system ") || b.writes != 0 || b.groups["web"].Owner == "" {
				t.Errorf("%s: %d writes, group %+v, error %v", kind, b.writes, b.groups["web"], err)
			}
		})
	}
}

// What no further try mends ends it also when it has begun.
func TestRightsThatGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, spec{Runs: true}, trouble{})
		r, _ := b.remover()
		read, readings := r.Read, 0
		r.Read = func(ctx context.Context) ([]fleet.Group, error) {
			if readings++; readings > 1 {
				return nil, asg.ErrDenied
			}
			return read(ctx)
		}
		if err := b.run(r, time.Hour); !errors.Is(err, asg.ErrDenied) || readings != 2 {
			t.Errorf("%d readings, error %v", readings, err)
		}
	})
}

// Who is away is asked again, and what is waited for meanwhile goes on; where the time ends, the last
// error is said.
func TestTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, spec{Suspended: true, Claimed: true, Nodes: []nodeSpec{{Fate: "unneeded"}}}, trouble{})
		r, _ := b.remover()
		r.Groups = away{b}
		err := b.run(r, time.Minute)
		if err == nil || !strings.Contains(err.Error(), "not done in time") || !strings.Contains(err.Error(), "resume AZRebalance of group web: unavailable; by hand: aws autoscaling resume-processes") {
			t.Errorf("error %v", err)
		}
		if len(b.retries) != 1 {
			t.Errorf("it is said %d times: %v", len(b.retries), b.retries)
		}
	})
}

type away struct{ *bed }

func (away) Resume(context.Context, string, string) error { return asg.ErrUnavailable }

type denied struct{ *bed }

func (denied) Resume(context.Context, string, string) error { return asg.ErrDenied }

// Where no group is read at all, the flags are wrong: nothing is done.
func TestNoGroupIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, spec{Suspended: true, Nodes: []nodeSpec{{Fate: "unneeded"}}}, trouble{})
		r, _ := b.remover()
		r.Read = func(context.Context) ([]fleet.Group, error) { return nil, nil }
		err := b.run(r, time.Minute)
		if err == nil || !strings.Contains(err.Error(), "windlass-state names web: give the flags") || b.writes != 0 {
			t.Errorf("%d writes, error %v", b.writes, err)
		}
	})
}

// A drain that lasts for longer than its hook holds is not cut off: as the scaler does not run, heartbeats
// are sent here, as often as by it.
func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, spec{Nodes: []nodeSpec{{Fate: "held", Agent: true}, {Fate: "quiet", Agent: true}}}, trouble{})
		b.drains, b.busy = 150, true
		r, _ := b.remover()
		if err := b.run(r, time.Hour); err != nil || len(b.wrong) > 0 {
			t.Errorf("error %v, wrong %s", err, b.wrong)
		}
		// 300 s, one in 16 s, and one without an answer.
		if b.beats < 15 || b.beats > 22 {
			t.Errorf("%d heartbeats", b.beats)
		}
	})
}

// A drain that does not end is waited for, and then said, also where the time ends during a call.
func TestTimeIsOver(t *testing.T) {
	for _, slow := range []time.Duration{0, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t, spec{Nodes: []nodeSpec{{Fate: "held"}}}, trouble{})
			r, _ := b.remover()
			read := r.Read
			r.Read = func(ctx context.Context) ([]fleet.Group, error) {
				select {
				case <-time.After(slow):
					return read(ctx)
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			err := b.run(r, 10*time.Second)
			for _, want := range []string{"not done in time", "wait for Node n0: its drain is Blocked", "kubectl drain n0"} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("calls take %s: error %v, want %q", slow, err, want)
				}
			}
			if n := b.groups["web"].Instances[0]; n.State != fleet.TerminatingWait {
				t.Errorf("instance %+v", n)
			}
		})
	}
}

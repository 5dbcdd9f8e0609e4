package act

import (
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/plan/action"
)

// TestOnlyConfirmedInstancesEnd is law 15: whatever the Nodes and pods are when a decision
// is carried out, and whatever happens to them between its steps, an instance is ended or
// let go only if its Nodes are those that the decision named, closed and empty, but for
// completions that may find pods. Where all of that is so, it is ended.
func TestOnlyConfirmedInstancesEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &liveWorld{T: t}
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			w.turnOver()
			w.carryOut()
		}
	})
}

var (
	worldNames     = []string{"n1", "n2", "i-1.eu-west-1.compute.internal", "web-i-2", "i-12"}
	worldUIDs      = []types.UID{"u1", "u2"}
	worldProviders = []string{"", "aws:///a/i-1", "aws:///a/i-2", "aws:///b/i-1", "aws:///a/i-12", "k3s://i-2", "k3s://n1"}
	worldIDs       = []string{"scale-down:i-1:5", "never-ready:i-1"}
)

// liveWorld is an API server whose Nodes change as they like.
type liveWorld struct {
	*rapid.T
	client *fake.Clientset
	actor  *Actor
	groups *groups
	// between happens once, after the Nodes were listed.
	between func()
	// judged is what the judge found in the calls of a step.
	judged []string
}

// turnOver makes a world that has nothing to do with the one before.
func (w *liveWorld) turnOver() {
	var objects []runtime.Object
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(worldNames), 0, 3, rapid.ID[string]).Draw(w.T, "nodes") {
		objects = append(objects, w.draw(name))
		if rapid.IntRange(0, 3).Draw(w.T, "pod") == 0 {
			objects = append(objects, onNode("on-"+name, name))
		}
	}
	w.client = fake.NewClientset(objects...)
	w.client.PrependReactor("list", "pods", listByNode(w.client))
	w.client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		all := w.nodes()
		if w.between != nil {
			w.between()
		}
		return true, &corev1.NodeList{Items: all}, nil
	})
	w.groups = &groups{}
	w.actor = &Actor{
		Nodes: w.client.CoreV1().Nodes(), Pods: w.client.CoreV1(), Groups: w.groups, Events: &events{},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

func (w *liveWorld) draw(name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: rapid.SampledFrom(worldUIDs).Draw(w.T, "uid"), ResourceVersion: "1", Labels: map[string]string{}, Annotations: map[string]string{},
	}}
	n.Spec.ProviderID = rapid.SampledFrom(worldProviders).Draw(w.T, "provider")
	w.maybe("cordoned", func() { n.Spec.Unschedulable = true })
	w.maybe("tainted", func() { n.Spec.Taints = []corev1.Taint{contract.DrainingTaint(contract.KindScaleDown)} })
	w.maybe("dedicated", func() {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule})
	})
	w.maybe("ready", func() {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	})
	w.maybe("requested", func() {
		n.Annotations[contract.AnnotationDrainRequest] = contract.Request{ID: worldIDs[0], Kind: contract.KindScaleDown}.String()
	})
	w.maybe("marked", func() {
		n.Annotations[contract.AnnotationTerminating] = rapid.SampledFrom(worldIDs).Draw(w.T, "mark")
	})
	w.maybe("hostname", func() {
		n.Labels[corev1.LabelHostname] = rapid.SampledFrom([]string{"i-1", "i-2.ec2.internal", "web"}).Draw(w.T, "host")
	})
	w.maybe("young", func() { n.CreationTimestamp = metav1.Now() })
	w.maybe("csi", func() { n.Annotations[contract.AnnotationCSINodeID] = `{"ebs.csi.aws.com":"i-1"}` })
	return n
}

func (w *liveWorld) maybe(what string, do func()) {
	if rapid.IntRange(0, 3).Draw(w.T, what) == 0 {
		do()
	}
}

func (w *liveWorld) nodes() []corev1.Node {
	all, err := w.client.Tracker().List(corev1.SchemeGroupVersion.WithResource("nodes"), corev1.SchemeGroupVersion.WithKind("Node"), "")
	if err != nil {
		w.Fatal(err)
	}
	return all.(*corev1.NodeList).Items
}

func (w *liveWorld) pods(node string) bool {
	all, err := w.client.Tracker().List(corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithKind("Pod"), "")
	if err != nil {
		w.Fatal(err)
	}
	return slices.ContainsFunc(all.(*corev1.PodList).Items, func(p corev1.Pod) bool { return p.Spec.NodeName == node })
}

// decision is what somebody decided who saw another world, or this one.
type decision struct {
	instance string
	node     action.NodeRef
	id       string
	ends     bool // or lets go
	occupied bool
}

func (w *liveWorld) carryOut() {
	d := decision{
		instance: rapid.SampledFrom([]string{"i-1", "i-2"}).Draw(w.T, "instance"),
		id:       rapid.SampledFrom(worldIDs).Draw(w.T, "id"),
		ends:     rapid.Bool().Draw(w.T, "ends"),
	}
	d.occupied = !d.ends && rapid.Bool().Draw(w.T, "occupied")
	switch nodes := w.nodes(); {
	case len(nodes) > 0 && rapid.Bool().Draw(w.T, "by what is"):
		n := rapid.SampledFrom(nodes).Draw(w.T, "decided")
		d.node = action.NodeRef{Name: n.Name, UID: n.UID}
		if id := strings.TrimPrefix(strings.TrimPrefix(n.Spec.ProviderID, "aws:///a/"), "aws:///b/"); id != n.Spec.ProviderID {
			d.instance = id
		}
	case rapid.Bool().Draw(w.T, "none"):
	default:
		d.node = action.NodeRef{Name: rapid.SampledFrom(worldNames).Draw(w.T, "name"), UID: rapid.SampledFrom(worldUIDs).Draw(w.T, "of")}
	}
	mischief := rapid.SampledFrom([]string{"", "", "pod", "open"}).Draw(w.T, "between")
	w.between = func() {
		w.between = nil
		switch mischief {
		case "pod":
			if err := w.client.Tracker().Add(onNode("late", d.node.Name)); err != nil {
				w.Fatal(err)
			}
		case "open":
			w.open(d.node.Name)
		}
	}
	should := mischief == "" && w.ready(d)
	w.judged = nil
	w.groups.during = func(string) { w.judged = append(w.judged, w.judge(d)) }
	todo := action.Action(action.Terminate{Group: "web", Instance: d.instance, Node: d.node, ID: d.id})
	if !d.ends {
		todo = action.Complete{Group: "web", Instance: d.instance, Hook: "h", Node: d.node, Occupied: d.occupied}
	}
	r := w.actor.Do(w.Context(), []action.Action{todo})[0]
	for _, wrong := range w.judged {
		if wrong != "" {
			w.Fatalf("%T of %s (%s) was carried out: %s", todo, d.instance, d.node, wrong)
		}
	}
	if called := len(w.judged) > 0; called != (r.Outcome == Done) {
		w.Fatalf("%s, and %d calls", r.Outcome, len(w.judged))
	}
	if should && r.Outcome != Done {
		w.Fatalf("%T of %s (%s): %s: %v", todo, d.instance, d.node, r.Outcome, r.Err)
	}
}

func (w *liveWorld) open(name string) {
	for _, n := range w.nodes() {
		if n.Name != name {
			continue
		}
		n.Spec.Unschedulable, n.Spec.Taints = false, nil
		if err := w.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), &n, ""); err != nil {
			w.Fatal(err)
		}
	}
}

// judge returns what is wrong with an instance that is ended or let go at this moment; empty
// if nothing is.
func (w *liveWorld) judge(d decision) string {
	if wrong := w.mistaken(d); wrong != "" || d.node.Name == "" || d.occupied {
		return wrong
	}
	for _, n := range w.nodes() {
		if n.Name != d.node.Name {
			continue
		}
		drains := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == contract.TaintDraining })
		if !n.Spec.Unschedulable && !drains {
			return "its node is open"
		}
		if w.pods(n.Name) {
			return "a pod is on its node"
		}
		if d.ends && n.Annotations[contract.AnnotationTerminating] != d.id {
			return "its node does not bear the mark"
		}
	}
	return ""
}

// mistaken returns what is wrong with whose Nodes a decision goes by.
func (w *liveWorld) mistaken(d decision) string {
	var own []string
	word := regexp.MustCompile(`(^|[^A-Za-z0-9])` + d.instance + `($|[^A-Za-z0-9])`)
	for _, n := range w.nodes() {
		parts := strings.Split(n.Spec.ProviderID, "/")
		if parts[0] == "aws:" && parts[len(parts)-1] == d.instance {
			own = append(own, fmt.Sprintf("%s %s", n.Name, n.UID))
			continue
		}
		for _, text := range []string{n.Name, n.Spec.ProviderID, n.Labels[corev1.LabelHostname], n.Annotations[contract.AnnotationCSINodeID]} {
			if word.MatchString(text) {
				return "node " + n.Name + " may be it"
			}
		}
	}
	var named []string
	if d.node.Name == "" && slices.ContainsFunc(w.nodes(), func(n corev1.Node) bool {
		return !n.CreationTimestamp.IsZero() && !strings.HasPrefix(n.Spec.ProviderID, "aws:")
	}) {
		return "a node that has just registered may be it"
	}
	if d.node.Name != "" {
		named = append(named, fmt.Sprintf("%s %s", d.node.Name, d.node.UID))
	}
	if !slices.Equal(own, named) {
		return fmt.Sprintf("its nodes are %q", own)
	}
	return ""
}

// ready reports whether the decision may be carried out as the world is, or carrying it out
// puts right what speaks against it.
func (w *liveWorld) ready(d decision) bool {
	if w.mistaken(d) != "" {
		return false
	}
	for _, n := range w.nodes() {
		if n.Name != d.node.Name || d.occupied {
			continue
		}
		mark, marked := n.Annotations[contract.AnnotationTerminating]
		if w.pods(n.Name) || marked && d.ends && mark != d.id {
			return false
		}
		drains := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == contract.TaintDraining })
		if n.Spec.Unschedulable || drains {
			continue
		}
		_, asked := n.Annotations[contract.AnnotationDrainRequest]
		cameUp := len(n.Status.Conditions) > 0 && len(n.Spec.Taints) == 0
		if !d.ends || cameUp || marked || asked && d.id == worldIDs[0] {
			return false
		}
	}
	return true
}

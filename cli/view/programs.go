package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// ProgramPod is a pod of Windlass.
type ProgramPod struct {
	Name        string
	Node        string
	Image       string
	Ready       bool
	Why         string // it is not Ready
	HostNetwork bool
}

// Tag is the version that its image names: a tag, or else a digest.
func (p ProgramPod) Tag() string {
	name, digest, _ := strings.Cut(p.Image, "@")
	_, tag, _ := strings.Cut(name[strings.LastIndexByte(name, '/')+1:], ":")
	return cmp.Or(tag, digest)
}

// OtherProgram is one that scales or drains nodes, too.
type OtherProgram struct {
	program   *otherProgram
	Namespace string
	Owner     string
}

// otherProgram is how one is known, and what people do about it.
type otherProgram struct {
	key  string // its image's name, and the label's value
	name string // as the leader's page has it
	does string
	do   string
}

// otherPrograms are looked for in all namespaces.
var otherPrograms = []otherProgram{
	{"cluster-autoscaler", "Cluster Autoscaler", "it scales node groups, too", "scale its Deployment to 0, or set --alongside-cluster-autoscaler if the two have no node group in common"},
	{contract.AppScaler, "second Windlass", "it is another installation of Windlass", "remove one of the two, or name its namespace with --windlass-namespace"},
	{"karpenter", "Karpenter", "it launches and removes nodes of its own", "give its NodePools a taint that pods for groups do not tolerate"},
	{contract.AppTerminationHandler, contract.AppTerminationHandler, "it drains the same nodes", "remove it, and then its queue with the event rules and lifecycle hooks that feed it"},
	{"descheduler", "descheduler", "it evicts pods, and may move them to nodes that are being emptied", "leave HighNodeUtilization and LowNodeUtilization off"},
	{"kured", "kured", "it drains and reboots nodes by itself", "see that it waits for nodes that drain, or leave reboots to scheduled events"},
	{"draino", "draino", "it drains nodes by their conditions", "remove it"},
	{"k8s-spot-termination-handler", "spot termination handler", "it drains the same nodes", "remove it"},
	{"k8s-spot-rescheduler", "spot rescheduler", "it drains nodes on demand to fill spot ones", "remove it; --consolidate=balance does that"},
}

// nameLabels are those by which programs are known.
var nameLabels = []string{contract.LabelAppName, "app", "k8s-app"}

// OddAnnotation is one of a pod that cannot be read, so that it says nothing.
type OddAnnotation struct{ Pod, Text string }

// Guarded is a pod with its budgets.
type Guarded struct {
	Pod     string
	Budgets []string
}

// mostSeen bounds what is kept of all pods: tenants make them.
const mostSeen = 1000

// See keeps of a pod what a check asks for: a large cluster has more pods than need be in memory.
func (p *Preflight) See(pod *corev1.Pod, budgets *drainable.Budgets) {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	if pod.Namespace == p.System {
		switch pod.Labels[contract.LabelAppName] {
		case contract.AppScaler:
			p.Scalers = append(p.Scalers, programPod(pod))
			return
		case contract.AppAgent:
			p.Agents = append(p.Agents, programPod(pod))
			return
		case contract.AppNotifier:
			p.Notifiers = append(p.Notifiers, programPod(pod))
			return
		}
	}
	key := pod.Namespace + "/" + pod.Name
	for i := range otherPrograms {
		found := OtherProgram{&otherPrograms[i], pod.Namespace, ownerOf(pod)}
		if runs(pod, otherPrograms[i].key) && len(p.Others) < mostSeen && !slices.Contains(p.Others, found) {
			p.Others = append(p.Others, found)
		}
	}
	if text := odd(pod.Annotations); text != "" && len(p.Odd) < mostSeen {
		p.Odd = append(p.Odd, OddAnnotation{key, text})
	}
	guarded := fleet.Pod{Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels}
	if by := budgets.Guarding(&guarded); len(by) > 1 && len(p.Twice) < mostSeen {
		p.Twice = append(p.Twice, Guarded{key, by})
	}
}

func programPod(pod *corev1.Pod) ProgramPod {
	p := ProgramPod{Name: pod.Name, Node: pod.Spec.NodeName, HostNetwork: pod.Spec.HostNetwork}
	container := strings.TrimPrefix(pod.Labels[contract.LabelAppName], "windlass-") // as the manifests name it, beside sidecars
	for i, c := range pod.Spec.Containers {
		if i == 0 || c.Name == container {
			p.Image = c.Image
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			p.Ready, p.Why = c.Status == corev1.ConditionTrue, cmp.Or(c.Message, c.Reason)
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			p.Why = strings.TrimSuffix(w.Reason+": "+w.Message, ": ")
		}
	}
	if p.Node == "" {
		p.Why = "it has no node"
	}
	return p
}

// runs reports whether a pod is one of a program, by its labels or an image.
func runs(pod *corev1.Pod, key string) bool {
	for _, label := range nameLabels {
		if pod.Labels[label] == key {
			return true
		}
	}
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		image, _, _ := strings.Cut(c.Image, "@")
		for part := range strings.SplitSeq(image, "/") {
			part, _, _ = strings.Cut(part, ":")
			if part == key || part == key+"-amd64" || part == key+"-arm64" {
				return true
			}
		}
		return false
	})
}

// ownerOf is what makes a pod, as people find it.
func ownerOf(pod *corev1.Pod) string {
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil:
		return ref(KindPod, pod.Name)
	case owner.Kind == "ReplicaSet":
		return "deployment/" + strings.TrimSuffix(owner.Name, "-"+pod.Labels["pod-template-hash"])
	}
	return strings.ToLower(owner.Kind) + "/" + owner.Name
}

// odd says what of a pod's annotations cannot be read; empty where all can.
func odd(annotations map[string]string) string {
	var texts []string
	for _, key := range []string{contract.AnnotationSafeToEvict, contract.AnnotationForeignSafeToEvict} {
		value, set := annotations[key]
		if set && contract.SafeToEvictOf(map[string]string{key: value}) == contract.SafeUnsaid {
			texts = append(texts, fmt.Sprintf("annotation %s is %q, which says nothing: want true, false or on-completion", key, contract.Shorten(value, 40)))
		}
	}
	if _, err := contract.PodScaleUpDelay(annotations, 0); err != nil {
		texts = append(texts, err.Error())
	}
	if _, _, err := contract.DisruptionCost(annotations); err != nil {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

// hasWords reports whether a text has these words, one after the other: kube is none of kube-system.
func hasWords(text, words string) bool {
	spaced := func(text string) string {
		return " " + strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }), " ") + " "
	}
	return strings.Contains(spaced(text), spaced(words))
}

func (c *checker) others() {
	for _, o := range c.Others {
		if slices.ContainsFunc(c.Page.Others, func(text string) bool {
			return hasWords(text, o.program.name) && hasWords(text, o.Namespace)
		}) {
			continue // as the leader has found
		}
		c.find(SeverityWarning, AreaOthers, o.Owner, fmt.Sprintf("%s runs in namespace %s: %s", o.program.name, o.Namespace, o.program.does), o.program.do)
	}
}

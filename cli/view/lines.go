package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
)

// Stage is where a node stands, in a word.
type Stage string

// Stages of nodes, those first that people want to see. A drain that was asked for and has no
// report yet is Asked; one that waits for its turn is Waiting.
const (
	Failed      Stage = "failed"
	Blocked     Stage = "blocked"
	NotReady    Stage = "notready" // one word, as it is typed in a filter
	Draining    Stage = "draining"
	Asked       Stage = "requested"
	Waiting     Stage = "waiting"
	Drained     Stage = "drained"
	Terminating Stage = "terminating"
	Cordoned    Stage = "cordoned"
	Held        Stage = "held"
	Unneeded    Stage = "unneeded"
	Ready       Stage = "ready"
)

// Stages has all of them, in that order.
var Stages = []Stage{Failed, Blocked, NotReady, Draining, Asked, Waiting, Drained, Terminating, Cordoned, Held, Unneeded, Ready}

// Load is what pods request: thousandths of a core, and bytes.
type Load struct {
	CPU, Memory int64
	Pods        int
}

// NodeLine is a node in one line.
type NodeLine struct {
	Name, Group, Zone, Type string
	Created                 time.Time
	// CPU and Memory are what pods request, as a share of what they may.
	CPU, Memory  float64
	Pods         int
	PricePerHour float64
	Spot         bool
	Stage        Stage
	// Reason is that of the verdict; empty where there is none yet.
	Reason statuspage.Reason
	// Hold is the annotation that keeps it from being scaled down; empty without one.
	Hold string
	// Requested says that a request to drain it stands there.
	Requested bool
	// Drain is how far its drain is, where its stage is that of a drain.
	Drain Drain
}

// NewNodeLine sums up a node; the verdict is nil where there is none yet.
func NewNodeLine(n *corev1.Node, v *statuspage.Node, load Load) NodeLine {
	line := NodeLine{
		Name: n.Name, Zone: n.Labels[corev1.LabelTopologyZone], Type: n.Labels[corev1.LabelInstanceTypeStable], Created: n.CreationTimestamp.Time,
		Pods: load.Pods,
		CPU:  ratio(float64(load.CPU), float64(n.Status.Allocatable.Cpu().MilliValue())), Memory: ratio(float64(load.Memory), n.Status.Allocatable.Memory().AsApproximateFloat64()),
	}
	if v != nil {
		line.Group, line.PricePerHour, line.Spot, line.Reason = v.Group, v.PricePerHour, v.Spot, v.Reason
	}
	line.Hold, _ = contract.Held(n.Annotations)
	_, line.Requested = n.Annotations[contract.AnnotationDrainRequest]
	line.Stage, line.Drain = stageOf(n, line)
	return line
}

// stageOf says where a node stands; what weighs more comes first.
func stageOf(n *corev1.Node, line NodeLine) (Stage, Drain) {
	d, draining := drainOf(n, line.Group)
	if !draining {
		d = Drain{}
	}
	_, terminating := n.Annotations[contract.AnnotationTerminating]
	_, unneeded, _ := contract.Unneeded(n.Spec.Taints)
	switch {
	case terminating:
		return Terminating, d
	case draining:
		return drainStage(d.Phase), d
	case !ready(n):
		return NotReady, d
	case n.Spec.Unschedulable:
		return Cordoned, d
	case line.Hold != "":
		return Held, d
	case unneeded:
		return Unneeded, d
	}
	return Ready, d
}

func drainStage(phase contract.Phase) Stage {
	switch phase {
	case Unanswered:
		return Asked
	case contract.PhaseWaiting:
		return Waiting
	case contract.PhaseBlocked:
		return Blocked
	case contract.PhaseDrained:
		return Drained
	case contract.PhaseFailed:
		return Failed
	}
	return Draining
}

func ready(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// ShortName is the host of an EC2 private DNS name; other names stay.
func ShortName(name string) string {
	host, domain, _ := strings.Cut(name, ".")
	if strings.HasSuffix(domain, "internal") {
		return host
	}
	return name
}

// PendingLine are pending pods with the same verdict, in one line.
type PendingLine struct {
	Count int
	// Example is one of them, as namespace/name.
	Example string
	Reason  statuspage.Reason
	// Group is the one that grows for them.
	Group   string
	Message string
}

// NewPendingLines sums up the pods that have no node now: those with a verdict by it, the most
// first, and those without. Verdicts are some seconds old, and leave out names where they are many.
func NewPendingLines(v statuspage.Verdicts, pods []string) []PendingLine {
	lines := []PendingLine{}
	waits := make(map[string]bool, len(pods))
	for _, name := range pods {
		waits[name] = true
	}
	unnamed := 0
	for i := range v.Pods {
		class := &v.Pods[i]
		more := class.Count - len(class.Names)
		line := PendingLine{Count: more, Reason: class.Reason, Group: class.Group, Message: class.Message()}
		for _, name := range class.Names {
			if waits[name] {
				line.Count++
				line.Example = cmp.Or(line.Example, name)
				delete(waits, name)
			}
		}
		if line.Example != "" {
			lines, unnamed = append(lines, line), unnamed+more
		}
	}
	slices.SortStableFunc(lines, func(a, b PendingLine) int {
		return cmp.Or(b.Count-a.Count, cmp.Compare(a.Example, b.Example))
	})
	if rest := len(waits) - unnamed; rest > 0 {
		first := slices.Min(slices.Collect(maps.Keys(waits)))
		lines = append(lines, PendingLine{Count: rest, Example: first, Message: "there is no verdict on them yet"})
	}
	return lines
}

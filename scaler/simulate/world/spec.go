package world

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/pkg/fleet"
)

// Spec is what a cluster is made of.
type Spec struct {
	// Prices is what prices they are, and of which day.
	Prices string `json:"prices,omitempty"`
	// Boot is from the launch call to a Ready node, Shutdown from the termination call until
	// the Node is gone.
	Boot     metav1.Duration `json:"boot"`
	Shutdown metav1.Duration `json:"shutdown,omitempty"`
	// Interval is how far evaluations are apart at the least, a second where it is zero. The
	// scaler's own may be 50 ms apart; a longer interval costs less to play.
	Interval metav1.Duration `json:"interval,omitempty"`
	// LaunchFailures is the share of launch calls that AWS has no capacity for.
	LaunchFailures float64 `json:"launchFailures,omitempty"`
	// Interruptions is how many spot interruptions a node of a spot group has in an hour.
	Interruptions float64 `json:"interruptions,omitempty"`
	Scheduler     Scores  `json:"scheduler"`
	Groups        []Group `json:"groups"`
}

// Scores are the weights of kube-scheduler's plugins that prefer nodes. Its defaults are 1, 1,
// 3 and 2.
type Scores struct {
	LeastAllocated     int64 `json:"leastAllocated"`
	BalancedAllocation int64 `json:"balancedAllocation"`
	TaintToleration    int64 `json:"taintToleration"`
	PodTopologySpread  int64 `json:"podTopologySpread"`
}

// Group is an Auto Scaling group.
type Group struct {
	Name  string   `json:"name"`
	Type  string   `json:"type"`
	Price float64  `json:"price"`
	Spot  bool     `json:"spot,omitempty"`
	Min   int      `json:"min,omitempty"`
	Max   int      `json:"max"`
	Zones []string `json:"zones"`
	// Unsteered groups grow by SetDesiredCapacity; Auto Scaling chooses the zone.
	Unsteered   bool                `json:"unsteered,omitempty"`
	Labels      map[string]string   `json:"labels,omitempty"`
	Taints      []corev1.Taint      `json:"taints,omitempty"`
	Allocatable corev1.ResourceList `json:"allocatable"`
}

//go:embed default.yaml
var defaultSpec []byte

// Default is the world that is part of the program.
func Default() Spec {
	s, err := Parse(defaultSpec)
	if err != nil {
		panic(fmt.Sprintf("default.yaml: %v", err)) // a part of the program, which a test reads
	}
	return s
}

// Parse reads a world. Errors name the field.
func Parse(text []byte) (Spec, error) {
	var s Spec
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err == nil {
		err = fleet.CheckQuantities[Spec](asJSON)
	}
	if err == nil {
		err = yaml.UnmarshalStrict(text, &s)
	}
	if err != nil {
		return Spec{}, fmt.Errorf("reading the world: %w", err)
	}
	return s, s.check()
}

func (s Spec) check() error {
	var wrong []error
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if s.Boot.Duration <= 0 || s.Shutdown.Duration < 0 {
		add("boot is %s and shutdown %s: want more than 0, and not less", s.Boot.Duration, s.Shutdown.Duration)
	}
	if s.Interval.Duration < 0 || s.Interval.Duration > time.Hour {
		add("interval is %s: want up to an hour", s.Interval.Duration)
	}
	if f := s.LaunchFailures; !(f >= 0 && f < 1) {
		add("launchFailures is %v: want a share of at least 0 and less than 1", f)
	}
	if r := s.Interruptions; !(r >= 0 && r <= 60) {
		add("interruptions is %v: want 0 to 60 an hour", r)
	}
	for name, w := range map[string]int64{"leastAllocated": s.Scheduler.LeastAllocated, "balancedAllocation": s.Scheduler.BalancedAllocation, "taintToleration": s.Scheduler.TaintToleration, "podTopologySpread": s.Scheduler.PodTopologySpread} {
		if w < 0 || w > 100 {
			add("scheduler.%s is %d: want 0 to 100", name, w)
		}
	}
	known := map[string]bool{}
	for _, g := range s.Groups {
		switch {
		case g.Name == "" || strings.Contains(g.Name, ":") || known[g.Name]:
			add("group %q: want a name of its own, without a colon", g.Name)
		case g.Type == "":
			add("group %s has no type", g.Name)
		case !(g.Price > 0):
			add("group %s costs %v: want US dollars an hour, more than 0", g.Name, g.Price)
		case g.Min < 0 || g.Max < g.Min || g.Max == 0:
			add("group %s has %d to %d nodes: want a maximum above 0 and no less than the minimum", g.Name, g.Min, g.Max)
		case len(g.Zones) == 0:
			add("group %s has no zones", g.Name)
		case g.Allocatable.Cpu().Sign() <= 0 || g.Allocatable.Memory().Sign() <= 0 || g.Allocatable.Pods().Sign() <= 0:
			add("group %s: want cpu, memory and pods in allocatable", g.Name)
		}
		known[g.Name] = true
	}
	return errors.Join(wrong...)
}

// Shapes are the groups as the scaler reads them.
func (s Spec) Shapes() []fleet.Group {
	var out []fleet.Group
	for _, g := range s.Groups {
		out = append(out, g.group())
	}
	return out
}

// group is what the scaler reads of it.
func (g Group) group() fleet.Group {
	out := fleet.Group{
		Name: g.Name, Min: g.Min, Max: g.Max, Desired: g.Min, Zones: g.Zones, Spot: g.Spot, Synchronous: !g.Unsteered, Template: "lt-" + g.Name + ":1",
	}
	for _, zone := range g.Zones {
		labels := map[string]string{corev1.LabelInstanceTypeStable: g.Type, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}
		maps.Copy(labels, g.Labels)
		out.NodeTemplates = append(out.NodeTemplates, fleet.NodeTemplate{
			Zone: zone, InstanceType: g.Type, Allocatable: g.Allocatable, Capacity: g.Allocatable, Labels: labels, Taints: g.Taints, PricePerHour: g.Price,
		})
	}
	return out
}

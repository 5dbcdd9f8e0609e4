package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/laws"
	"windlass.dev/windlass/e2e/world"
	"windlass.dev/windlass/pkg/contract"
)

// undrained lists the nodes that people have asked to drain and that are not
// drained.
func (s *soak) undrained() ([]string, error) {
	nodes, err := s.nodes()
	var found []string
	for _, n := range nodes {
		asked := n.Annotations[contract.AnnotationDrainRequest]
		if asked == "" || !ready(n) {
			continue
		}
		r, wrong := contract.ParseRequest(asked)
		if wrong != nil || r.By != "" {
			continue // by the scaler, which has a mind of its own
		}
		report := n.Annotations[contract.AnnotationDrainReport]
		if told, wrong := contract.ParseReport(report); wrong == nil && told.Phase == contract.PhaseDrained && told.AnswersTo(r.ID) {
			continue
		}
		found = append(found, fmt.Sprintf("%s is asked to drain (%s) and says %q", n.Name, r.ID, report))
	}
	return found, err
}

// unrest lists what still moves, and what is left over.
func (s *soak) unrest() ([]string, error) {
	pods, err := s.w.Client.CoreV1().Pods(metav1.NamespaceDefault).List(s.ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	nodes, err := s.nodes()
	if err != nil {
		return nil, err
	}
	found := slices.Concat(restlessPods(pods.Items), s.restlessGroups())
	there := map[string]bool{}
	for _, n := range nodes {
		there[n.Name] = true
		found = append(found, s.restless(n)...)
	}
	for _, i := range s.serving(append(mortal, steady)...) {
		if !there[i.PrivateDNSName] {
			found = append(found, named(i)+" serves and has no Node")
		}
	}
	slices.Sort(found)
	return found, nil
}

func restlessPods(pods []corev1.Pod) []string {
	var found []string
	for _, p := range pods {
		switch {
		case p.DeletionTimestamp != nil:
			found = append(found, fmt.Sprintf("pod %s on %q is ending", p.Name, p.Spec.NodeName))
		case p.Status.Phase != corev1.PodRunning:
			found = append(found, fmt.Sprintf("pod %s is %s on %q", p.Name, p.Status.Phase, p.Spec.NodeName))
		}
	}
	return found
}

// restlessGroups lists groups that change, and hooks that hold an instance.
func (s *soak) restlessGroups() []string {
	var found []string
	for _, g := range s.w.AWS.Groups() {
		if len(g.Instances) != g.Desired {
			found = append(found, fmt.Sprintf("group %s has %d instances and wants %d", g.Spec.Name, len(g.Instances), g.Desired))
		}
		for _, i := range slices.Concat(g.Instances, g.Warm) {
			waits := len(i.Waiting) > 0
			if i.LifecycleState != fakeaws.InService && !i.LifecycleState.Warm() || waits {
				found = append(found, fmt.Sprintf("%s is %s, held by %d hooks", named(i), i.LifecycleState, len(i.Waiting)))
			}
		}
	}
	return found
}

// restless lists what is wrong with a node: it does not serve, or carries what is
// ours although nothing stands that it could be for.
func (s *soak) restless(n *corev1.Node) []string {
	i, known := s.w.Instance(n.Name)
	if !known || i.LifecycleState.Warm() {
		return nil // one of the fixed nodes, or in the pool
	}
	var found []string
	if !ready(n) {
		found = append(found, n.Name+" is not Ready")
	}
	if s.stands(i) {
		return append(found, "a notice stands for "+named(i))
	}
	if _, draining := contract.Draining(n.Spec.Taints); draining {
		found = append(found, n.Name+" carries the taint of a drain")
	}
	if n.Spec.Unschedulable {
		found = append(found, fmt.Sprintf("%s is cordoned, by %q", n.Name, n.Annotations[contract.AnnotationCordonedBy]))
	}
	if _, excluded := n.Labels[contract.LabelExcludeFromLoadBalancers]; excluded {
		found = append(found, n.Name+" is excluded from load balancers")
	}
	for _, key := range slices.Sorted(maps.Keys(n.Annotations)) {
		if strings.HasPrefix(key, contract.Prefix) && !remembered(key, n.Annotations[key]) {
			found = append(found, fmt.Sprintf("%s carries %s=%s", n.Name, key, n.Annotations[key]))
		}
	}
	return found
}

// remembered reports whether an annotation is the agent's bounded memory of notices
// that are over.
func remembered(key, value string) bool {
	served, err := contract.ParseServed(value)
	return key == contract.AnnotationServed && err == nil && len(served) <= contract.MostServed
}

// stands reports whether AWS has a notice for an instance.
func (s *soak) stands(i fakeaws.Instance) (stands bool) {
	_ = s.w.AWS.With(func(c *cloud.Cloud, _ time.Time) error { // it never fails
		_, n, ok := c.Metadata(i.ID)
		stands = ok && (n.SpotAction != "" || !n.Rebalance.IsZero() || len(n.Scheduled) > 0)
		return nil
	})
	return stands
}

func (s *soak) nodes() ([]*corev1.Node, error) {
	list, err := s.w.Client.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	nodes := make([]*corev1.Node, len(list.Items))
	for i := range list.Items {
		nodes[i] = &list.Items[i]
	}
	return nodes, nil
}

func ready(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// census counts what there is at rest. The scaler's memory should not grow.
func (s *soak) census() string {
	nodes, _ := s.nodes()
	text := fmt.Sprintf("%d nodes; %s has", len(nodes), contract.ConfigMapState)
	memory, err := s.w.Client.CoreV1().ConfigMaps(world.Namespace).Get(s.ctx, contract.ConfigMapState, metav1.GetOptions{})
	if err != nil {
		return text + " nothing: " + err.Error()
	}
	for _, value := range memory.Data {
		var parts map[string]json.RawMessage
		if err := json.Unmarshal([]byte(value), &parts); err != nil {
			return text + " " + value
		}
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			var list map[string]json.RawMessage
			if json.Unmarshal(parts[name], &list) == nil { // else a moment
				text += fmt.Sprintf(" %d %s", len(list), name)
			}
		}
	}
	return text
}

// judge says what came of it all; an error means that something is wrong with the
// product.
func (s *soak) judge() error {
	before := time.Now()
	if s.hasty {
		before = before.Add(-hindsight) // there was no rest in which the watch could catch up
	}
	s.look(before)
	if audit, err := s.audit.Requests(); err == nil {
		for _, b := range laws.Rights(audit, s.outages) {
			s.breach(b)
		}
		s.say("--- %d requests in the audit log, %d outages of the API server", len(audit), len(s.outages))
	}
	var done []string
	for _, k := range s.stream.kinds {
		done = append(done, fmt.Sprintf("%s %d", k.name, s.done[k.name]))
	}
	s.say("--- done: %s", strings.Join(done, ", "))
	grown := 0
	for _, g := range s.lives.growths(s.duration / 2) {
		mark := ""
		if g.tooMuch() {
			mark = "  GREW"
			grown++
		}
		s.say("memory of %s%s", g, mark)
	}
	s.say("--- processes sampled: %v", s.lives.runs())
	if len(s.breaches) > 0 || grown > 0 {
		return fmt.Errorf("%d laws broken, %d programs grew", len(s.breaches), grown)
	}
	s.say("--- no law was broken, no program grew")
	return nil
}

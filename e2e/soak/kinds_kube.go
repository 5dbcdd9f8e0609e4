package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/pkg/contract"
)

// request asks for a drain as people do, and withdraws that later.
func request(s *soak, dice *rand.Rand) (effect, error) {
	i, ok := one(dice, s.serving(append(mortal, steady)...))
	if !ok {
		return effect{}, nil
	}
	node, word := i.PrivateDNSName, fmt.Sprintf("soak-%d", dice.IntN(1000))
	if n, err := s.node(node); err != nil || n.Annotations[contract.AnnotationDrainRequest] != "" {
		return effect{}, err
	}
	return effect{
		what:  fmt.Sprintf("somebody asks %s to drain: %s", node, word),
		lasts: between(dice, 2*time.Second, 60*time.Second),
		end:   func() error { return s.annotate(node, contract.AnnotationDrainRequest, nil) },
	}, s.annotate(node, contract.AnnotationDrainRequest, &word)
}

// cordon is a person's, of a node that nobody has cordoned. It counts only if it
// was the one that did.
func cordon(s *soak, dice *rand.Rand) (effect, error) {
	i, ok := one(dice, s.serving(append(mortal, steady)...))
	if !ok {
		return effect{}, nil
	}
	n, err := s.node(i.PrivateDNSName)
	if err != nil || n.Spec.Unschedulable {
		return effect{}, err
	}
	cordoned, err := s.setUnschedulable(n.Name, n.ResourceVersion, true)
	if apierrors.IsConflict(err) {
		return effect{}, nil
	}
	if err != nil {
		return effect{}, err
	}
	s.watch.cordoned(cordoned)
	return effect{
		what:  "somebody cordons " + n.Name,
		lasts: between(dice, 5*time.Second, 60*time.Second),
		end: func() error {
			s.watch.uncordoned(n.Name)
			_, err := s.setUnschedulable(n.Name, "", false)
			return err
		},
	}, nil
}

func hold(s *soak, dice *rand.Rand) (effect, error) {
	i, ok := one(dice, s.serving(mortal...))
	if !ok {
		return effect{}, nil
	}
	node := i.PrivateDNSName
	return effect{
		what:  "somebody holds " + node,
		lasts: between(dice, 10*time.Second, 40*time.Second),
		end:   func() error { return s.annotate(node, contract.AnnotationHold, nil) },
	}, s.annotate(node, contract.AnnotationHold, ptr.To("soak"))
}

func scale(s *soak, dice *rand.Rand) (effect, error) {
	w, _ := one(dice, s.workloads)
	replicas := dice.IntN(w.most + 1)
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	return effect{what: fmt.Sprintf("%s has %d replicas", w.name, replicas)}, s.patchDeployment(w.name, patch)
}

func rollout(s *soak, dice *rand.Rand) (effect, error) {
	w, _ := one(dice, s.workloads)
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"soak/rollout":"%d"}}}}}`, dice.Uint32())
	return effect{what: w.name + " is rolled out anew"}, s.patchDeployment(w.name, patch)
}

func (s *soak) patchDeployment(name, patch string) error {
	_, err := s.w.Client.AppsV1().Deployments(metav1.NamespaceDefault).Patch(s.ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// closeBudget lets no pod of a workload go for a while.
func closeBudget(s *soak, dice *rand.Rand) (effect, error) {
	name, _ := one(dice, budgeted(s.workloads))
	return effect{
		what:     "the budget of " + name + " lets nobody go",
		lasts:    between(dice, 5*time.Second, 40*time.Second),
		end:      func() error { return s.setBudget(name, "1") },
		obstacle: true,
	}, s.setBudget(name, "0")
}

// setBudget says how many pods of a workload may be unavailable: a number, or a
// share in quotes.
func (s *soak) setBudget(name, unavailable string) error {
	patch := []byte(`{"spec":{"maxUnavailable":` + unavailable + `}}`)
	_, err := s.w.Client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceDefault).Patch(s.ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// naked is a pod of nobody that says itself when it may be evicted.
func naked(s *soak, dice *rand.Rand) (effect, error) {
	group, _ := one(dice, append(mortal, steady))
	word, _ := one(dice, []string{"false", "on-completion", "true"})
	pod := bare(fmt.Sprintf("naked-%d", dice.Uint32()), group)
	pod.Annotations = map[string]string{contract.AnnotationSafeToEvict: word}
	return effect{
		what:     fmt.Sprintf("pod %s for %s, safe to evict: %s", pod.Name, group, word),
		lasts:    between(dice, 10*time.Second, 40*time.Second),
		end:      func() error { return s.deletePod(pod.Name) },
		obstacle: true,
	}, s.createPod(pod)
}

// gate is a pod that is not to be scheduled until a gate is lifted.
func gate(s *soak, dice *rand.Rand) (effect, error) {
	group, _ := one(dice, mortal)
	pod := bare(fmt.Sprintf("gated-%d", dice.Uint32()), group)
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "soak/gate"}}
	lasts, serves := between(dice, 2*time.Second, 20*time.Second), between(dice, 5*time.Second, 30*time.Second)
	return effect{
		what:  fmt.Sprintf("pod %s for %s waits behind a gate", pod.Name, group),
		lasts: lasts,
		end: func() error {
			if err := s.openGate(pod.Name); err != nil {
				return err
			}
			s.later(effect{what: pod.Name + " goes", lasts: serves, end: func() error { return s.deletePod(pod.Name) }, obstacle: true})
			return nil
		},
	}, s.createPod(pod)
}

// openGate lets the scheduler see a pod.
func (s *soak) openGate(pod string) error {
	patch := []byte(`{"spec":{"schedulingGates":null}}`)
	_, err := s.w.Client.CoreV1().Pods(metav1.NamespaceDefault).Patch(s.ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func bare(name, group string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{labelGroup: group}, TerminationGracePeriodSeconds: ptr.To[int64](2),
			Containers: []corev1.Container{{Name: "app", Image: "app", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
			}}},
		},
	}
}

func (s *soak) createPod(pod *corev1.Pod) error {
	_, err := s.w.Client.CoreV1().Pods(metav1.NamespaceDefault).Create(s.ctx, pod, metav1.CreateOptions{})
	return err
}

func (s *soak) deletePod(name string) error {
	err := s.w.Client.CoreV1().Pods(metav1.NamespaceDefault).Delete(s.ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func deleteNode(s *soak, dice *rand.Rand) (effect, error) {
	i, ok := one(dice, s.serving(mortal...))
	if !ok {
		return effect{}, nil
	}
	return effect{what: "somebody deletes the Node " + named(i)}, s.w.Client.CoreV1().Nodes().Delete(s.ctx, i.PrivateDNSName, metav1.DeleteOptions{})
}

func (s *soak) node(name string) (*corev1.Node, error) {
	return s.w.Client.CoreV1().Nodes().Get(s.ctx, name, metav1.GetOptions{})
}

// annotate sets an annotation of a Node, or removes it; a Node that is gone has
// none.
func (s *soak) annotate(node, key string, value *string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
	if err != nil {
		return err
	}
	_, err = s.w.Client.CoreV1().Nodes().Patch(s.ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
	if value == nil && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// setUnschedulable cordons a Node at a version, or uncordons it at any; one that is
// gone needs no uncordoning.
func (s *soak) setUnschedulable(node, version string, unschedulable bool) (*corev1.Node, error) {
	patch := `{"spec":{"unschedulable":` + strconv.FormatBool(unschedulable) + `}}`
	if version != "" {
		patch = fmt.Sprintf(`{"metadata":{"resourceVersion":%q},%s`, version, patch[1:])
	}
	n, err := s.w.Client.CoreV1().Nodes().Patch(s.ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if !unschedulable && apierrors.IsNotFound(err) {
		return nil, nil
	}
	return n, err
}

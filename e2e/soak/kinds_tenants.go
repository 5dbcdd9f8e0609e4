package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/e2e/world"
	"windlass.dev/windlass/pkg/contract"
)

// tenant is the namespace of somebody who may make pods and buffers there, and nothing
// else.
const tenant = "tenant"

// createWorkers is how many pods are created at once.
const createWorkers = 16

// tenantPods makes many small pods none of which is like another: half of them keep away
// from themselves alone, the others want nodes that nobody has.
func tenantPods(s *soak, dice *rand.Rand) (effect, error) {
	if s.tenant {
		return effect{}, nil
	}
	group, _ := one(dice, []string{web, plain, spot})
	burst, selectors := dice.Uint32(), dice.IntN(3)
	var pods []*corev1.Pod
	for n := range s.tenantPods {
		pods = append(pods, tenantPod(fmt.Sprintf("t%d-%d", burst, n), group, n%3 < selectors))
	}
	if err := s.createAll(pods); err != nil {
		return effect{}, errors.Join(err, s.clearTenant())
	}
	s.tenant = true
	return effect{
		what:  fmt.Sprintf("a tenant makes %d pods for %s, each unlike the others", len(pods), group),
		lasts: between(dice, 20*time.Second, 45*time.Second),
		end:   s.clearTenant, obstacle: true, // nobody would make them again
	}, nil
}

// tenantPod keeps away from pods with its own label, of which there is no other, or
// selects nodes with its own name.
func tenantPod(name, group string, selects bool) *corev1.Pod {
	pod := bare(name, group)
	pod.Namespace, pod.Labels = tenant, map[string]string{"own": name}
	if selects {
		pod.Spec.NodeSelector["tenant.example/own"] = name
		return pod
	}
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels}, TopologyKey: corev1.LabelHostname,
		}},
	}}
	return pod
}

// createAll creates pods, several at once, and returns the first thing that went wrong.
func (s *soak) createAll(pods []*corev1.Pod) error {
	work, wrong := make(chan *corev1.Pod), make(chan error, createWorkers)
	var workers sync.WaitGroup
	for range createWorkers {
		workers.Go(func() {
			var first error
			for p := range work {
				if first == nil {
					_, first = s.w.Client.CoreV1().Pods(p.Namespace).Create(s.ctx, p, metav1.CreateOptions{})
				}
			}
			wrong <- first
		})
	}
	for _, p := range pods {
		work <- p
	}
	close(work)
	workers.Wait()
	close(wrong)
	var errs []error
	for err := range wrong {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// clearTenant takes the tenant's pods away, wherever they run.
func (s *soak) clearTenant() error {
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}
	if err := s.w.Client.CoreV1().Pods(tenant).DeleteCollection(s.ctx, now, metav1.ListOptions{}); err != nil {
		return err
	}
	s.tenant = false
	return nil
}

// tenantBuffers asks for more room than there ever can be, ten times.
func tenantBuffers(s *soak, dice *rand.Rand) (effect, error) {
	group, _ := one(dice, []string{web, plain, spot})
	var all strings.Builder
	for n := range 10 {
		fmt.Fprintf(&all, bufferFormat, tenant, n, group, 50+10*n, 1000*(1+dice.IntN(10)))
	}
	return effect{
		what:  "a tenant asks for ten big buffers in " + group,
		lasts: between(dice, 15*time.Second, 40*time.Second),
		end: func() error {
			_, err := s.w.Kubectl(s.ctx, nil, "delete", "capacitybuffers,podtemplates", "--all", "-n", tenant)
			return err
		},
	}, s.w.Apply(s.ctx, []byte(all.String()))
}

const bufferFormat = `---
apiVersion: v1
kind: PodTemplate
metadata: {name: b%[2]d, namespace: %[1]s}
template:
  spec:
    nodeSelector: {soak: %[3]s}
    containers: [{name: c, image: c, resources: {requests: {cpu: %[4]dm}}}]
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: b%[2]d, namespace: %[1]s}
spec:
  podTemplateRef: {name: b%[2]d}
  replicas: %[5]d
`

// bufferDefinition is that of CapacityBuffers, out of the script that is about them.
func bufferDefinition(root string) ([]byte, error) {
	script, err := txtar.ParseFile(filepath.Join(root, "e2e", "testdata", "capacity_buffers.txtar"))
	if err != nil {
		return nil, fmt.Errorf("reading the definition of CapacityBuffers: %w", err)
	}
	for _, f := range script.Files {
		if f.Name == "crd.yaml" {
			return f.Data, nil
		}
	}
	return nil, fmt.Errorf("reading the definition of CapacityBuffers: %w", os.ErrNotExist)
}

// hugeMessage is nearly all that the annotations of a Node may hold.
var hugeMessage = strings.Repeat("it cannot be drained. ", (200<<10)/22)

// isForged reports whether a Node has a forged report of ours.
func isForged(n *corev1.Node) bool {
	return strings.Contains(n.Annotations[contract.AnnotationDrainReport], hugeMessage[:100])
}

// forgeReports has the accounts of some nodes write reports of drains that are too long or can be
// read, dated ahead, or about what nobody asked for.
func forgeReports(s *soak, dice *rand.Rand) (effect, error) {
	all := s.serving(mortal...)
	dice.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:min(len(all), 1+dice.IntN(8))]
	at := time.Now()
	if dice.IntN(2) == 0 {
		at = at.Add(between(dice, time.Hour, 24*time.Hour))
	}
	message := hugeMessage
	if dice.IntN(2) == 0 {
		message = message[:contract.MostText]
	}
	var forged []string
	for _, i := range all {
		r := contract.Report{
			Answers: []string{"asg-terminate:" + i.ID}, Kind: contract.KindASG, Message: message,
			Since: contract.At(at), Renewed: contract.At(at), Phase: contract.Phases[dice.IntN(len(contract.Phases))],
		}
		if n, err := s.node(i.PrivateDNSName); err == nil {
			if asked, err := contract.ParseRequest(n.Annotations[contract.AnnotationDrainRequest]); err == nil && dice.IntN(2) == 0 {
				r.Answers, r.Phase = []string{asked.ID}, contract.PhaseFailed
			}
		}
		text, err := json.Marshal(r) // Report.String would cut it
		if err != nil {
			return effect{}, err
		}
		if err := s.annotateAs("system:node:"+i.PrivateDNSName, i.PrivateDNSName, contract.AnnotationDrainReport, string(text)); err == nil {
			forged = append(forged, i.PrivateDNSName)
		}
	}
	if len(forged) == 0 {
		return effect{}, nil
	}
	return effect{
		what:  fmt.Sprintf("reports of %d KiB, dated %s, are forged on %s", len(message)>>10, at.Format("15:04:05"), strings.Join(forged, " ")),
		lasts: between(dice, 5*time.Second, 40*time.Second),
		end:   func() error { return s.unforge(forged) },
	}, nil
}

// unforge takes forged reports away that still stand.
func (s *soak) unforge(nodes []string) error {
	var errs []error
	for _, name := range nodes {
		n, err := s.node(name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil && isForged(n) {
			err = s.annotate(name, contract.AnnotationDrainReport, nil)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// annotateAs sets an annotation of a Node by the rights of a node's account.
func (s *soak) annotateAs(user, node, key, value string) error {
	config := rest.CopyConfig(s.w.Admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:nodes", "system:authenticated"}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().Patch(s.ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// makeTenant makes what the tenants' disturbances need.
func (s *soak) makeTenant() error {
	root, err := world.Root(s.ctx)
	if err != nil {
		return err
	}
	definition, err := bufferDefinition(root)
	if err != nil {
		return err
	}
	if err := s.w.Apply(s.ctx, definition); err != nil {
		return err
	}
	if _, err := s.w.Kubectl(s.ctx, nil, "wait", "--for=condition=Established", "--timeout=60s", "crd/capacitybuffers.autoscaling.x-k8s.io"); err != nil {
		return err
	}
	return s.makeNamespace(tenant)
}

// makeNamespace makes one in which pods can be made.
func (s *soak) makeNamespace(name string) error {
	if err := s.w.Apply(s.ctx, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: "+name+"}\n")); err != nil {
		return err
	}
	_, err := s.w.Kubectl(s.ctx, nil, "wait", "--for=create", "--timeout=60s", "-n", name, "serviceaccount/default")
	return err
}

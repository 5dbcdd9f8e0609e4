package world

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"windlass.dev/windlass/e2e/machine"
	"windlass.dev/windlass/pkg/contract"
)

// containers is the runner of real machines: kubelets run the pods, and this only knows
// which there are, and how their containers ended.
type containers struct {
	client kubernetes.Interface
	yard   *machine.Yard
	logger *slog.Logger

	mu    sync.Mutex
	pods  map[types.UID]*corev1.Pod // until they are deleted
	known map[string]*corev1.Pod    // every pod that ever was, by name
	ended map[string]bool           // ids of containers whose end was seen, or meant
	exits []Exit
}

func newContainers(client kubernetes.Interface, yard *machine.Yard, log *slog.Logger) *containers {
	return &containers{
		client: client, yard: yard, logger: log,
		pods: map[types.UID]*corev1.Pod{}, known: map[string]*corev1.Pod{}, ended: map[string]bool{},
	}
}

// run follows the pods until ctx ends.
func (k *containers) run(ctx context.Context) {
	if err := followPods(ctx, k.client, k.observe, k.forget); err != nil {
		k.logger.Error("cannot follow the programs", "error", err)
	}
}

// observe keeps the newest of a pod and looks for ends of its containers that are news.
func (k *containers) observe(pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods[pod.UID], k.known[pod.Name] = pod, pod
	for _, s := range pod.Status.ContainerStatuses {
		for _, state := range []corev1.ContainerState{s.LastTerminationState, s.State} {
			if state.Terminated != nil {
				k.noteEnd(pod, *state.Terminated)
			}
		}
	}
}

// noteEnd notes a container's end, which of a pod that is deleted is meant. k.mu is held.
func (k *containers) noteEnd(pod *corev1.Pod, end corev1.ContainerStateTerminated) {
	if k.ended[end.ContainerID] {
		return
	}
	k.ended[end.ContainerID] = true
	if pod.DeletionTimestamp != nil {
		return
	}
	var err error
	if end.ExitCode != 0 {
		err = fmt.Errorf("exit status %d, %s %s", end.ExitCode, end.Reason, end.Message)
	}
	k.exits = append(k.exits, Exit{Pod: pod.Name, At: end.FinishedAt.Time, Err: err})
}

func (k *containers) forget(pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.pods, pod.UID)
}

// mean reports whether the containers that match and run now end because somebody ends them.
func (k *containers) mean(matches func(*corev1.Pod) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, pod := range k.pods {
		for _, s := range pod.Status.ContainerStatuses {
			if matches(pod) {
				k.ended[s.ContainerID] = true
			}
		}
	}
}

// went: the machine of a node was switched off.
func (k *containers) went(node string) {
	k.mean(func(pod *corev1.Pod) bool { return pod.Spec.NodeName == node })
}

func (k *containers) list(app string) []placed {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []placed
	for _, pod := range k.pods {
		if pod.Labels[contract.LabelAppName] == app && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
			all = append(all, placed{pod.Name, pod.Spec.NodeName})
		}
	}
	slices.SortFunc(all, func(a, b placed) int { return cmp.Compare(a.pod, b.pod) })
	return all
}

func (k *containers) named(pod string) (*corev1.Pod, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pods {
		if p.Name == pod {
			return p, nil
		}
	}
	return nil, fmt.Errorf("there is no pod %q", pod)
}

func (k *containers) kill(ctx context.Context, pod string) error {
	p, err := k.named(pod)
	if err != nil {
		return err
	}
	k.mean(func(other *corev1.Pod) bool { return other.UID == p.UID })
	return k.yard.Signal(ctx, string(p.UID), p.Spec.Containers[0].Name, syscall.SIGKILL)
}

// exhaust has the kernel kill the program of a pod for its memory limit.
func (k *containers) exhaust(ctx context.Context, pod string) error {
	p, err := k.named(pod)
	if err != nil {
		return err
	}
	if len(p.Status.ContainerStatuses) == 0 {
		return fmt.Errorf("pod %s has no container yet", pod)
	}
	k.mean(func(other *corev1.Pod) bool { return other.UID == p.UID })
	return k.yard.Exhaust(ctx, string(p.UID), p.Status.ContainerStatuses[0].ContainerID)
}

func (k *containers) revive(context.Context, string) error {
	return errors.New("the kubelet of a real machine starts containers again by itself")
}

func (k *containers) get(ctx context.Context, pod, path string) (*http.Response, error) {
	p, err := k.named(pod)
	if err != nil {
		return nil, err
	}
	ports := p.Spec.Containers[0].Ports
	if len(ports) == 0 {
		return nil, fmt.Errorf("pod %s names no port", pod)
	}
	return httpGet(ctx, "http://"+net.JoinHostPort(p.Status.PodIP, strconv.Itoa(int(ports[0].ContainerPort)))+path)
}

func (k *containers) log(pod string) ([]byte, error) {
	k.mu.Lock()
	p := k.known[pod]
	k.mu.Unlock()
	if p == nil {
		return nil, fmt.Errorf("there was no pod %q", pod)
	}
	return k.yard.PodLog(p.Namespace, p.Name, p.Spec.Containers[0].Name)
}

func (k *containers) ends() []Exit {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.exits)
}

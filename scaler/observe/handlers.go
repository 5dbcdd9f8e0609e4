package observe

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

const (
	// maxHandlers is how many Node Termination Handlers are reported, maxQueue how much of
	// the address of a queue.
	maxHandlers = 10
	maxQueue    = 256
)

// handlers are the Node Termination Handlers, known by the labels of their pods, which are
// watched anyhow.
type handlers struct {
	mu   sync.Mutex
	pods map[types.NamespacedName]fleet.TerminationHandler
	list []fleet.TerminationHandler // nil if to be made again
}

func isHandler(labels map[string]string) bool {
	return labels[contract.LabelAppName] == contract.AppTerminationHandler
}

// note takes a change of a pod; after a Replace (was and is are nil) all of them.
func (h *handlers) note(all func() []*fleet.Pod, was, is *fleet.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if was == nil && is == nil {
		h.pods, h.list = nil, nil
		for _, p := range all() {
			h.set(p)
		}
		return
	}
	if was != nil && isHandler(was.Labels) {
		delete(h.pods, podName(was))
		h.list = nil
	}
	if is != nil {
		h.set(is)
	}
}

func (h *handlers) set(p *fleet.Pod) {
	if !isHandler(p.Labels) || p.Node == "" || p.Ended() || !p.Deleted.IsZero() {
		return
	}
	if h.pods == nil {
		h.pods = map[types.NamespacedName]fleet.TerminationHandler{}
	}
	h.pods[podName(p)], h.list = handlerOf(p), nil
}

func handlerOf(p *fleet.Pod) fleet.TerminationHandler {
	handler := fleet.TerminationHandler{Namespace: p.Namespace, Owner: "pod " + p.Name}
	switch {
	case p.Owner == nil:
	case p.Owner.Kind == "ReplicaSet":
		deployment := p.Owner.Name[:max(0, strings.LastIndexByte(p.Owner.Name, '-'))]
		handler.Owner = "deployment " + deployment
	case p.Owner.Kind == "DaemonSet":
		handler.Owner = "daemon set " + p.Owner.Name
	}
	for _, c := range p.Spec.Containers {
		for _, e := range c.Env {
			if e.Name == contract.TerminationHandlerQueue {
				handler.Queue = e.Value
			}
		}
	}
	return handler
}

// latest has each once, the first of them.
func (h *handlers) latest() []fleet.TerminationHandler {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.list == nil && len(h.pods) > 0 {
		for _, handler := range h.pods {
			h.list = append(h.list, handler)
		}
		slices.SortFunc(h.list, func(a, b fleet.TerminationHandler) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Queue, b.Queue))
		})
		h.list = slices.Compact(h.list)
		h.list = slices.Clip(h.list[:min(maxHandlers, len(h.list))])
	}
	return h.list
}

// queueOf is the queue that the pod of a Node Termination Handler reads, by its
// environment or its arguments; nil where it is no such pod, or reads none.
func queueOf(p *corev1.Pod) []corev1.EnvVar {
	if !isHandler(p.Labels) {
		return nil
	}
	queue := ""
	for _, c := range p.Spec.Containers {
		for _, e := range c.Env {
			if e.Name == contract.TerminationHandlerQueue {
				queue = cmp.Or(queue, e.Value)
			}
		}
		words := slices.Concat(c.Command, c.Args)
		for i, word := range words {
			if value, ok := strings.CutPrefix(word, contract.TerminationHandlerQueueFlag+"="); ok {
				queue = cmp.Or(value, queue)
			} else if word == contract.TerminationHandlerQueueFlag && i+1 < len(words) {
				queue = cmp.Or(words[i+1], queue)
			}
		}
	}
	if queue == "" {
		return nil
	}
	return []corev1.EnvVar{{Name: contract.TerminationHandlerQueue, Value: contract.Shorten(queue, maxQueue)}}
}

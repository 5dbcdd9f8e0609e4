package observe

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"windlass.dev/windlass/pkg/contract"
)

// AutoscalerEvents watches the Events that name Cluster Autoscaler as their source, in whatever
// namespace. Whoever may create Events chooses their source.
type AutoscalerEvents struct {
	client kubernetes.Interface
	report func(error)
	table  *table[*corev1.Event, corev1.Event]

	mu sync.Mutex
	// given are the versions that News has returned.
	given map[types.UID]string
}

// NewAutoscalerEvents has seen none before Run. report takes the outcome of every call.
func NewAutoscalerEvents(client kubernetes.Interface, changed func(), report func(error)) *AutoscalerEvents {
	w := &AutoscalerEvents{client: client, report: report, given: map[types.UID]string{}}
	w.table = newTable(func(e *corev1.Event) *corev1.Event { return e },
		func(e *corev1.Event) types.NamespacedName {
			return types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
		},
		func(was, is *corev1.Event) bool { return was.ResourceVersion != is.ResourceVersion },
		func(_, _ *corev1.Event) { changed() })
	w.table.slim = func(e *corev1.Event) { e.ManagedFields = nil }
	return w
}

// Run watches until ctx ends.
func (w *AutoscalerEvents) Run(ctx context.Context) {
	source := fields.OneTermEqualSelector("source", contract.AppClusterAutoscaler).String()
	follow(ctx, w.client, w.client.CoreV1().Events(metav1.NamespaceAll), source, w.table, mostBackOffElse, w.report)
}

// News are the Events that came or changed since it was called last, at first those that Kubernetes
// still has.
func (w *AutoscalerEvents) News() (news []*corev1.Event) {
	all := w.table.snapshot()
	w.mu.Lock()
	defer w.mu.Unlock()
	given := make(map[types.UID]string, len(all))
	for _, e := range all {
		given[e.UID] = e.ResourceVersion
		if w.given[e.UID] != e.ResourceVersion {
			news = append(news, e)
		}
	}
	w.given = given
	return news
}

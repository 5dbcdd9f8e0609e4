package observe

import (
	"context"
	"strings"
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

// Told is what an Event tells.
type Told int

// What Events tell.
const (
	Nothing  Told = iota
	Claimed       // what somebody says who may be anybody
	Believed      // what Cluster Autoscaler alone can say there
)

const (
	// mostClaims is how many Events are kept; what is believed comes on top of them.
	mostClaims = 10_000
	// mostMessage is the most bytes that are kept of a message, as many as the API server takes of
	// newer Events; mostWord of every other text.
	mostMessage = 1 << 10
	mostWord    = 256
)

// NewAutoscalerEvents has seen none before Run. tells says what is in an Event; of those that tell
// nothing none is kept. report takes the outcome of every call.
func NewAutoscalerEvents(client kubernetes.Interface, tells func(*corev1.Event) Told, changed func(), report func(error)) *AutoscalerEvents {
	w := &AutoscalerEvents{client: client, report: report, given: map[types.UID]string{}}
	w.table = newTable(func(e *corev1.Event) *corev1.Event {
		if tells(e) == Nothing {
			return silent
		}
		return slimEvent(e)
	},
		func(e *corev1.Event) types.NamespacedName {
			return types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
		},
		func(was, is *corev1.Event) bool { return was.ResourceVersion != is.ResourceVersion },
		func(_, is *corev1.Event) {
			if is != silent {
				changed()
			}
		})
	w.table.most, w.table.vital = mostClaims, func(e *corev1.Event) bool { return tells(e) == Believed }
	return w
}

// silent is the one row of all Events that tell nothing.
var silent = &corev1.Event{}

// slimEvent is what records are made of, with short texts: whoever may create Events chooses how long
// they are.
func slimEvent(e *corev1.Event) *corev1.Event {
	word := func(text string) string { return strings.Clone(contract.Shorten(text, mostWord)) }
	slim := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name, UID: e.UID, ResourceVersion: e.ResourceVersion, CreationTimestamp: e.CreationTimestamp},
		InvolvedObject: corev1.ObjectReference{Kind: word(e.InvolvedObject.Kind), Namespace: word(e.InvolvedObject.Namespace), Name: word(e.InvolvedObject.Name)},
		Source:         corev1.EventSource{Component: word(e.Source.Component)}, ReportingController: word(e.ReportingController),
		Reason: word(e.Reason), Message: strings.Clone(contract.Shorten(e.Message, mostMessage)),
		FirstTimestamp: e.FirstTimestamp, LastTimestamp: e.LastTimestamp, EventTime: e.EventTime,
	}
	if e.Series != nil {
		slim.Series = &corev1.EventSeries{LastObservedTime: e.Series.LastObservedTime}
	}
	return slim
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
		if e == silent {
			continue
		}
		given[e.UID] = e.ResourceVersion
		if w.given[e.UID] != e.ResourceVersion {
			news = append(news, e)
		}
	}
	w.given = given
	return news
}

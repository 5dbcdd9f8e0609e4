package seats

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// A CapacityBuffer asks for room for so many pods of a template, which are judged by all that it
// says. Volumes and resource claims alone are not simulated: they are those of pods that there are.

// Buffer is a CapacityBuffer that asks for room on nodes that run.
type Buffer struct {
	*fleet.Buffer
	// misconfigured is why it is not known what room is wanted; the zero value where it is.
	misconfigured misconfiguration
	// stock is nil where something is misconfigured, or leftOut: there are too many buffers for one
	// evaluation.
	stock   *stock
	leftOut bool
	// Room is what is kept, nil where something is misconfigured. One pod stands for all of it.
	Room *Headroom
	// asked is how many pods it asks for, where that is more than it may; limited says
	// why it may not, and limit that in a word.
	asked          int64
	limit, limited string
}

// misconfiguration is what is wrong with a buffer: one word and one sentence.
type misconfiguration struct{ reason, text string }

// mostBufferPods is how many pods a cluster is made for: who asks for more has mistyped. What
// buffers get at most is less, see bufferLimits.
// https://kubernetes.io/docs/setup/best-practices/cluster-large/
const mostBufferPods = 150_000

// mostBufferTerms is what fit.CountTerms counts of a buffer's pods at most: seven affinity, anti-affinity and
// spread terms. Each is asked about every kind of pod, and nothing weighs what buffers say: three hundred
// of a hundred terms would take an evaluation ten seconds.
const mostBufferTerms = 8

// mostBufferValues is how many labels, values and namespaces those terms may name in all.
const mostBufferValues = 100

// findBuffers finds the buffers that are ours, by name. How many pods each is for is found
// out when classes are known, see sizeBuffers.
func (k *Cache) findBuffers(s fleet.Snapshot, most int) []*Buffer {
	var list []*Buffer
	stocks := map[string]*stock{}
	for i := range s.Buffers {
		if !s.Buffers[i].Active() {
			continue
		}
		b := &Buffer{Buffer: &s.Buffers[i]}
		b.misconfigured = b.misses()
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b *Buffer) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	leaveOut(list, most)
	for _, b := range list {
		if b.misconfigured == (misconfiguration{}) && !b.leftOut {
			b.stock = k.stocks[b.Key()].of(b.Buffer)
			stocks[b.Key()] = b.stock
		}
	}
	k.stocks = stocks
	return list
}

// leaveOut leaves those out, by name the last of the namespaces that have most, that are too many for
// one evaluation, before anything is learned of their pods.
func leaveOut(list []*Buffer, most int) {
	var spaces [][]*Buffer
	for _, b := range list {
		if b.misconfigured != (misconfiguration{}) {
			continue
		}
		if last := len(spaces) - 1; last < 0 || spaces[last][0].Namespace != b.Namespace {
			spaces = append(spaces, nil)
		}
		spaces[len(spaces)-1] = append(spaces[len(spaces)-1], b)
	}
	demands := make([]int, len(spaces))
	for i, space := range spaces {
		demands[i] = len(space)
	}
	for i, share := range fairShares(most, demands) {
		for _, b := range spaces[i][share:] {
			b.leftOut = true
		}
	}
}

// withSamples adds a pod of each buffer to the pods of the world: what it says of others
// counts for them.
func withSamples(pods []*fleet.Pod, buffers []*Buffer) []*fleet.Pod {
	pods = slices.Clip(pods)
	for _, b := range buffers {
		if b.stock != nil {
			pods = append(pods, b.stock.pod)
		}
	}
	return pods
}

// sizeBuffers finds out for how many pods each buffer is, and returns what room that is.
func (d *Seats) sizeBuffers() (list []*Headroom) {
	limits := d.newBufferLimits()
	for _, b := range d.Buffers {
		if b.leftOut {
			b.Room = &Headroom{Buffer: b}
			b.asked = max(0, b.wanted()) // what its limits allow is not known
			b.limitTo(limitedInCluster, fmt.Sprintf("%s of the cluster keep room at most, which their namespaces share", verdict.Counted(d.Policy.Bounds.Buffers, "buffer")))
		}
		if b.stock == nil {
			continue
		}
		tenant := d.Fit.Tenant(b.stock.pod)
		wanted, amiss := d.sizeOf(b, tenant.Class)
		if b.misconfigured = amiss; amiss.reason != "" {
			continue
		}
		b.Room = &Headroom{Buffer: b, Tenant: tenant}
		limits.ask(b, wanted)
	}
	limits.share()
	for _, b := range d.Buffers {
		if b.Room != nil && b.Room.Wanted > 0 {
			list = append(list, b.Room)
		}
	}
	return list
}

// wanted is for how many pods the buffer is by number or by percentage, whichever is more; less than none
// where it says neither.
func (b *Buffer) wanted() int64 {
	wanted := int64(-1)
	if b.Replicas != nil {
		wanted = int64(*b.Replicas)
	}
	if b.Percentage != nil && b.Pods.Replicas != nil {
		wanted = max(wanted, (int64(*b.Percentage)*int64(*b.Pods.Replicas)+99)/100)
	}
	return wanted
}

// sizeOf is for how many pods the buffer is: as many as are wanted, as far as its limits allow; by limits alone
// as many as they allow.
func (d *Seats) sizeOf(b *Buffer, class *fit.Class) (int64, misconfiguration) {
	wanted := b.wanted()
	if len(b.Limits) > 0 {
		most := int64(math.MaxInt64)
		for name, limit := range b.Limits {
			if asked := d.Fit.Requested(class, name); asked > 0 {
				most = min(most, fit.Units(name, limit)/asked)
			}
		}
		if most == math.MaxInt64 {
			return 0, misconfiguration{"LimitsNotRequested", fmt.Sprintf("its pods request nothing of what its limits name: %s", named(b.Limits))}
		}
		if wanted < 0 || most < wanted {
			wanted = most
		}
	}
	switch {
	case wanted < 0:
		return 0, misconfiguration{"NoSize", "it has neither replicas, nor a percentage of a scalable object's, nor limits"}
	case wanted > mostBufferPods:
		return 0, misconfiguration{"TooLarge", fmt.Sprintf("it asks for room for %d pods, and no cluster takes more than %d", wanted, mostBufferPods)}
	}
	return wanted, misconfiguration{}
}

func named(list corev1.ResourceList) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		names = append(names, string(name))
	}
	return verdict.Listed(names)
}

// misses is what is wrong with what the buffer says, before anything is learned of its pods.
func (b *Buffer) misses() misconfiguration {
	refers := fmt.Sprintf("pod template %s/%s", b.Namespace, b.Template)
	if b.Scalable != nil {
		refers = fmt.Sprintf("%s %s/%s", b.Scalable.Kind, b.Namespace, b.Scalable.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(b.Limits)) {
		if limit := b.Limits[name]; limit.Sign() < 0 {
			return misconfiguration{"NegativeLimit", fmt.Sprintf("its limit of %s is %s, and cannot be less than nothing", name, limit.String())}
		}
	}
	switch {
	case b.Template != "" && b.Scalable != nil:
		return misconfiguration{"TwoReferences", "it has both podTemplateRef and scalableRef, and should have one of them"}
	case b.Template == "" && b.Scalable == nil:
		return misconfiguration{"NoReference", "it has neither podTemplateRef nor scalableRef"}
	case b.Scalable != nil && !b.Scalable.Known():
		return misconfiguration{"KindNotSupported", fmt.Sprintf("scalableRef: the pods of kind %s of API group %q are not known", b.Scalable.Kind, b.Scalable.Group)}
	case b.Replicas != nil && *b.Replicas < 0:
		return misconfiguration{"NegativeReplicas", fmt.Sprintf("replicas is %d, and cannot be less than none", *b.Replicas)}
	case b.Percentage != nil && *b.Percentage < 0:
		return misconfiguration{"NegativePercentage", fmt.Sprintf("percentage is %d, and cannot be less than none", *b.Percentage)}
	case b.Pods == nil && b.Fault != "":
		return misconfiguration{"NotReadable", fmt.Sprintf("%s: %s", refers, b.Fault)}
	case b.Pods == nil && b.Scalable != nil:
		return misconfiguration{"ScalableNotFound", refers + " is not there"}
	case b.Pods == nil:
		return misconfiguration{"PodTemplateNotFound", refers + " is not there"}
	}
	if terms := fit.CountTerms(&b.Pods.Template.Spec); terms > mostBufferTerms {
		return misconfiguration{"TooManyTerms", fmt.Sprintf("%s: its pods have %d required affinity, anti-affinity and spread terms, and those of a buffer may have %d", refers, terms-1, mostBufferTerms-1)}
	}
	if values := fit.CountValues(&b.Pods.Template.Spec); values > mostBufferValues {
		return misconfiguration{"TooManyValues", fmt.Sprintf("%s: the affinity, anti-affinity and spread terms of its pods name %d labels, values and namespaces, and those of a buffer may name %d", refers, values, mostBufferValues)}
	}
	return misconfiguration{}
}

// stock is the pod that stands for all of a buffer, kept from evaluation to evaluation.
type stock struct {
	template *corev1.PodTemplateSpec
	pod      *fleet.Pod
}

// of is the stock of a buffer: this one, unless its template has changed.
func (s *stock) of(b *fleet.Buffer) *stock {
	if s == nil || s.template != b.Pods.Template {
		return &stock{template: b.Pods.Template, pod: bufferPod(b)}
	}
	return s
}

// bufferPod makes a pod of the buffer's template, of the least priority.
func bufferPod(b *fleet.Buffer) *fleet.Pod {
	spec := b.Pods.Template.Spec.DeepCopy()
	spec.Priority, spec.NodeName = new(int32(math.MinInt32)), ""
	spec.Volumes, spec.ResourceClaims = nil, nil
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].Resources.Claims = nil
		}
	}
	return &fleet.Pod{Namespace: b.Namespace, Name: "buffer " + b.Key(), Labels: b.Pods.Template.Labels, Annotations: b.Pods.Template.Annotations, Spec: spec}
}

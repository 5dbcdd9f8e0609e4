package fit

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit/upstream"
)

// World is what decides where pods fit, beside the nodes.
type World struct {
	// Kubernetes is the version of the API server: kube-scheduler's rules follow
	// it. Empty counts as the newest that is known, and so does what is no version.
	Kubernetes string
	// Pods are all pods, those without a node too, because each may keep others
	// away.
	Pods []*fleet.Pod
	// Mute are pods of which it is not learned what their terms about others are. Of one
	// without a node nothing is asked. One on a node fits no other; and if its terms name
	// other namespaces no pod is thought to fit beside it, whatever they are.
	Mute       map[*fleet.Pod]bool
	Namespaces map[string]map[string]string
	Storage    fleet.Storage
	Devices    fleet.Devices
	// DaemonSets have a pod on every new node that they would run on.
	DaemonSets []fleet.DaemonSet
	// Closing are the taints that a node gets when it is to go.
	Closing []corev1.Taint
}

// Rules is kube-scheduler's rules with what was learned of them: classes of pods, kinds of
// nodes, and which fit which. It may be kept from evaluation to evaluation: that saves work
// and changes no answer. It keeps about as much as the last evaluation used. Not for
// concurrent use.
type Rules struct {
	version string
	filters *upstream.Filters
	*lore
}

// NewRules knows nothing yet.
func NewRules() *Rules { return &Rules{} }

// lore is what was learned. It holds for one version of Kubernetes.
type lore struct {
	filters *upstream.Filters
	gates   upstream.Gates

	names   *names
	traits  *traitMemory
	demands map[string]*demands
	// asked are the labels of nodes that some pod asks for; edition counts how
	// often one came new.
	asked   map[string]bool
	edition int
	kinds   map[kindKey]*kind
	// numbered counts the kinds that there ever were.
	numbered int
	// carried are the labels of these kinds that some pod asks for, and carriages counts
	// how often that has changed.
	carried   map[label]bool
	carriages int

	selectors *selectors
	terms     map[termsKey]*terms
	classes   map[classKey]*Class
	// rows are the pods of the last evaluation, and rowClasses their classes: most pods are in the same
	// row again. byPod are those of pods that were asked about one by one. eras counts how often all
	// classes were forgotten.
	rows       []*fleet.Pod
	rowClasses []*Class
	byPod      map[*fleet.Pod]*Class
	eras       int
	// places are those of the nodes of the last evaluation, so many as were added, and free are its
	// columns: memory that is used again.
	places []*Place
	added  int
	free   [][]int64
	// namespaces and served are what classes were made under.
	namespaces map[string]map[string]string
	served     map[corev1.ResourceName]bool
	mute       map[*fleet.Pod]bool

	// classified counts the pods that were met, met the kinds of nodes of this evaluation.
	classified, look, met int
	// used is the size of the specs that the first evaluation learned.
	used int
}

func newLore(filters *upstream.Filters) *lore {
	return &lore{
		filters: filters, gates: filters.Gates(),
		names: newNames(), traits: newTraitMemory(),
		demands: map[string]*demands{}, asked: map[string]bool{}, kinds: map[kindKey]*kind{},
		carried: map[label]bool{}, carriages: 1,
		selectors: newSelectors(), terms: map[termsKey]*terms{},
		classes: map[classKey]*Class{}, byPod: map[*fleet.Pod]*Class{},
		served: map[corev1.ResourceName]bool{},
	}
}

// reuse frees the memory of the last evaluation, and lets go of what that did not use: it is of one
// before, which had more nodes, or pods that asked for more kinds of resources.
func (l *lore) reuse() {
	clear(l.places[l.added:])
	clear(l.free[len(l.free):cap(l.free)])
	l.places, l.added, l.free = l.places[:l.added], 0, l.free[:0]
}

// Cluster begins an evaluation of a world in which there is no node yet.
func (r *Rules) Cluster(w World) *Cluster {
	r.follow(w.Kubernetes)
	r.filters.Sync(w.Namespaces, w.Storage, w.Devices)
	r.tidy(w.Pods)
	r.setNamespaces(w.Namespaces)
	r.setMute(w.Mute)
	r.setServed()
	r.look, r.met = r.look+1, 0
	daemons := daemonPods(w.DaemonSets)
	return newCluster(r.lore, w, r.learn(w, daemons), daemons)
}

// follow takes the rules of a version of Kubernetes.
func (r *Rules) follow(version string) {
	if r.lore != nil && r.version == version {
		return
	}
	filters, err := upstream.New(version)
	if err != nil {
		if filters, err = upstream.New(""); err != nil {
			panic(err) // the plugins that this program is built with
		}
	}
	r.version, r.filters, r.lore = version, filters, newLore(filters)
}

const (
	// slack is how many pods are kept beyond those that there are, so that small clusters are
	// not tidied at every evaluation.
	slack = 250
	// turnover is how often all pods of a cluster may be replaced until all that was
	// learned is forgotten, the old with the new.
	turnover = 4
	// spareBytes of specs are kept beyond twice of what the first evaluation learned: a tenant's pods
	// may be of a megabyte each, come and go, and never get a class.
	spareBytes = 16 << 20
)

// tidy forgets what is of no use any more.
func (r *Rules) tidy(pods []*fleet.Pod) {
	if r.look == 1 {
		r.used = r.traits.bytes
	}
	if r.classified > turnover*(len(pods)+slack) || len(r.kinds) > 2*r.met+slack || r.look > 0 && r.traits.bytes > 2*r.used+spareBytes {
		r.lore = newLore(r.filters)
		return
	}
	if len(r.byPod) > len(pods)/4+slack {
		r.byPod = map[*fleet.Pod]*Class{}
	}
	if len(r.traits.bySpec) > len(pods)+len(pods)/4+slack {
		r.traits.keep(pods)
	}
}

// setNamespaces takes over the labels of namespaces. What was known of which pods a
// selector selects is void if they changed.
func (l *lore) setNamespaces(namespaces map[string]map[string]string) {
	if !maps.EqualFunc(l.namespaces, namespaces, func(a, b map[string]string) bool { return maps.Equal(a, b) }) {
		l.namespaces = maps.Clone(namespaces)
		l.forgetClasses()
		l.terms, l.selectors = map[termsKey]*terms{}, newSelectors()
	}
}

// setMute takes over which pods on nodes have no say. What was known is void if they
// changed.
func (l *lore) setMute(pods map[*fleet.Pod]bool) {
	mute := map[*fleet.Pod]bool{}
	for p := range pods {
		if p.Node != "" {
			mute[p] = true
		}
	}
	if !maps.Equal(l.mute, mute) {
		l.mute = mute
		l.forgetClasses()
		l.terms, l.selectors = map[termsKey]*terms{}, newSelectors()
	}
}

// setServed finds the resources that device classes serve now. Pods that ask for
// one are judged one by one.
func (l *lore) setServed() {
	before := l.served
	l.served = map[corev1.ResourceName]bool{}
	for _, name := range l.names.names {
		l.served[name] = l.isServed(name)
	}
	for name, was := range before {
		if l.served[name] != was {
			l.forgetClasses()
			return
		}
	}
}

// serves reports whether a device class serves a resource, which may be one that has
// just come up.
func (l *lore) serves(name corev1.ResourceName) bool {
	served, known := l.served[name]
	if !known {
		served = l.isServed(name)
		l.served[name] = served
	}
	return served
}

func (l *lore) isServed(name corev1.ResourceName) bool {
	return l.filters.Delegated(nil, name, &corev1.Node{})
}

func (l *lore) forgetClasses() {
	l.classes, l.byPod = map[classKey]*Class{}, map[*fleet.Pod]*Class{}
	l.rows, l.rowClasses = nil, nil
	l.eras++
}

// learn finds the class of each pod that there is, nil for one that ended or is mute. All terms
// are learned before any pod gets its class: which of them select a pod is part of that.
func (l *lore) learn(w World, daemons []*fleet.Pod) []*Class {
	pods := w.Pods
	news := l.recall(w)
	before := len(l.selectors.list)
	for _, i := range news {
		l.termsOf(pods[i], l.traitsOf(pods[i].Spec))
	}
	for _, p := range daemons {
		l.termsOf(p, l.traitsOf(p.Spec))
	}
	if len(l.selectors.list) > before {
		l.forgetClasses()
		news = l.recall(w)
	}
	for _, i := range news {
		l.rowClasses[i] = l.classOf(pods[i])
	}
	return l.rowClasses
}

// recall finds the indices of the pods whose classes are not known. Those that ended or are
// mute have none.
func (l *lore) recall(w World) (news []int32) {
	l.rows, l.rowClasses = ofLength(l.rows, len(w.Pods)), ofLength(l.rowClasses, len(w.Pods))
	for i, p := range w.Pods {
		mute := len(w.Mute) > 0 && p.Node == "" && w.Mute[p] // most have none, and no pod is looked at then
		if l.rows[i] == p && l.rowClasses[i] != nil && !mute {
			continue
		}
		l.rows[i], l.rowClasses[i] = p, nil
		if !mute && !p.Ended() {
			news = append(news, int32(i))
		}
	}
	return news
}

// ofLength is a list with so many elements, of which those that come new are nothing.
func ofLength[E any](list []E, n int) []E {
	return append(list[:min(len(list), n)], make([]E, max(0, n-len(list)))...)
}

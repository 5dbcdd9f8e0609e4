package observe

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/status/cas"
)

const (
	// autoscalersEvery is how often the signs of other autoscalers are gone through where
	// nothing happens to them: one that is renewed no more is dropped.
	autoscalersEvery = 10 * time.Second
	// autoscalersRest is the least time in between: whoever renews a sign without end makes
	// us no work.
	autoscalersRest = time.Second
	// clocksDiffer is how far the clock of another autoscaler may be off before a sign that
	// we see for the first time counts only when it is renewed. A live one is within
	// seconds; one that was left behind long ago would stop us after each start.
	clocksDiffer = 10 * time.Minute
	// autoscalersSynced is how often it is asked whether all signs were seen once.
	autoscalersSynced = 100 * time.Millisecond
	// powersEvery is how often it is asked anew what a service account may do.
	powersEvery = 5 * time.Minute
	// Bounds of what tenants can make us ask in one go: accounts for each namespace, and
	// questions. What is over comes with the next round, the oldest signs first.
	maxAccounts  = 5
	maxQuestions = 100
	// maxHolder is the most of a holder's name that is kept, maxGroupName that of a group's: no Auto
	// Scaling group has a longer one.
	maxHolder    = 128
	maxGroupName = 512
)

// withoutAutoscalers is what is decided where signs may not be read.
const withoutAutoscalers = "no other autoscaler is seen by it"

// sign is an object that an autoscaler renews.
type sign struct {
	key        types.NamespacedName
	kind, sign string // see fleet.Autoscaler
	holder     string
	// renewal is another text after each renewal; empty where it is renewed no more.
	// At is the time that it names.
	renewal string
	at      time.Time
	created time.Time
}

// heard is what was last seen of a sign, and when it came.
type heard struct {
	renewal string
	at      time.Time
}

// power is whether an account may do something, as the API server answered then.
type power struct {
	may bool
	at  time.Time
}

// autoscalerWatch sees the signs of life of other autoscalers, in all namespaces. A sign is
// alive while it is seen to change: clocks differ.
type autoscalerWatch struct {
	o       *Observer
	signs   []*signs
	refused *refusal // to ask what accounts may do
	moved   chan struct{}

	// heard and powers are run's alone.
	heard    map[sign]heard
	powers   map[question]power
	statuses map[sign]said
	own      own

	mu sync.Mutex
	// renewed are the signs that were seen to change since the last round.
	renewed map[sign]time.Time
	known   bool
	list    []fleet.Autoscaler
}

// own is when our own lease was created, the zero time where there is none, as the API server
// answered then.
type own struct{ created, at time.Time }

// signs are those that one watch sees, and when it could not.
type signs struct {
	rows    func() []*sign
	away    outage
	refused *refusal // to see them: then it is said that none is seen
}

// said is which groups a status named, as of a renewal of it.
type said struct {
	renewal string
	groups  []string
}

// question is asked of the API server: may that account do this to Nodes?
type question struct{ namespace, account, verb string }

func newAutoscalerWatch(o *Observer) *autoscalerWatch {
	return &autoscalerWatch{
		o: o, moved: make(chan struct{}, 1), heard: map[sign]heard{}, renewed: map[sign]time.Time{}, powers: map[question]power{},
		refused: o.refusal("create subjectaccessreviews", "whoever renews a lease or status of an autoscaler is taken for one"),
	}
}

// watches are those of the leases and statuses, each by its name: so the right to see
// them can be given by name. Of our own lease nothing is heard: its renewals would wake each
// replica every few seconds.
func (w *autoscalerWatch) watches(names []string) []watched {
	o := w.o
	var list []watched
	for _, name := range names {
		list = append(list, w.leases(name, byName(name), fleet.ClusterAutoscaler))
	}
	others := byName(contract.LeaseScaler) + "," + "metadata.namespace" + "!=" + o.config.Namespace
	list = append(list, w.leases(contract.LeaseScaler, others, fleet.Windlass))
	if o.config.Metadata != nil {
		name := contract.ConfigMapClusterAutoscalerStatus
		api := o.config.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("configmaps"))
		list = append(list, signsNamed(w, o.config.Metadata, "configmaps", name, byName(name), api, statusSign))
	}
	return list
}

func (w *autoscalerWatch) leases(name, fields, kind string) watched {
	client := w.o.config.Client
	return signsNamed(w, client, "leases", name, fields, client.CoordinationV1().Leases(""), func(l *coordinationv1.Lease) *sign { return leaseSign(l, kind) })
}

func byName(name string) string { return metav1.ObjectNameField + "=" + name }

// signsNamed is the watch of the objects of one name that fields select. client is the clientset that
// api comes from.
func signsNamed[O object, L runtime.Object](w *autoscalerWatch, client any, resource, name, fields string, api lister[L], convert func(O) *sign) watched {
	into := newTable(convert, func(s *sign) types.NamespacedName { return s.key }, func(was, is *sign) bool { return *was != *is }, w.changed)
	seen := &signs{rows: into.snapshot, away: outage{now: w.o.config.Now}}
	w.signs = append(w.signs, seen)
	what := resource + " named " + name
	watch := selected(w.o, client, what, fields, withoutAutoscalers, api, into, func(err error) {
		seen.away.heard(what, err)
		w.o.report(err)
	})
	watch.sign, seen.refused = true, watch.refused
	return watch
}

func leaseSign(l *coordinationv1.Lease, kind string) *sign {
	s := &sign{key: keyOf(l), kind: kind, sign: fleet.SignLease, created: l.CreationTimestamp.UTC()}
	if l.Spec.HolderIdentity != nil {
		s.holder = contract.Shorten(*l.Spec.HolderIdentity, maxHolder)
	}
	if l.Spec.RenewTime != nil && s.holder != "" { // a holder that ends gives it up
		s.at = l.Spec.RenewTime.UTC()
		s.renewal = s.at.Format(time.RFC3339Nano)
	}
	return s
}

// statusSign reads the metadata of a status. One that a Windlass wrote is no sign: its
// lease is.
func statusSign(o *metav1.PartialObjectMetadata) *sign {
	s := &sign{key: keyOf(o), kind: fleet.ClusterAutoscaler, sign: fleet.SignStatus, created: o.CreationTimestamp.UTC()}
	if contract.IsOwnStatus(o.Annotations) {
		return s
	}
	s.renewal = contract.Shorten(o.Annotations[contract.AnnotationLastUpdated], maxHolder)
	if at, err := time.Parse(cas.TimeFormat, s.renewal); err == nil {
		s.at = at.UTC()
	}
	return s
}

// id identifies a sign, whatever is renewed.
func (s *sign) id() sign { return sign{key: s.key, kind: s.kind, sign: s.sign} }

func (s *sign) aliveUntil(renewed time.Time) time.Time {
	return fleet.Autoscaler{Sign: s.sign, Renewed: renewed}.AliveUntil()
}

// changed notes when a renewal came: between two rounds there may be several.
func (w *autoscalerWatch) changed(was, is *sign) {
	if was != nil && is != nil && was.renewal != is.renewal {
		w.mu.Lock()
		w.renewed[is.id()] = w.o.config.Now()
		w.mu.Unlock()
	}
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

func (w *autoscalerWatch) run(ctx context.Context) {
	for !w.synced() {
		if !sleep(ctx, autoscalersSynced, nil) {
			return
		}
	}
	for {
		pause := autoscalersEvery
		if !w.round(ctx) {
			pause = autoscalersRest
		}
		if !sleep(ctx, autoscalersRest, nil) || !sleep(ctx, pause-autoscalersRest, w.moved) {
			return
		}
	}
}

// sleep waits, or until it is woken; false says that ctx has ended.
func sleep(ctx context.Context, pause time.Duration, woken <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-woken:
	case <-time.After(pause):
	}
	return true
}

// round goes through all signs. It reports whether all was answered that it asked.
func (w *autoscalerWatch) round(ctx context.Context) (all bool) {
	now := w.o.config.Now()
	alive := w.alive(now)
	var others []*sign
	for _, s := range alive {
		if s.key.Namespace != metav1.NamespaceSystem {
			others = append(others, s)
		}
	}
	accounts := w.accountsOf(others)
	all = w.askForOwn(ctx, now, alive)
	questions := 0
	used, statuses := map[question]power{}, map[sign]said{}
	var list []fleet.Autoscaler
	for _, s := range alive {
		a := fleet.Autoscaler{Kind: s.kind, Sign: s.sign, Namespace: s.key.Namespace, Name: s.key.Name, Holder: s.holder, Renewed: w.heard[s.id()].at.UTC(), Younger: w.younger(s)}
		if s.key.Namespace != metav1.NamespaceSystem {
			may, answered := w.may(ctx, now, s, accounts[s.id()], used, &questions)
			all = all && answered
			if !answered {
				was, listed := w.listed(s)
				if !listed {
					continue
				}
				may = !was.Powerless
			}
			a.Powerless = !may
		}
		if s.sign == fleet.SignStatus && !a.Powerless {
			a.Groups = w.groupsOf(ctx, s, statuses)
		}
		list = append(list, a)
	}
	w.powers, w.statuses = used, statuses
	w.mu.Lock()
	moved := (all && !w.known) || !slices.EqualFunc(w.list, list, func(a, b fleet.Autoscaler) bool {
		a.Renewed, b.Renewed = time.Time{}, time.Time{}
		return reflect.DeepEqual(a, b)
	})
	w.known, w.list = w.known || all, list
	w.mu.Unlock()
	if moved {
		w.o.news(soon)
	}
	return all
}

// listed is what the last round found of a sign.
func (w *autoscalerWatch) listed(s *sign) (was fleet.Autoscaler, found bool) {
	i := slices.IndexFunc(w.list, func(a fleet.Autoscaler) bool {
		return a.Kind == s.kind && a.Sign == s.sign && a.Namespace == s.key.Namespace && a.Name == s.key.Name
	})
	if i < 0 {
		return fleet.Autoscaler{}, false
	}
	return w.list[i], true
}

// groupsOf are the groups that a live status names: a Cluster Autoscaler that runs writes all that it
// manages at each scan. None where it cannot be read, or is not understood, as that of versions before
// 1.30 is not.
func (w *autoscalerWatch) groupsOf(ctx context.Context, s *sign, statuses map[sign]said) []string {
	id := s.id()
	known := w.statuses[id]
	if known.renewal != s.renewal {
		list, err := w.o.config.Client.CoreV1().ConfigMaps(s.key.Namespace).List(ctx, metav1.ListOptions{FieldSelector: byName(s.key.Name)})
		if err != nil {
			if ctx.Err() == nil {
				w.o.report(fmt.Errorf("reading the status of a Cluster Autoscaler, config map %s: %w", s.key, err))
			}
			return nil
		}
		known = said{renewal: s.renewal}
		for i := range list.Items {
			if object := &list.Items[i]; object.Name == s.key.Name && !contract.IsOwnStatus(object.Annotations) {
				known.groups = groupsNamed(object.Data[contract.ClusterAutoscalerStatusKey])
			}
		}
	}
	statuses[id] = known
	return known.groups
}

// groupsNamed are the groups in a status of one that runs; none where one of them has no name.
func groupsNamed(text string) (groups []string) {
	status, err := cas.Parse(text)
	if err != nil || status.AutoscalerStatus != cas.Running {
		return nil
	}
	for _, g := range status.NodeGroups {
		if g.Name == "" {
			return nil
		}
		groups = append(groups, contract.Shorten(g.Name, maxGroupName))
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// synced reports whether every kind of sign was seen, or may not be, and the pods that may hold
// them.
func (w *autoscalerWatch) synced() bool {
	if !w.o.pods.hasSynced() {
		return false
	}
	for _, watch := range w.o.watches {
		if watch.sign && !watch.synced() && !watch.refused.lasts() {
			return false
		}
	}
	return true
}

// alive notes what was renewed since the last round, and returns what is alive by that,
// the oldest first. What was alive when we ceased to see signs counts as renewed until we see them
// again: an API server that was away has silenced its holder, or us, and nobody has ended.
func (w *autoscalerWatch) alive(now time.Time) (alive []*sign) {
	w.mu.Lock()
	renewed := w.renewed
	w.renewed = map[sign]time.Time{}
	w.mu.Unlock()
	notes := map[sign]heard{}
	for _, seen := range w.signs {
		away := seen.away.latest(now)
		if seen.refused.lasts() {
			away = nil
		}
		for _, s := range seen.rows() {
			id := s.id()
			h, before := w.heard[id]
			if !before && now.Sub(s.at).Abs() < clocksDiffer || before && h.renewal != s.renewal {
				h.at = now
			}
			if at, seen := renewed[id]; seen {
				h.at = at
			}
			if s.renewal == "" {
				h.at = time.Time{}
			}
			for _, o := range away {
				if !h.at.IsZero() && o.From.Before(s.aliveUntil(h.at)) && o.Until.After(h.at) {
					h.at = o.Until
				}
			}
			h.renewal = s.renewal
			notes[id] = h
			if now.Before(s.aliveUntil(h.at)) {
				alive = append(alive, s)
			}
		}
	}
	w.heard = notes
	slices.SortFunc(alive, func(a, b *sign) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.kind, b.kind), cmp.Compare(a.sign, b.sign), cmp.Compare(a.key.Name, b.key.Name))
	})
	return alive
}

// askForOwn asks for our own lease where there is a second Windlass, and reports whether that was
// answered. The right to list it by its name is that of the watches.
func (w *autoscalerWatch) askForOwn(ctx context.Context, now time.Time, alive []*sign) bool {
	second := slices.ContainsFunc(alive, func(s *sign) bool { return s.kind == fleet.Windlass })
	if !second || now.Before(w.own.at.Add(powersEvery)) {
		return true
	}
	list, err := w.o.config.Client.CoordinationV1().Leases(w.o.config.Namespace).List(ctx, metav1.ListOptions{FieldSelector: byName(contract.LeaseScaler)})
	if err != nil {
		if ctx.Err() == nil {
			w.o.report(fmt.Errorf("reading when our own lease %s/%s was created: %w", w.o.config.Namespace, contract.LeaseScaler, err))
		}
		return false
	}
	w.own = own{at: now}
	for i := range list.Items {
		w.own.created = list.Items[i].CreationTimestamp.UTC()
	}
	return true
}

// younger reports whether a second Windlass was installed after us. One that has no lease
// is the younger one; so are we until it is known when ours was created, for of two that rest
// none does harm.
func (w *autoscalerWatch) younger(s *sign) bool {
	created := w.own.created
	return s.kind == fleet.Windlass && !created.IsZero() && cmp.Or(created.Compare(s.created), cmp.Compare(w.o.config.Namespace, s.key.Namespace)) < 0
}

// accountsOf are the service accounts of the running pods that may be the holders of
// signs: that of the same name, or on the host of that name if it uses its network, or
// that call themselves an autoscaler.
func (w *autoscalerWatch) accountsOf(signs []*sign) map[sign][]string {
	if len(signs) == 0 {
		return nil
	}
	in := map[string][]*sign{}
	for _, s := range signs {
		in[s.key.Namespace] = append(in[s.key.Namespace], s)
	}
	accounts := map[sign][]string{}
	for _, p := range w.o.pods.snapshot() {
		for _, s := range in[p.Namespace] {
			if p.Node != "" && !p.Ended() && mayHold(p, s) {
				accounts[s.id()] = append(accounts[s.id()], cmp.Or(p.Spec.ServiceAccountName, "default"))
			}
		}
	}
	for id, names := range accounts {
		slices.Sort(names)
		names = slices.Compact(names)
		accounts[id] = names[:min(maxAccounts, len(names))]
	}
	return accounts
}

func mayHold(p *fleet.Pod, s *sign) bool {
	// Cluster Autoscaler's identity is its host name, which is the pod's name; others put
	// something of their own behind it.
	host, _, _ := strings.Cut(s.holder, "_")
	if p.Name == host || p.Spec.HostNetwork && p.Node == host {
		return true
	}
	for _, key := range []string{contract.LabelAppName, "app", "k8s-app"} {
		if name := p.Labels[key]; strings.HasSuffix(name, "cluster-autoscaler") || name == contract.AppScaler {
			return true
		}
	}
	return false
}

// may reports whether one of the accounts may write Nodes as an autoscaler of that kind does.
// Where we may not ask, it may; answered is false where it has to be asked again.
func (w *autoscalerWatch) may(ctx context.Context, now time.Time, s *sign, accounts []string, used map[question]power, questions *int) (may, answered bool) {
	verb := "update"
	if s.kind == fleet.Windlass {
		verb = "patch"
	}
	for _, account := range accounts {
		q := question{s.key.Namespace, account, verb}
		known, asked := used[q]
		if !asked {
			known, asked = w.powers[q]
		}
		if !asked || now.Sub(known.at) >= powersEvery && *questions < maxQuestions { // else the old answer stands
			if *questions++; *questions > maxQuestions {
				return false, false
			}
			answer, err := w.ask(ctx, q)
			switch {
			case err == nil:
				known, asked = power{answer, now}, true
			case w.refused.lasts():
				return true, true
			case !asked:
				return false, false
			}
		}
		used[q] = known
		if known.may {
			return true, true
		}
	}
	return false, true
}

// ask has the API server answer what an account may do, as it would when that account asks.
func (w *autoscalerWatch) ask(ctx context.Context, q question) (bool, error) {
	review, err := w.o.config.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               fmt.Sprintf("system:serviceaccount:%s:%s", q.namespace, q.account),
			Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + q.namespace, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: q.verb, Resource: "nodes"},
		},
	}, metav1.CreateOptions{})
	w.refused.heard(err)
	if err != nil {
		if !apierrors.IsForbidden(err) && ctx.Err() == nil {
			w.o.report(fmt.Errorf("asking what %s in %s may do: %w", q.account, q.namespace, err))
		}
		return false, err
	}
	return review.Status.Allowed, nil
}

// latest are the live ones, and whether that is known.
func (w *autoscalerWatch) latest() ([]fleet.Autoscaler, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.list, w.known
}

package remove

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/status"
	"windlass.dev/windlass/scaler/uninstall"
)

// Observe reads what is there. AWS comes last: what the cluster tells of instances is not newer.
func (r *Remover) Observe(ctx context.Context) (uninstall.World, error) {
	w := uninstall.World{Now: time.Now(), Namespace: r.Namespace, Agents: map[string]bool{}}
	for _, read := range []func(context.Context, *uninstall.World) error{r.nodes, r.programs, r.nodes, r.objects, r.memory} {
		if err := read(ctx, &w); err != nil {
			return w, err
		}
	}
	groups, err := r.Read(ctx)
	if err != nil {
		return w, fmt.Errorf("reading the groups: %w", err)
	}
	w.Groups = groups
	if unread := w.Unread(); len(groups) == 0 && len(unread) > 0 {
		return w, fmt.Errorf("%w, and ConfigMap %s names %s: give the flags that name the groups as the scaler has them; where those groups are gone, delete the ConfigMap", errNoGroups, contract.ConfigMapState, strings.Join(unread, ", "))
	}
	return w, nil
}

var errNoGroups = errors.New("no group was read")

// ErrElsewhere means that Windlass is in another namespace than the one that was given.
var ErrElsewhere = errors.New("not in this namespace")

func (r *Remover) programs(ctx context.Context, w *uninstall.World) error {
	for _, app := range apps {
		options := metav1.ListOptions{LabelSelector: r.selector(app)}
		running, err := r.pods(ctx, w, app)
		if err != nil {
			return err
		}
		deployments, err := r.Client.AppsV1().Deployments(r.Namespace).List(ctx, options)
		if err != nil {
			return fmt.Errorf("listing deployments: %w", err)
		}
		sets, err := r.Client.AppsV1().DaemonSets(r.Namespace).List(ctx, options)
		if err != nil {
			return fmt.Errorf("listing daemon sets: %w", err)
		}
		for _, d := range deployments.Items {
			w.Programs = append(w.Programs, uninstall.Program{App: app, Kind: "Deployment", Name: d.Name, UID: d.UID, Wanted: replicas(d.Spec.Replicas), Pods: running})
		}
		for _, d := range sets.Items {
			wanted := 1
			if d.DeletionTimestamp != nil { // it is there until its last pod is gone
				wanted = 0
			}
			w.Programs = append(w.Programs, uninstall.Program{App: app, Kind: "DaemonSet", Name: d.Name, UID: d.UID, Wanted: wanted, Pods: running})
		}
		if len(deployments.Items)+len(sets.Items) == 0 && running > 0 { // they are on their way out
			kind := "Deployment"
			if app == contract.AppAgent {
				kind = "DaemonSet"
			}
			w.Programs = append(w.Programs, uninstall.Program{App: app, Kind: kind, Name: app, Pods: running})
		}
	}
	return nil
}

// pods counts those of a program that run, and finds which nodes have an agent that acts. One that runs
// in another namespace would write again what is removed, and be robbed of its work.
func (r *Remover) pods(ctx context.Context, w *uninstall.World, app string) (running int, err error) {
	pods, err := r.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: r.selector(app)})
	if err != nil {
		return 0, fmt.Errorf("listing pods of %s: %w", app, err)
	}
	ready := map[string]bool{}
	for _, n := range w.Nodes {
		ready[n.Name] = n.Ready
	}
	for i := range pods.Items {
		p := fleet.PodFrom(&pods.Items[i])
		switch {
		case p.Ended():
			continue
		case p.Namespace != r.Namespace && app != contract.AppNotifier:
			return 0, fmt.Errorf("%w: pod %s of %s runs in namespace %s: give --namespace=%s, or stop that one before", ErrElsewhere, p.Name, app, p.Namespace, p.Namespace)
		case p.Namespace != r.Namespace:
			continue
		case !p.Deleted.IsZero() && w.Now.After(p.Deleted.Time()) && !ready[p.Node]:
			// Its kubelet is gone, and nobody else says that it has ended. A scaler that acts still
			// holds its Lease.
			continue
		}
		running++
		if app == contract.AppAgent && p.Node != "" && p.Ready && p.Deleted.IsZero() && !isDryRun(&pods.Items[i]) {
			w.Agents[p.Node] = true
		}
	}
	return running, nil
}

// isDryRun reports whether an agent does nothing but say what it would: it is waited for in vain.
func isDryRun(p *corev1.Pod) (dry bool) {
	for _, c := range p.Spec.Containers {
		for _, arg := range slices.Concat(c.Command, c.Args) {
			value, is := strings.CutPrefix(arg, "--dry-run")
			switch on, err := strconv.ParseBool(strings.TrimPrefix(value, "=")); {
			case is && value == "":
				dry = true
			case is && err == nil:
				dry = on
			}
		}
	}
	return dry
}

func (r *Remover) nodes(ctx context.Context, w *uninstall.World) error {
	nodes, err := r.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	w.Nodes = nil // once to know whose kubelet is gone, and once when it is known who has ended
	for i := range nodes.Items {
		w.Nodes = append(w.Nodes, fleet.NodeFrom(&nodes.Items[i]))
	}
	system, err := r.Client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading namespace %s, whose UID owns groups: %w", metav1.NamespaceSystem, err)
	}
	w.Cluster = system.UID
	return nil
}

func (r *Remover) objects(ctx context.Context, w *uninstall.World) error {
	maps, err := r.Client.CoreV1().ConfigMaps(r.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing config maps: %w", err)
	}
	keep := func(kind string, o *metav1.ObjectMeta) {
		if object := (uninstall.Object{Kind: kind, Name: o.Name, UID: o.UID}); uninstall.Made(object, o.Annotations) {
			w.Objects = append(w.Objects, object)
		}
	}
	for i := range maps.Items {
		keep("ConfigMap", &maps.Items[i].ObjectMeta)
	}
	leases, err := r.Client.CoordinationV1().Leases(r.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing leases: %w", err)
	}
	for i := range leases.Items {
		l := &leases.Items[i]
		keep("Lease", &l.ObjectMeta)
		if l.Name == contract.LeaseScaler && live(l, w.Now) {
			w.Leader = *l.Spec.HolderIdentity
		}
	}
	return nil
}

// live reports whether a Lease has a holder that may still go by it. Clocks differ, so it has twice
// its time.
func live(l *coordinationv1.Lease, now time.Time) bool {
	s := l.Spec
	if s.HolderIdentity == nil || *s.HolderIdentity == "" || s.RenewTime == nil || s.LeaseDurationSeconds == nil {
		return false
	}
	return now.Before(s.RenewTime.Add(2 * time.Duration(*s.LeaseDurationSeconds) * time.Second))
}

func (r *Remover) memory(ctx context.Context, w *uninstall.World) error {
	if !r.ours { // it goes last, and another may be left elsewhere
		if err := r.stateElsewhere(ctx); err != nil {
			return err
		}
	}
	memory := status.NewMemory(r.Client.CoreV1().ConfigMaps(r.Namespace))
	if err := memory.Load(ctx); err != nil {
		return fmt.Errorf("%w: it says of which groups Windlass suspended AZRebalance; read it, delete it, and resume them by hand", err)
	}
	state := memory.State()
	w.Suspending, w.Heartbeats = state.Suspending, map[string]time.Time{}
	maps.Copy(w.Heartbeats, state.Heartbeats)
	maps.Copy(w.Heartbeats, r.beats) // which are later
	return nil
}

// stateElsewhere fails where there is no persisted state but in another namespace.
func (r *Remover) stateElsewhere(ctx context.Context) error {
	states, err := r.Client.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, contract.ConfigMapState).String()})
	if err != nil {
		return fmt.Errorf("listing config maps %s: %w", contract.ConfigMapState, err)
	}
	var other string
	for _, m := range states.Items {
		switch {
		case m.Name != contract.ConfigMapState:
		case m.Namespace == r.Namespace:
			r.ours = true
			return nil
		default:
			other = m.Namespace
		}
	}
	if other == "" {
		return nil
	}
	return fmt.Errorf("%w: ConfigMap %s is in namespace %s: give --namespace=%s, or delete it where no Windlass uses it", ErrElsewhere, contract.ConfigMapState, other, other)
}

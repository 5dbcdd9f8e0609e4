package remove

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/status"
	"windlass.dev/windlass/scaler/uninstall"
)

// Observe reads what is there. AWS comes last: what the cluster tells of instances is not newer.
func (r *Remover) Observe(ctx context.Context) (uninstall.World, error) {
	w := uninstall.World{Now: time.Now(), Namespace: r.Namespace, Agents: map[string]bool{}}
	for _, read := range []func(context.Context, *uninstall.World) error{r.programs, r.nodes, r.objects, r.memory} {
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
		return w, fmt.Errorf("no group was read, and ConfigMap %s names %s: give the flags that name the groups as the scaler has them; where those groups are gone, delete the ConfigMap", contract.ConfigMapState, strings.Join(unread, ", "))
	}
	return w, nil
}

func (r *Remover) programs(ctx context.Context, w *uninstall.World) error {
	for _, app := range apps {
		options := metav1.ListOptions{LabelSelector: r.selector(app)}
		pods, err := r.Client.CoreV1().Pods(r.Namespace).List(ctx, options)
		if err != nil {
			return fmt.Errorf("listing pods of %s: %w", app, err)
		}
		running := 0
		for i := range pods.Items {
			p := fleet.PodFrom(&pods.Items[i])
			if p.Ended() {
				continue
			}
			running++
			if app == contract.AppAgent && p.Node != "" && p.Ready && p.Deleted.IsZero() {
				w.Agents[p.Node] = true
			}
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
			w.Programs = append(w.Programs, uninstall.Program{App: app, Kind: "DaemonSet", Name: d.Name, UID: d.UID, Wanted: 1, Pods: running})
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

func (r *Remover) nodes(ctx context.Context, w *uninstall.World) error {
	nodes, err := r.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
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

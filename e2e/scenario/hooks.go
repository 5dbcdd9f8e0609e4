package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/fleet"
)

// hook reads name[/heartbeat[/global[/result]]]; where unsaid 15m, 1h and CONTINUE.
func hook(value string) (fleet.Hook, error) {
	h := fleet.Hook{
		Transition: fleet.OnTerminate, Default: "CONTINUE",
		Heartbeat: metav1.Duration{Duration: 15 * time.Minute}, Global: metav1.Duration{Duration: time.Hour},
	}
	parts := strings.Split(value, "/")
	h.Name = parts[0]
	for i, d := range []*metav1.Duration{&h.Heartbeat, &h.Global} {
		if len(parts) <= i+1 || parts[i+1] == "" {
			continue
		}
		read, err := duration(parts[i+1])
		if err != nil {
			return fleet.Hook{}, err
		}
		d.Duration = read
	}
	if len(parts) > 3 {
		h.Default = parts[3]
	}
	return h, nil
}

func printHook(h fleet.Hook) string {
	word := "hook="
	if h.Transition == fleet.OnLaunch {
		word = "launchhook="
	}
	text := fmt.Sprintf("%s%s/%s/%s", word, h.Name, h.Heartbeat.Duration, h.Global.Duration)
	if h.Default != "CONTINUE" {
		text += "/" + h.Default
	}
	return text
}

// heldBy are the hooks that hold an instance in a state. On the way into a warm pool
// they are those of launches: the model has no scale-in that returns instances.
func heldBy(g *fleet.Group, state string) []fleet.Hook {
	transition := ""
	switch state {
	case fleet.TerminatingWait, fleet.WarmedTerminatingWait:
		transition = fleet.OnTerminate
	case fleet.PendingWait, fleet.WarmedPendingWait:
		transition = fleet.OnLaunch
	}
	return slices.DeleteFunc(slices.Clone(g.Hooks), func(h fleet.Hook) bool { return h.Transition != transition })
}

// Complete is CompleteLifecycleAction with CONTINUE: the instance proceeds when
// all hooks of its group that hold it are completed. To complete one again while
// others hold it changes nothing, nor does one that does not hold it.
func (w *World) Complete(group, instance, hook string) error {
	g, i := w.group(group), w.instance(instance)
	if i != nil && (i.Warmed() || i.State == fleet.Terminating) && !strings.HasSuffix(i.State, ":Wait") {
		return nil // it was the other hook that held it, or it is not there yet
	}
	if g == nil || i == nil || !strings.HasSuffix(i.State, ":Wait") {
		return fmt.Errorf("no active lifecycle action %s for instance %s", hook, instance)
	}
	if !slices.Contains(w.completed[instance], hook) {
		w.completed[instance] = append(w.completed[instance], hook)
	}
	w.proceed(g, instance)
	return nil
}

// Expire lets every hook go that has waited for its timeout without a heartbeat,
// or for its global one.
func (w *World) Expire() {
	for g := range w.Groups {
		group := &w.Groups[g]
		for _, i := range group.Instances {
			for _, h := range heldBy(group, i.State) {
				if w.expired(i, h) {
					w.completed[i.ID] = append(w.completed[i.ID], h.Name)
					w.proceed(group, i.ID)
				}
			}
		}
	}
}

func (w *World) expired(i fleet.Instance, h fleet.Hook) bool {
	last := i.TerminatingSince
	if beat, ok := w.State.Heartbeats[fleet.HeartbeatKey(i.ID, h.Name)]; ok {
		last = beat
	}
	return w.Now.Sub(last) >= h.Heartbeat.Duration || w.Now.Sub(i.TerminatingSince) >= h.Global.Duration
}

// proceed moves an instance on when no hook holds it any more.
func (w *World) proceed(g *fleet.Group, instance string) {
	i := w.instance(instance)
	for _, h := range heldBy(g, i.State) {
		if !slices.Contains(w.completed[instance], h.Name) {
			return
		}
	}
	switch i.State {
	case fleet.PendingWait:
		i.State = fleet.InService
	case fleet.WarmedPendingWait:
		i.State = "Warmed:Stopped"
	case fleet.WarmedTerminatingWait:
		i.State = "Warmed:Terminating:Proceed"
	default:
		i.State = fleet.TerminatingProceed
	}
	delete(w.completed, instance)
}

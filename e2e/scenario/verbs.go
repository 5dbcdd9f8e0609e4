package scenario

import (
	"fmt"
	"slices"

	"windlass.dev/windlass/pkg/fleet"
)

// verbs is the language: what a line does to the world.
var verbs = map[string]func(*World, line) error{
	"now":        now,
	"group":      group,
	"instance":   instance,
	"node":       node,
	"pod":        pod,
	"pdb":        pdb,
	"owner":      owner,
	"buffer":     buffer,
	"quota":      quota,
	"volume":     volume,
	"daemonset":  daemonSet,
	"request":    request,
	"report":     report,
	"permit":     permit,
	"notyet":     notYet,
	"mark":       mark,
	"cluster":    cluster,
	"rival":      rival,
	"machine":    machine,
	"nodepool":   nodePool,
	"handler":    handler,
	"outage":     outage,
	"leads":      leads,
	"steered":    steered,
	"recognised": recognised,
	"asked":      asked,
	"launched":   launched,
	"ended":      ended,
	"left":       left,
	"graced":     graced,
	"backoff":    backOff,
	"giveup":     giveUp,
	"unsteered":  unsteered,
	"suspending": suspending,
	"launch":     launch,
	"grown":      grown,
	"swap":       swap,
	"swappause":  swapPause,
	"burst":      burst,
	"shrunk":     shrunk,
	"failed":     failed,
	"heartbeat":  heartbeat,
	"completed":  completed,
	"held":       held,
	"cutin":      cutIn,
	"pooling":    pooling,
	"outlived":   outlived,
	"alone":      alone,
	"unjoined":   unjoined,
	"deserted":   deserted,
	"awaited":    awaited,
	"disputed":   disputed,
	"owndrain":   ownDrain,
	"promise":    promise,
	"returning":  returning,
	"seen":       seen,
	"lesson":     lesson,
	"agent":      agent,
	"gone":       gone,
	"priorities": priorities,
}

// now TIME: the moment of the snapshot.
func now(w *World, l line) error {
	t, err := clockTime(l.name)
	if err != nil {
		return err
	}
	w.Now = t
	return nil
}

// gone KIND/NAME takes a thing out of the world: pod, node (with its pods and
// its instance), instance, pdb, group, buffer, rival.
func gone(w *World, l line) error {
	kind, name, err := kindAndName(l.name)
	if err != nil {
		return err
	}
	before := w.count()
	switch kind {
	case "pod":
		w.Pods = slices.DeleteFunc(w.Pods, func(p *fleet.Pod) bool { return p.Key() == podKey(name) })
	case "node":
		w.dropNode(name)
	case "instance":
		w.dropInstance(name)
	case "pdb":
		w.Budgets = slices.DeleteFunc(w.Budgets, func(b fleet.Budget) bool { return b.Key() == podKey(name) })
	case "group":
		w.Groups = slices.DeleteFunc(w.Groups, func(g fleet.Group) bool { return g.Name == name })
	case "buffer":
		w.Buffers = slices.DeleteFunc(w.Buffers, func(b fleet.Buffer) bool { return b.Key() == podKey(name) })
	case "rival":
		w.Autoscalers = nil
		return nil
	default:
		return fmt.Errorf("want pod, node, instance, pdb, group, buffer or rival before the slash")
	}
	if w.count() == before {
		return fmt.Errorf("there is no such %s", kind)
	}
	return nil
}

// priorities TEXT: what the ConfigMap of the expander priority says.
func priorities(w *World, l line) error {
	w.Priorities = &l.name
	return nil
}

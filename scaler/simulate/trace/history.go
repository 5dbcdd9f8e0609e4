package trace

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/pkg/fleet"
)

// Record is what is known of a pod that was there.
type Record struct {
	Namespace, Name string
	// Kind and Owner are its controller's; empty for naked pods.
	Kind, Owner string
	// MilliCPU and Memory, in bytes, are what its containers request.
	MilliCPU, Memory int64
	// Created and Ended are seconds since 1970, Ended 0 where no end is known. Seen is when
	// it was last seen alive, 0 where that is not known.
	Created, Ended, Seen int64
}

// History is the pods of a live cluster, in any order. Its zero value is empty.
type History struct {
	// first and last are between which moments something is known.
	first, last int64
	pods        []Record
	at          map[identity]int
}

// identity tells a pod from one that was made again under its name.
type identity struct {
	namespace, name string
	created         int64
}

// Window is which part of a history is played.
type Window struct {
	// Until is its end; zero is the last moment that is known.
	Until time.Time
	// Length is how long it is at the most.
	Length time.Duration
	Slice
}

// Check returns what is wrong with the window.
func (w Window) Check() error {
	if w.Length <= 0 || w.Length > mostWindow {
		return fmt.Errorf("a window of %s: want more than 0, and 366 days at the most", w.Length)
	}
	return w.check()
}

// MostPods is how many pods a history may have.
const MostPods = 1_000_000

const (
	mostWindow = 366 * day * time.Second
	// unseen is for how many seconds before the last moment of a history a pod may not have
	// been seen and still be alive: what records pods does not record all of them at once.
	unseen = 300
)

// Cover adds a time for which the history has all pods.
func (h *History) Cover(from, to int64) {
	if h.first == 0 || from < h.first {
		h.first = from
	}
	h.last = max(h.last, to)
}

// Add adds a pod, or what is newer of one that is known. Pods of DaemonSets and static pods
// belong to their nodes, and are none of the history's.
func (h *History) Add(r Record) error {
	if r.Kind == "DaemonSet" || r.Kind == "Node" {
		return nil
	}
	key := identity{r.Namespace, r.Name, r.Created}
	n, known := h.at[key]
	if !known {
		if len(h.pods) == MostPods {
			return fmt.Errorf("there are more than %d pods: want a shorter time, or fewer namespaces", MostPods)
		}
		if h.at == nil {
			h.at = map[identity]int{}
		}
		h.at[key] = len(h.pods)
		h.pods = append(h.pods, r)
		return nil
	}
	old := h.pods[n]
	if r.Seen < old.Seen {
		old, r = r, old
	}
	r.Seen, r.Ended = max(r.Seen, old.Seen), max(r.Ended, old.Ended)
	h.pods[n] = r
	return nil
}

// end is when a pod ended; Never where it is still there at the last moment.
func (h *History) end(r Record) int64 {
	switch {
	case r.Ended > 0:
		return r.Ended
	case r.Seen > 0 && r.Seen < h.last-unseen:
		return r.Seen
	}
	return Never
}

// Trace has the pods of a window come and end as they did. With a snapshot of the same cluster
// its groups and nodes are there, and what pods need beside cpu and memory is taken from those
// of the same owner that the snapshot has.
func (h *History) Trace(name string, w Window, snapshot *fleet.Snapshot) (Trace, error) {
	if err := w.Check(); err != nil {
		return Trace{}, err
	}
	if h.last == 0 {
		return Trace{}, errors.New("the history has no pods")
	}
	if h.first == h.last {
		return Trace{}, fmt.Errorf("all records are of one moment, %s: append later ones, or leave the column seen out", stamp(h.last))
	}
	to := h.last
	if !w.Until.IsZero() {
		to = min(to, w.Until.Unix())
	}
	from := max(h.first, to-int64(w.Length/time.Second))
	if from >= to {
		return Trace{}, fmt.Errorf("no pod is known before %s: the history is that of %s to %s", stamp(to), stamp(h.first), stamp(h.last))
	}
	g := newGather(time.Unix(from, 0).UTC(), from, to, w.Slice)
	g.trace.Name = fmt.Sprintf("%s, %s to %s UTC", name, stamp(from), stamp(to))
	var alike alike
	if snapshot != nil {
		g.trace.Snapshot = asOf(*snapshot, g.trace.Start)
		alike = alikeIn(*snapshot)
	}
	pods := slices.Clone(h.pods)
	slices.SortFunc(pods, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, r := range pods {
		divided := func(n int64) int64 { return int64(math.Round(float64(n) / w.Divide)) }
		r.MilliCPU, r.Memory = divided(r.MilliCPU), divided(r.Memory)
		key, like := alike.workload(r)
		g.add(row{id: r.Namespace + "/" + r.Name, service: r.Namespace + "/" + r.service(), created: r.Created, deleted: h.end(r)}, key, like)
	}
	return g.done(), nil
}

// owner is the name of the controller, or that of a naked pod.
func (r Record) owner() string { return cmp.Or(r.Owner, r.Name) }

// service is what owners belong to that follow each other: ReplicaSets to a Deployment, Jobs to
// a CronJob. Both have its name and a suffix.
func (r Record) service() string {
	name := r.owner()
	if i := strings.LastIndexByte(name, '-'); i > 0 && (r.Kind == "ReplicaSet" || r.Kind == "Job") {
		return name[:i]
	}
	return name
}

func stamp(seconds int64) string { return time.Unix(seconds, 0).UTC().Format("2006-01-02 15:04") }

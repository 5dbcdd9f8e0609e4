// Package shadowlog reads the log of a shadow as a history: which pods came and ended, and what the
// groups are. What the log does not hold is said.
package shadowlog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"windlass.dev/windlass/scaler/shadow/record"
	"windlass.dev/windlass/scaler/simulate/trace"
	"windlass.dev/windlass/scaler/simulate/world"
)

// Log is what is played of a log.
type Log struct {
	History *trace.History
	// Groups are those that there were last, and Lacks is what the log does not hold.
	Groups []world.Group
	Lacks  []string
}

// mostNamed is how many gaps, and how many groups that cannot be played, are named.
const mostNamed = 5

// Of reads a log. A pod whose end was not seen has ended where it was known last: at the start of the
// first gap after that, or at the list that lacks it.
func Of(book record.Book) (Log, error) {
	r, err := read(book)
	if err != nil {
		return Log{}, err
	}
	out := Log{History: &trace.History{}, Lacks: r.lacks(book)}
	out.History.Cover(r.first, r.last)
	for _, pod := range r.pods {
		if err := out.History.Add(pod); err != nil {
			return Log{}, err
		}
	}
	var unplayed []string
	out.Groups, unplayed = groupsOf(r.groups)
	out.Lacks = append(out.Lacks, few(unplayed)...)
	return out, nil
}

func read(book record.Book) (*reading, error) {
	r := &reading{open: map[identity]*life{}, lists: map[time.Time]*list{}}
	for _, one := range book.Records {
		if one.Pods != nil {
			r.heap(one)
		}
	}
	for _, one := range book.Records {
		r.take(one)
	}
	if !r.listed {
		return nil, fmt.Errorf("the log has no whole list of pods: a shadow writes one when it begins, and every %s; it has none if it is of a version before, or if there are more pods than have room in one", record.ListEvery)
	}
	if r.first == r.last {
		return nil, fmt.Errorf("the log is of one moment, %s: let the shadow run for longer", stamp(r.first))
	}
	for id, l := range r.open {
		r.add(id, l.of, 0)
	}
	return r, nil
}

// identity tells a pod from one that was made again under its name.
type identity struct {
	namespace, name string
	created         int64
}

// life is a pod that has not ended, and when it was last known to be there.
type life struct {
	of    record.PodsOf
	known int64
}

// list is the pods that there were at a moment.
type list struct {
	pods  map[identity]bool
	count int
	done  bool
}

func (l *list) whole() bool { return len(l.pods) == l.count }

// gap is a time that was not seen, in seconds since 1970.
type gap struct {
	from, to int64
	// unseen is how many pods ended in it.
	unseen int
}

type reading struct {
	pods   []trace.Record
	open   map[identity]*life
	lists  map[time.Time]*list
	listed bool
	gaps   []gap
	// first and last are the moments of the log, seen that of the latest sample.
	first, last int64
	seen        time.Time
	// unended are pods whose end found no room in the log.
	unended, undated, parts int
	groups                  []record.Shape
	grouped                 time.Time
}

// heap puts the parts of a list together.
func (r *reading) heap(one record.Record) {
	if !one.Pods.List {
		return
	}
	l := r.lists[one.At]
	if l == nil {
		l = &list{pods: map[identity]bool{}, count: one.Pods.Count}
		r.lists[one.At] = l
	}
	for _, of := range one.Pods.Of {
		for _, p := range of.Pods {
			l.pods[identity{of.Namespace, p.Name, p.Created}] = true
		}
	}
}

func (r *reading) add(id identity, of record.PodsOf, ended int64) {
	r.pods = append(r.pods, trace.Record{
		Namespace: id.namespace, Name: id.name, Kind: of.Kind, Owner: of.Owner, MilliCPU: of.MilliCPU, Memory: of.Memory, Created: id.created, Ended: ended,
	})
}

func (r *reading) take(one record.Record) {
	if one.Began == nil && one.Sample == nil && one.Pods == nil && one.Groups == nil {
		return // Events have dates of others
	}
	at := one.At.Unix()
	if r.first == 0 {
		r.first = at
	}
	r.last = max(r.last, at)
	if !r.seen.IsZero() && (one.Began != nil || one.At.Sub(r.seen) > record.Missed) {
		r.gaps = append(r.gaps, gap{from: r.seen.Unix(), to: at})
	}
	r.seen = one.At
	switch {
	case one.Pods != nil:
		r.follow(one, at)
	case one.Groups != nil && one.At.Equal(r.grouped):
		r.groups = append(r.groups, one.Groups.Of...)
	case one.Groups != nil:
		r.groups, r.grouped = slices.Clone(one.Groups.Of), one.At
	}
}

// follow takes over pods that came, ended, or are there.
func (r *reading) follow(one record.Record, at int64) {
	for _, of := range one.Pods.Of {
		lives := of.Pods
		of.Pods = nil
		for _, p := range lives {
			id := identity{of.Namespace, p.Name, p.Created}
			switch {
			case p.Created == 0 || p.Ended > 0 && p.Ended < p.Created:
				r.undated++
			case p.Ended == 0:
				r.open[id] = &life{of, at}
			default:
				delete(r.open, id)
				r.add(id, of, p.Ended)
			}
		}
	}
	l := r.lists[one.At]
	if l == nil || l.done {
		return
	}
	l.done = true
	if !l.whole() {
		r.parts++
		return
	}
	r.listed = true
	r.judge(l, at)
}

// judge ends the pods that a list lacks.
func (r *reading) judge(l *list, at int64) {
	for id, p := range r.open {
		if l.pods[id] || id.created > at {
			continue
		}
		ended := at
		if i := slices.IndexFunc(r.gaps, func(g gap) bool { return g.from >= p.known }); i >= 0 {
			ended = r.gaps[i].from
			r.gaps[i].unseen++
		} else {
			r.unended++
		}
		delete(r.open, id)
		r.add(id, p.of, max(ended, id.created+1))
	}
}

// lacks is what the log does not hold.
func (r *reading) lacks(book record.Book) (all []string) {
	if book.Cut {
		all = append(all, fmt.Sprintf("what was before %s: the log is bounded, and its beginning has made room", stamp(r.first)))
	}
	var gaps []string
	for _, g := range r.gaps {
		if g.to-g.from <= int64(record.Missed/time.Second) && g.unseen == 0 {
			continue // a restart
		}
		line := fmt.Sprintf("%s to %s: no pods that came and ended then are known", stamp(g.from), stamp(g.to))
		if g.unseen > 0 {
			line += fmt.Sprintf(", and %d that ended then end at its start", g.unseen)
		}
		gaps = append(gaps, line)
	}
	all = append(all, few(gaps)...)
	for _, missing := range []struct {
		count int
		words string
	}{
		{book.Omitted.Lives, "%d times that a pod came, ended or was listed: they found no room in the log"},
		{r.unended, "when %d pods ended: they end at the list that lacks them"},
		{r.undated, "dates of %d pods: they are left out"},
		{r.parts, "parts of %d lists of pods"},
	} {
		if missing.count > 0 {
			all = append(all, fmt.Sprintf(missing.words, missing.count))
		}
	}
	return append(all, few(book.Faults)...)
}

// few names the first, and counts the others.
func few(lines []string) []string {
	if more := len(lines) - mostNamed; more > 0 {
		return append(slices.Clone(lines[:mostNamed]), fmt.Sprintf("%d more of the kind", more))
	}
	return lines
}

// groupsOf are the groups that can be played; unplayed says why others cannot.
func groupsOf(shapes []record.Shape) (groups []world.Group, unplayed []string) {
	byName := map[string]record.Shape{}
	for _, s := range shapes {
		byName[s.Group] = s
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		s := byName[name]
		if err := playable(s); err != nil {
			unplayed = append(unplayed, fmt.Sprintf("group %s: %v: it is left out", name, err))
			continue
		}
		groups = append(groups, world.Group{
			Name: s.Group, Type: s.Type, Price: s.DollarsPerHour, Spot: s.Spot, Min: s.Min, Max: s.Max, Zones: s.Zones, Unsteered: s.Unsteered, Taints: s.Taints,
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: *resource.NewMilliQuantity(s.MilliCPU, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(s.Memory, resource.BinarySI),
				corev1.ResourcePods: *resource.NewQuantity(int64(s.Pods), resource.DecimalSI),
			},
		})
	}
	return groups, unplayed
}

// playable is why a group cannot be played; nil where it can.
func playable(s record.Shape) error {
	switch {
	case s.MilliCPU == 0 || s.Memory == 0 || s.Pods == 0 || s.Type == "":
		return errors.New("what its nodes are is not known")
	case s.DollarsPerHour == 0:
		return errors.New("what its nodes cost is not known")
	case len(s.Zones) == 0:
		return errors.New("its zones are not known")
	case s.Max == 0 || s.Max < s.Min:
		return fmt.Errorf("it has %d to %d nodes", s.Min, s.Max)
	case s.Group == "" || strings.Contains(s.Group, ":"):
		return errors.New("it has no name that can be played")
	}
	return nil
}

func stamp(seconds int64) string { return time.Unix(seconds, 0).UTC().Format("2006-01-02 15:04") }

package shadowlog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/shadow"
	"windlass.dev/windlass/scaler/shadow/record"
	"windlass.dev/windlass/scaler/simulate/trace"
	"windlass.dev/windlass/scaler/simulate/world"
)

// being is a pod of the world that is played, from a second to another.
type being struct {
	pod        *fleet.Pod
	from, ends int64
}

// beings are the pods of a generated trace, and one of a DaemonSet, which is none of the history's.
func beings(t trace.Trace) (all []being) {
	for i, p := range t.Pods {
		w := t.Workloads[p.Workload]
		name := fmt.Sprintf("%s-%d", w.Name, i)
		all = append(all, being{&fleet.Pod{
			Namespace: w.Namespace, Name: name, UID: types.UID(name), Created: fleet.SecondOf(t.Start.Add(time.Duration(p.Arrive) * time.Second)), Owner: w.Owner(), Spec: w.Spec, Node: "n",
		}, p.Arrive, p.Ends})
	}
	daemon := trace.Workload{Namespace: "n", Name: "agent", Kind: "DaemonSet"}
	return append(all, being{&fleet.Pod{Namespace: "n", Name: "agent-x", UID: "agent-x", Created: fleet.SecondOf(t.Start), Owner: daemon.Owner(), Spec: &corev1.PodSpec{}, Node: "n"}, 0, trace.Never})
}

// play has a shadow see the pods until the end of the trace, but for the time of the gap, after which
// another one goes on; and returns its log.
func play(t interface{ Fatal(...any) }, played trace.Trace, groups []fleet.Group, without func(at int64) bool) record.Book {
	all := beings(played)
	moments := map[int64]bool{}
	for at := int64(0); at < played.Seconds; at += 60 {
		moments[at] = true
	}
	for _, b := range all {
		moments[b.from], moments[b.ends] = true, true
	}
	log, _ := record.Resume(nil)
	keep := func(records []record.Record) {
		for _, r := range records {
			if err := log.Append(r, r.At); err != nil {
				t.Fatal(err)
			}
		}
	}
	var s *shadow.Shadow
	for _, at := range slices.Sorted(maps.Keys(moments)) {
		if at >= played.Seconds {
			break
		}
		if without(at) {
			s = nil
			continue
		}
		now := played.Start.Add(time.Duration(at) * time.Second)
		if s == nil {
			s = shadow.New(shadow.Memory{}, false)
			keep([]record.Record{{At: now, Began: &record.Began{}}})
		}
		snapshot := fleet.Snapshot{Now: now, Groups: groups}
		for _, b := range all {
			if b.from <= at && at < b.ends {
				snapshot.Pods = append(snapshot.Pods, b.pod)
			}
		}
		s.See(snapshot)
		keep(s.Records())
	}
	chunks, err := log.Unwritten()
	if err != nil {
		t.Fatal(err)
	}
	return record.Read(chunks)
}

// TestPlayed: whatever a world is, what a shadow beside it has logged is played as that world was: all
// pods as they came and ended, from the first record that is left; but for those of a time that was not
// seen. Where that is, and where the beginning is lost, is said.
func TestPlayed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		played, err := trace.Generate(trace.Mix{Seed: rapid.Uint64().Draw(t, "seed"), Days: 0.6, Pods: rapid.IntRange(1, 30).Draw(t, "pods")})
		if err != nil {
			t.Fatal(err)
		}
		from, to := int64(-1), int64(-1) // the gap
		if rapid.Bool().Draw(t, "gap") {
			from = int64(rapid.IntRange(100, 30_000).Draw(t, "from"))
			to = from + int64(rapid.IntRange(200, 9000).Draw(t, "seconds"))
		}
		book := play(t, played, nil, func(at int64) bool { return at >= from && at < to })
		cut := int64(rapid.SampledFrom([]int{0, 0, 10_000, 50_000}).Draw(t, "cut")) // lists come 12 hours after a start
		if cut > 0 {
			book.Cut = true
			book.Records = slices.DeleteFunc(book.Records, func(r record.Record) bool { return r.At.Before(played.Start.Add(time.Duration(cut) * time.Second)) })
		}
		listed := slices.ContainsFunc(book.Records, func(r record.Record) bool { return r.Pods != nil && r.Pods.List })
		got, err := read(book)
		if !listed {
			if err == nil || !strings.Contains(err.Error(), "no whole list of pods") {
				t.Fatalf("without a list: %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		start := played.Start.Unix()
		first, last := got.first-start, got.last-start
		latest := cut + 60
		if from <= latest && to > cut { // what is left may begin where the gap ends
			latest = to + 60
		}
		if first < cut || first > latest || last < played.Seconds-60 {
			t.Fatalf("it is of %d to %d s, of a log of %d to %d", first, last, cut, played.Seconds)
		}
		said := strings.Join(got.lacks(book), "\n")
		gone := from >= first && from >= 0
		if strings.Contains(said, "its beginning has made room") != (cut > 0) || strings.Contains(said, "no pods that came and ended then") != gone {
			t.Fatalf("cut at %d, not seen from %d to %d, and it says %q", cut, from, to, said)
		}
		is := map[string]trace.Record{}
		for _, r := range got.pods {
			if _, twice := is[r.Name]; twice {
				t.Fatalf("%s is there twice", r.Name)
			}
			is[r.Name] = r
		}
		unseen := func(at int64) bool { return gone && at > from-60 && at <= to+60 }
		for _, b := range beings(played) {
			r, there := is[b.pod.Name]
			delete(is, b.pod.Name)
			switch {
			case b.pod.Owner.Kind == "DaemonSet" || b.from > last || b.ends <= first:
				if there && b.ends != first {
					t.Fatalf("%s of %d to %d is there: %+v", b.pod.Name, b.from, b.ends, r)
				}
				continue
			case !there && (unseen(b.from) && unseen(b.ends) || gone && b.ends > from-60 && b.ends <= to+60 && b.from < first):
				continue // nothing has told of it
			case !there:
				t.Fatalf("%s of %d to %d is missing", b.pod.Name, b.from, b.ends)
			}
			requests := b.pod.Spec.Containers[0].Resources.Requests
			want := trace.Record{
				Namespace: b.pod.Namespace, Name: b.pod.Name, Kind: b.pod.Owner.Kind, Owner: b.pod.Owner.Name,
				MilliCPU: requests.Cpu().MilliValue(), Memory: requests.Memory().Value(), Created: start + b.from, Ended: start + b.ends,
			}
			if b.ends > last {
				want.Ended = 0
			}
			if ended := r.Ended - start; unseen(b.ends) && ended >= from-60 && ended <= to+60 {
				want.Ended = r.Ended
			}
			if diff := cmp.Diff(want, r); diff != "" {
				t.Fatalf("%s of %d to %d, not seen from %d to %d (-world +played):\n%s", b.pod.Name, b.from, b.ends, from, to, diff)
			}
		}
		if len(is) > 0 {
			t.Fatalf("these were not there: %v", is)
		}
	})
}

// noon is a moment, and at a record of so many minutes later.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(minutes int, r record.Record) record.Record {
	r.At = noon.Add(time.Duration(minutes) * time.Minute)
	return r.Normal()
}

func web(lives ...record.Life) []record.PodsOf {
	return []record.PodsOf{{Namespace: "shop", Kind: "ReplicaSet", Owner: "web-1", MilliCPU: 500, Memory: 1 << 30, Pods: lives}}
}

// TestLacks: whatever is wrong with a log is said, and nothing of it is taken for true.
func TestLacks(t *testing.T) {
	created := noon.Unix() - 3600
	a, b := record.Life{Name: "a", Created: created}, record.Life{Name: "b", Created: created}
	list := func(count int, lives ...record.Life) record.Record {
		return record.Record{Pods: &record.Pods{List: true, Count: count, Of: web(lives...)}}
	}
	sample := record.Record{Sample: &record.Sample{}}
	for _, c := range []struct {
		name string
		book record.Book
		// pods are their ends, in minutes after noon; 0 is none.
		pods map[string]int64
		want string
	}{
		{"nothing", record.Book{}, nil, "error: the log has no whole list of pods"},
		{"one moment", record.Book{Records: []record.Record{at(0, list(1, a))}}, nil, "error: the log is of one moment, 2026-03-01 12:00"},
		{"half a list", record.Book{Records: []record.Record{at(0, list(2, a)), at(1, sample)}}, nil, "error: the log has no whole list"},
		{"half a list after a whole one", record.Book{Records: []record.Record{at(0, list(2, a, b)), at(1, list(3, a))}}, map[string]int64{"a": 0, "b": 0}, "parts of 1 lists of pods"},
		{"an end that is not logged", record.Book{Omitted: record.Omitted{Records: 1, Lives: 1}, Records: []record.Record{at(0, list(2, a, b)), at(1, sample), at(2, list(1, a))}},
			map[string]int64{"a": 0, "b": 2}, "1 times that a pod came, ended or was listed: they found no room in the log\nwhen 1 pods ended: they end at the list that lacks them"},
		{"a gap", record.Book{Records: []record.Record{at(0, list(2, a, b)), at(1, sample), at(30, record.Record{Began: &record.Began{}}), at(30, list(1, a))}},
			map[string]int64{"a": 0, "b": 1}, "2026-03-01 12:01 to 2026-03-01 12:30: no pods that came and ended then are known, and 1 that ended then end at its start"},
		{"dates of a forger", record.Book{Records: []record.Record{at(0, list(1, a)), at(1, record.Record{Pods: &record.Pods{Of: web(record.Life{Name: "x"}, record.Life{Name: "y", Created: created, Ended: 1})}})}},
			map[string]int64{"a": 0}, "dates of 2 pods: they are left out"},
		{"an Event of a tenant's date", record.Book{Records: []record.Record{{At: noon.AddDate(-1, 0, 0), Seen: &record.Seen{By: record.ByClaim}}, at(0, list(1, a)), at(1, sample)}}, map[string]int64{"a": 0}, ""},
		{"a chunk that cannot be read", record.Book{Faults: []string{"chunk 3 is missing"}, Records: []record.Record{at(0, list(1, a)), at(1, sample)}}, map[string]int64{"a": 0}, "chunk 3 is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := read(c.book)
			if want, fails := strings.CutPrefix(c.want, "error: "); fails || err != nil {
				if err == nil || !fails || !strings.Contains(err.Error(), want) {
					t.Fatalf("%v, want %q", err, c.want)
				}
				return
			}
			got := map[string]int64{}
			for _, p := range r.pods {
				got[p.Name] = 0
				if p.Ended > 0 {
					got[p.Name] = (p.Ended - noon.Unix()) / 60
				}
			}
			if diff := cmp.Diff(c.pods, got); diff != "" {
				t.Errorf("ends (-want +got):\n%s", diff)
			}
			if said := strings.Join(r.lacks(c.book), "\n"); said != c.want {
				t.Errorf("it says %q, want %q", said, c.want)
			}
		})
	}
}

// TestGroups: the groups that were there last are played, with the taints and prices that they had; of
// those that cannot be, it is said.
func TestGroups(t *testing.T) {
	shape := record.Shape{Group: "web", Type: "m5.large", Zones: []string{"a"}, Max: 9, MilliCPU: 2000, Memory: 8 << 30, Pods: 29, DollarsPerHour: 0.096, Taints: []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}}
	wrong := func(name string, change func(*record.Shape)) record.Shape {
		s := shape
		s.Group = name
		change(&s)
		return s
	}
	groups := func(of ...record.Shape) record.Record { return record.Record{Groups: &record.Groups{Of: of}} }
	got, err := Of(record.Book{Records: []record.Record{
		at(0, record.Record{Pods: &record.Pods{List: true}}), at(0, groups(wrong("gone", func(*record.Shape) {}))),
		at(1, groups(shape, wrong("free", func(s *record.Shape) { s.DollarsPerHour = 0 }), wrong("unknown", func(s *record.Shape) { s.MilliCPU = 0 }))),
		at(1, groups(wrong("closed", func(s *record.Shape) { s.Max = 0 }), wrong("nowhere", func(s *record.Shape) { s.Zones = nil }), wrong("a:b", func(*record.Shape) {}))),
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []world.Group{{
		Name: "web", Type: "m5.large", Price: 0.096, Max: 9, Zones: []string{"a"}, Taints: shape.Taints,
		Allocatable: corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("29")},
	}}
	if diff := cmp.Diff(want, got.Groups, cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"group a:b: it has no name that can be played: it is left out", "group closed: it has 0 to 0 nodes: it is left out", "group free: what its nodes cost is not known: it is left out",
		"group nowhere: its zones are not known: it is left out", "group unknown: what its nodes are is not known: it is left out",
	}, got.Lacks); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

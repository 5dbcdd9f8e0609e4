package prometheus

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"windlass.dev/windlass/scaler/simulate/trace"
)

// identity is what series of one pod have in common. Without uid, one that was made again under
// its name has the same.
type identity struct{ namespace, pod, uid string }

func identityOf(m map[string]string) identity {
	label := func(name string) string { return cmp.Or(m["exported_"+name], m[name]) }
	return identity{label("namespace"), label("pod"), label("uid")}
}

// life is one pod, from its creation until it was last seen alive, or until it ended; 0 where
// that is not known. All are seconds since 1970.
type life struct{ created, seen, ended int64 }

// pods are those that answers have named so far.
type pods struct {
	from        int64
	first, last int64
	lives       map[identity][]life
	// made is the creation of pods of the latest part.
	made   map[identity]int64
	owner  map[identity][2]string
	cpu    map[identity]float64
	memory map[identity]float64
	seen   map[string]bool
}

func newPods(from time.Time) *pods {
	return &pods{
		from: from.Unix(), lives: map[identity][]life{}, owner: map[identity][2]string{},
		cpu: map[identity]float64{}, memory: map[identity]float64{}, seen: map[string]bool{},
	}
}

// whole is a value as seconds or bytes; a value that is neither is 0.
func whole(v float64) int64 {
	if v > 0 && v < 1<<60 {
		return int64(v)
	}
	return 0
}

func (p *pods) alive(r result) {
	who := identityOf(r.Metric)
	for _, point := range r.Values {
		at, created := int64(point.at), whole(point.value)
		if created == 0 {
			continue
		}
		p.seen[seriesPhase] = true
		if p.first == 0 || at < p.first {
			p.first = at
		}
		p.last = max(p.last, at)
		lives := p.lives[who]
		if n := len(lives); n > 0 && lives[n-1].created == created {
			lives[n-1].seen, lives[n-1].ended = max(lives[n-1].seen, at), 0
			continue
		}
		p.lives[who] = append(lives, life{created: created, seen: at})
	}
}

func (p *pods) created(r result) {
	p.seen[seriesCreated] = true
	p.made[identityOf(r.Metric)] = whole(r.Value.value)
}

// completed ends pods whose containers have ended since they were last seen alive.
func (p *pods) completed(r result) {
	who, at := identityOf(r.Metric), whole(r.Value.value)
	lives := p.lives[who]
	n := len(lives) - 1
	for n >= 0 && lives[n].created > at {
		n--
	}
	switch made := p.made[who]; {
	case n >= 0 && at > lives[n].seen-int64(step.Seconds()):
		lives[n].ended = at
	case len(lives) == 0 && made > 0 && at >= made && at > p.from:
		p.lives[who] = []life{{created: made, ended: at}}
	}
}

func (p *pods) owners(r result) {
	p.seen[seriesOwner] = true
	kind, name := r.Metric["owner_kind"], r.Metric["owner_name"]
	if kind == "<none>" || kind == "" || name == "" {
		kind, name = "", ""
	}
	p.owner[identityOf(r.Metric)] = [2]string{kind, name}
}

func (p *pods) requests(r result) {
	p.seen[seriesRequests] = true
	of := p.cpu
	if r.Metric["resource"] == "memory" {
		of = p.memory
	}
	of[identityOf(r.Metric)] = r.Value.value
}

func (p *pods) bounded() error {
	if max(len(p.lives), len(p.owner), len(p.cpu), len(p.memory)) > trace.MostPods {
		return fmt.Errorf("there are more than %d pods: want a shorter --window, or some namespaces of them by --prometheus-match", trace.MostPods)
	}
	return nil
}

// missing is a series of which there was nothing; empty where all were there. Where no pod
// has ended there is no completion.
func (p *pods) missing() string {
	for _, name := range []string{seriesCreated, seriesPhase, seriesOwner, seriesRequests} {
		if !p.seen[name] {
			return name
		}
	}
	return ""
}

func (p *pods) history() (*trace.History, error) {
	h := &trace.History{}
	h.Cover(p.first-int64(step.Seconds()), p.last)
	for who, lives := range p.lives {
		owner := p.owner[who]
		for _, l := range lives {
			if err := h.Add(trace.Record{
				Namespace: who.namespace, Name: who.pod, Kind: owner[0], Owner: owner[1],
				MilliCPU: whole(math.Round(1000 * p.cpu[who])), Memory: whole(p.memory[who]),
				Created: l.created, Ended: l.ended, Seen: l.seen,
			}); err != nil {
				return nil, err
			}
		}
	}
	return h, nil
}

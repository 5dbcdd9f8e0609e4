package prometheus

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/common/model"

	"windlass.dev/windlass/scaler/simulate/trace"
)

// identity is what series of one pod have in common. Without uid, one that was made again under
// its name has the same.
type identity struct{ namespace, pod, uid string }

func identityOf(m model.Metric) identity {
	label := func(name model.LabelName) string { return string(cmp.Or(m["exported_"+name], m[name])) }
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
func whole(v model.SampleValue) int64 {
	if f := float64(v); f > 0 && f < 1<<60 {
		return int64(f)
	}
	return 0
}

func (p *pods) alive(m model.Matrix) {
	for _, series := range m {
		who := identityOf(series.Metric)
		for _, point := range series.Values {
			at, created := point.Timestamp.Unix(), whole(point.Value)
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
}

func (p *pods) created(v model.Vector) {
	p.made = make(map[identity]int64, len(v))
	for _, s := range v {
		p.seen[seriesCreated] = true
		p.made[identityOf(s.Metric)] = whole(s.Value)
	}
}

// completed ends pods whose containers have ended since they were last seen alive.
func (p *pods) completed(v model.Vector) {
	for _, s := range v {
		who, at := identityOf(s.Metric), whole(s.Value)
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
}

func (p *pods) owners(v model.Vector) {
	for _, s := range v {
		p.seen[seriesOwner] = true
		kind, name := string(s.Metric["owner_kind"]), string(s.Metric["owner_name"])
		if kind == "<none>" || kind == "" || name == "" {
			kind, name = "", ""
		}
		p.owner[identityOf(s.Metric)] = [2]string{kind, name}
	}
}

func (p *pods) requests(v model.Vector) {
	for _, s := range v {
		p.seen[seriesRequests] = true
		of := p.cpu
		if s.Metric["resource"] == "memory" {
			of = p.memory
		}
		of[identityOf(s.Metric)] = float64(s.Value)
	}
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
				MilliCPU: whole(model.SampleValue(math.Round(1000 * p.cpu[who]))), Memory: whole(model.SampleValue(p.memory[who])),
				Created: l.created, Ended: l.ended, Seen: l.seen,
			}); err != nil {
				return nil, err
			}
		}
	}
	return h, nil
}

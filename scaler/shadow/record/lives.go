package record

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ListEvery is how far lists of all pods are apart. One of them has the pods that came before the
// log begins, once its oldest parts have made room.
const ListEvery = 12 * time.Hour

const (
	// MostLives is how many pods one record has, MostShapes how many groups: a line of them is no
	// longer than one may be, whatever the names.
	MostLives  = 200
	MostShapes = 50
	// mostTaints and mostZones bound what is said of a group.
	mostTaints, mostZones = 5, 6
	// mostMilliCPU and mostBytes are more than a node has.
	mostMilliCPU, mostBytes = 1e8, 1 << 50
)

// Pods are pods of the world that came or ended since the evaluation before; or part of a list of all
// that are there. Those of DaemonSets and static pods belong to their nodes, and are not among them.
type Pods struct {
	// List is true for a part of a list. All parts have one date.
	List bool `json:"list,omitempty"`
	// Count is how many pods the whole list has.
	Count int      `json:"count,omitempty"`
	Of    []PodsOf `json:"of,omitempty"`
}

// PodsOf are pods that request the same, of one controller.
type PodsOf struct {
	Namespace string `json:"n"`
	// Kind and Owner are the controller's; empty for naked pods.
	Kind  string `json:"k,omitempty"`
	Owner string `json:"o,omitempty"`
	// MilliCPU and Memory, in bytes, are what the containers of each request.
	MilliCPU int64  `json:"c,omitempty"`
	Memory   int64  `json:"m,omitempty"`
	Pods     []Life `json:"p"`
}

// Life is one pod's. Its dates are seconds since 1970.
type Life struct {
	Name    string `json:"n"`
	Created int64  `json:"at"`
	// Ended is 0 while it is there.
	Ended int64 `json:"end,omitempty"`
}

// Lives counts the pods.
func (p Pods) Lives() (n int) {
	for _, of := range p.Of {
		n += len(of.Pods)
	}
	return n
}

func (p Pods) normal() *Pods {
	out := Pods{List: p.List, Count: number(p.Count)}
	left := MostLives
	for _, of := range p.Of {
		few := of.Pods[:min(len(of.Pods), left)]
		if len(few) == 0 {
			continue
		}
		left -= len(few)
		of.Namespace, of.Kind, of.Owner = id(of.Namespace), id(of.Kind), id(of.Owner)
		of.MilliCPU, of.Memory = between(of.MilliCPU, mostMilliCPU), between(of.Memory, mostBytes)
		of.Pods = nil
		for _, l := range few {
			of.Pods = append(of.Pods, Life{id(l.Name), between(l.Created, mostSeconds), between(l.Ended, mostSeconds)})
		}
		out.Of = append(out.Of, of)
	}
	return &out
}

// mostSeconds is the end of the year 9999.
const mostSeconds = 253402300799

func between(n, most int64) int64 { return min(max(0, n), most) }

// Groups are all groups, in as many records of one date as they need: what new nodes of them are.
type Groups struct {
	Of []Shape `json:"of,omitempty"`
}

// Shape is a group as it can be played. Its nodes have no template where they have no cpu.
type Shape struct {
	Group string   `json:"g"`
	Type  string   `json:"type,omitempty"`
	Zones []string `json:"zones,omitempty"`
	Min   int      `json:"min,omitempty"`
	Max   int      `json:"max,omitempty"`
	Spot  bool     `json:"spot,omitempty"`
	// Unsteered groups grow in zones that Auto Scaling chooses.
	Unsteered bool `json:"unsteered,omitempty"`
	// MilliCPU, Memory, in bytes, and Pods are what a node has room for.
	MilliCPU int64          `json:"c,omitempty"`
	Memory   int64          `json:"m,omitempty"`
	Pods     int            `json:"p,omitempty"`
	Taints   []corev1.Taint `json:"taints,omitempty"`
	// DollarsPerHour is what a node costs, in US dollars; 0 where that is not known.
	DollarsPerHour float64 `json:"usd,omitempty"`
}

func (g Groups) normal() *Groups {
	out := Groups{}
	for _, s := range g.Of[:min(len(g.Of), MostShapes)] {
		zones, taints := s.Zones, s.Taints
		s.Group, s.Type, s.Zones, s.Taints = id(s.Group), id(s.Type), nil, nil
		for _, z := range zones[:min(len(zones), mostZones)] {
			s.Zones = append(s.Zones, id(z))
		}
		for _, t := range taints[:min(len(taints), mostTaints)] {
			s.Taints = append(s.Taints, corev1.Taint{Key: id(t.Key), Value: id(t.Value), Effect: corev1.TaintEffect(id(string(t.Effect)))})
		}
		s.Min, s.Max, s.Pods = number(s.Min), number(s.Max), number(s.Pods)
		s.MilliCPU, s.Memory, s.DollarsPerHour = between(s.MilliCPU, mostMilliCPU), between(s.Memory, mostBytes), dollars(s.DollarsPerHour)
		out.Of = append(out.Of, s)
	}
	return &out
}

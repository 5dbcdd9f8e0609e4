package shadow

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/shadow/record"
)

// Memory is what is assumed done. A program that is started anew goes on with it.
type Memory struct {
	// Groups are those of which something is assumed, or was seen, by name.
	Groups map[string]*Group `json:"groups,omitempty"`
	// Nodes are the nodes on which something would stand that does not, by name.
	Nodes map[string]Node `json:"nodes,omitempty"`
	// Gone are the instances that would be gone, by instance id: they are watched, and count for
	// nothing.
	Gone map[string]Gone `json:"gone,omitempty"`
	// Returned is when an instance that would be gone was in use again, by instance id.
	Returned map[string]time.Time `json:"returned,omitempty"`
	// Placed are the nodes that pods would be on, by the pods' UIDs.
	Placed map[types.UID]string `json:"placed,omitempty"`
	// Decided is when an action without any other effect here was decided last, by its key: it is
	// recorded once, for as long as it is decided again and again.
	Decided map[string]time.Time `json:"decided,omitempty"`
	// Names counts the assumed nodes so far.
	Names int `json:"names,omitempty"`
}

// Group is what is assumed of one.
type Group struct {
	// Desired is the world's desired capacity, as last seen.
	Desired int `json:"desired"`
	// Lowered is by how much less the group would want, beside nodes that would be gone.
	Lowered int `json:"lowered,omitempty"`
	// Assumed are the instances that it would have launched, the oldest first.
	Assumed []Assumed `json:"assumed,omitempty"`
}

// Assumed is an instance that is not there.
type Assumed struct {
	ID   string `json:"id"`
	Node string `json:"node"`
	Zone string `json:"zone,omitempty"`
	// At is when it would have been launched, Ready when its node would be.
	At    time.Time `json:"at"`
	Ready time.Time `json:"ready"`
}

// Node is what would stand on a node. It stands in place of what is there.
type Node struct {
	UID types.UID `json:"uid,omitempty"`
	// Unneeded is since when; zero where no mark would be.
	Unneeded time.Time `json:"unneeded,omitzero"`
	// Fill is when kube-scheduler would fill it; nil where the node says so itself.
	Fill *contract.FillTurn `json:"fill,omitempty"`
}

// Gone is an instance that would be gone.
type Gone struct {
	Group string    `json:"group"`
	Node  string    `json:"node,omitempty"`
	UID   types.UID `json:"uid,omitempty"`
	At    time.Time `json:"at"`
	// Decrement: desired capacity would be one less.
	Decrement bool `json:"decrement,omitempty"`
}

const (
	// bootTime is how long an instance usually takes from its launch until its node is Ready.
	bootTime = 90 * time.Second
	// followTime is how long an instance is assumed that the world does not launch.
	followTime = 30 * time.Minute
	// returnedTime is how long a node is not scaled down that would be gone and was in use again.
	returnedTime = 10 * time.Minute
	// decidedTime is how long an action is known that is not decided any more.
	decidedTime = 10 * time.Minute

	// Bounds of what is assumed. Beyond them nothing more is assumed, and the record says so.
	mostGone    = 2000
	mostAssumed = 2000
	mostNodes   = 20_000
	mostDecided = 5000
	mostPlaced  = 30_000
)

func (m *Memory) fill() {
	if m.Groups == nil {
		m.Groups = map[string]*Group{}
	}
	if m.Nodes == nil {
		m.Nodes = map[string]Node{}
	}
	if m.Gone == nil {
		m.Gone = map[string]Gone{}
	}
	if m.Returned == nil {
		m.Returned = map[string]time.Time{}
	}
	if m.Placed == nil {
		m.Placed = map[types.UID]string{}
	}
	if m.Decided == nil {
		m.Decided = map[string]time.Time{}
	}
}

func (m *Memory) group(name string) *Group {
	g := m.Groups[name]
	if g == nil {
		g = &Group{}
		m.Groups[name] = g
	}
	return g
}

// instances counts the assumed ones.
func (m *Memory) instances() (n int) {
	for _, g := range m.Groups {
		n += len(g.Assumed)
	}
	return n
}

const (
	// MaxBytes is the most that a memory takes as it is written.
	MaxBytes = 512 << 10
	// maxUnpacked bounds what is read of one that somebody else may have written.
	maxUnpacked = 32 << 20
)

// Encode is the memory as bytes, at most MaxBytes of them. What costs least to lose goes first: where
// pods would be, which is worked out anew; then nodes that would be gone, the oldest.
func (m Memory) Encode() ([]byte, error) {
	for {
		text, err := m.pack()
		if err != nil || len(text) <= MaxBytes {
			return text, err
		}
		switch {
		case len(m.Placed) > 0:
			m.Placed = nil
		case len(m.Gone)+len(m.Nodes)+len(m.Decided)+len(m.Returned) > 0:
			itself := func(t time.Time) time.Time { return t }
			m.Gone, m.Nodes = half(m.Gone, func(g Gone) time.Time { return g.At }), half(m.Nodes, func(n Node) time.Time { return n.Unneeded })
			m.Decided, m.Returned = half(m.Decided, itself), half(m.Returned, itself)
		default:
			m.Groups = nil
		}
	}
}

// half leaves the younger half.
func half[K cmp.Ordered, V any](all map[K]V, at func(V) time.Time) map[K]V {
	keys := slices.SortedFunc(maps.Keys(all), func(a, b K) int {
		return cmp.Or(-at(all[a]).Compare(at(all[b])), cmp.Compare(a, b))
	})
	young := map[K]V{}
	for _, key := range keys[:len(keys)/2] {
		young[key] = all[key]
	}
	return young
}

func (m Memory) pack() ([]byte, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encoding what the shadow assumes: %w", err)
	}
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	if _, err := zip.Write(text); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Decode is the inverse of Encode.
func Decode(text []byte) (m Memory, err error) {
	zip, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return Memory{}, fmt.Errorf("what the shadow assumes does not unpack: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(zip, maxUnpacked+1))
	if err == nil && len(plain) > maxUnpacked {
		err = fmt.Errorf("it unpacks to more than %d bytes", maxUnpacked)
	}
	if err == nil {
		err = json.Unmarshal(plain, &m)
	}
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return Memory{}, fmt.Errorf("what the shadow assumes does not parse: %w", err)
	}
	return m, nil
}

// check refuses what no shadow has written.
func (m Memory) check() error {
	for name, g := range m.Groups {
		if g == nil {
			return fmt.Errorf("group %s is null", name)
		}
	}
	if n := m.instances(); n > mostAssumed || len(m.Gone) > mostGone || len(m.Returned) > mostGone || len(m.Nodes) > mostNodes || len(m.Placed) > mostPlaced || len(m.Decided) > mostDecided {
		return fmt.Errorf("it has more than any shadow assumes: %d instances, %d removed, %d nodes, %d pods, %d actions", n, len(m.Gone), len(m.Nodes), len(m.Placed), len(m.Decided))
	}
	return nil
}

// full records once that nothing more of a kind is assumed.
func (s *Shadow) full(what string, limit int) {
	s.once("full/"+what, record.Record{At: s.now, Diverged: &record.Diverged{
		Assumed: "no more than " + fmt.Sprint(limit) + " " + what, Is: "more were decided, which are not assumed done",
	}})
}

// once records something for as long as it is said again and again.
func (s *Shadow) once(key string, r record.Record) (first bool) {
	_, known := s.memory.Decided[key]
	if !known && len(s.memory.Decided) >= mostDecided {
		return false // of so many at once one more says little
	}
	s.memory.Decided[key] = s.now
	if !known {
		s.record(r)
	}
	return !known
}

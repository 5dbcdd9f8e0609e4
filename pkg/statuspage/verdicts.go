package statuspage

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
)

const (
	// VerdictsKey is where the ConfigMap holds the verdicts, below binaryData: gzipped JSON.
	VerdictsKey = "verdicts.json.gz"
	// MaxVerdictBytes is the most that they have. With the page that is less than the 1 MiB
	// of a ConfigMap.
	MaxVerdictBytes = 700 << 10
	// maxPlain is the most that they have before they are compressed: what is read of a
	// ConfigMap is unpacked no further.
	maxPlain = 32 << 20
	// maxEntry bounds one entry of a list, and maxEntries how many there are.
	maxEntry, maxEntries = 256 << 10, 200_000
	// maxDetails is the most bytes that the details of one verdict have in memory.
	maxDetails = 4 << 10
	// podNames is how many pods of a class are named if names are left out.
	podNames = 10
	// podClasses is how many classes of pods stay as long as anything is left of nodes' details:
	// people choose how many there are.
	podClasses = 100
)

// Verdicts are all that a plan says of groups, nodes and pending pods, for programs that have
// none: the page has but the first of many. When they were written is said there.
type Verdicts struct {
	Groups  List[Group] `json:"groups"`
	Nodes   List[Node]  `json:"nodes"`
	Pods    List[Pods]  `json:"pods"`
	Prices  Prices      `json:"prices"`
	Omitted Omitted     `json:"omitted"`
}

// Prices says what the prices of nodes are.
type Prices struct {
	// Source has where they are from, and of which day.
	Source string `json:"source"`
	// SpotFactor is the assumed price of a spot instance as a share of that on demand, where EC2
	// reports none.
	SpotFactor float64 `json:"spotFactor"`
	// SpotAt is when EC2 reported spot prices; zero where none are known.
	SpotAt time.Time `json:"spotAt,omitzero"`
	// SpotNote says why they are not known, though they were asked for, or not as of now, and
	// which are not as EC2 reported them.
	SpotNote string `json:"spotNote,omitempty"`
}

// Omitted counts what found no room. It is left out in the order of the fields; the last hundred
// classes of pods go after the messages of nodes.
type Omitted struct {
	// PodNames are those beyond the first ten of a class.
	PodNames int `json:"podNames,omitempty"`
	// PodClasses are not named at all; of each namespace the largest stay.
	PodClasses int `json:"podClasses,omitempty"`
	// Params counts nodes whose details have lost their parameters, Messages those that have
	// kept their reason alone.
	Params   int `json:"params,omitempty"`
	Messages int `json:"messages,omitempty"`
	// Nodes and Groups are not named at all.
	Nodes  int `json:"nodes,omitempty"`
	Groups int `json:"groups,omitempty"`
}

// Verdict is what is said of one subject, or of several of which the same is said.
type Verdict struct {
	Reason Reason `json:"reason"`
	// Details are sentences, the most telling first.
	Details []Detail `json:"details,omitempty"`
}

// Detail is one sentence, and what it speaks of by the names of
// docs/reference/verdict-details.md. What a cause speaks of stands beside it, and not within.
type Detail struct {
	Text   string         `json:"text"`
	Params map[string]any `json:"params,omitempty"`
}

// Group is one Auto Scaling group.
type Group struct {
	Name        string `json:"name"`
	Min         int    `json:"min"`
	Max         int    `json:"max"`
	Desired     int    `json:"desired"`
	Ready       int    `json:"ready"`
	Upcoming    int    `json:"upcoming,omitempty"`
	Terminating int    `json:"terminating,omitempty"`
	// Unprotected counts live instances that are not protected from scale-in.
	Unprotected int `json:"unprotected,omitempty"`
	// Spot means that it buys spot instances, Both that it buys them and such on demand.
	Spot bool `json:"spot,omitempty"`
	Both bool `json:"both,omitempty"`
	// PricePerHour is that of its next node, as on the page.
	PricePerHour float64   `json:"pricePerHour,omitempty"`
	BackOffs     []BackOff `json:"backOffs,omitempty"`
	Faults       []string  `json:"faults,omitempty"`
	Verdict
}

// BackOff says until when a group, or one of its zones, is not grown.
type BackOff struct {
	Zone  string    `json:"zone,omitempty"`
	Cause string    `json:"cause"`
	Until time.Time `json:"until"`
}

// Node is one node; the API server has the rest.
type Node struct {
	Name string `json:"name"`
	// Group is empty where its instance is in none.
	Group string `json:"group,omitempty"`
	// PricePerHour is its own, in US dollars; 0 where it is not known.
	PricePerHour float64 `json:"pricePerHour,omitempty"`
	// OnDemandPerHour is what a spot instance would cost on demand. SpotReported means that EC2
	// reports its price, which is else assumed.
	OnDemandPerHour float64 `json:"onDemandPerHour,omitempty"`
	SpotReported    bool    `json:"spotReported,omitempty"`
	// Spot means that it is a spot instance, Both that nothing tells which of both it is: its
	// price is then that on demand, the most that it can be.
	Spot bool `json:"spot,omitempty"`
	Both bool `json:"both,omitempty"`
	Verdict
}

// CapacityType is how an instance is bought.
type CapacityType string

const (
	OnDemand CapacityType = "on-demand"
	Spot     CapacityType = "spot"
	// UnknownCapacity is of nodes of which nothing tells whether they are spot.
	UnknownCapacity CapacityType = "unknown"
)

// Capacity is how its instance was bought.
func (n *Node) Capacity() CapacityType {
	switch {
	case n.Spot:
		return Spot
	case n.Both:
		return UnknownCapacity
	}
	return OnDemand
}

// Pods is a class of pending pods: those of which the same is said.
type Pods struct {
	Count int `json:"count"`
	// Names are as namespace/name, all of them or the first.
	Names []string `json:"names"`
	// Group is the one that grows for them.
	Group string `json:"group,omitempty"`
	Verdict
}

// Message is the details as one sentence.
func (v Verdict) Message() string {
	var texts []string
	for _, d := range v.Details {
		texts = append(texts, d.Text)
	}
	return strings.Join(texts, "; ")
}

// Text is a parameter of the first detail that has it; empty where none has.
func (v Verdict) Text(name string) string {
	for _, d := range v.Details {
		if text, is := d.Params[name].(string); is {
			return text
		}
	}
	return ""
}

// Names is a list of names, found in the same way.
func (v Verdict) Names(name string) (names []string) {
	for _, d := range v.Details {
		list, is := d.Params[name].([]any)
		if !is {
			continue
		}
		for _, one := range list {
			if text, is := one.(string); is {
				names = append(names, text)
			}
		}
		return names
	}
	return nil
}

// Time is a moment, found in the same way.
func (v Verdict) Time(name string) time.Time {
	t, err := time.Parse(time.RFC3339, v.Text(name))
	if err != nil {
		return time.Time{}
	}
	return t
}

// Encode packs them so that they always have room beside the page. The same verdicts give the
// same bytes.
func (v Verdicts) Encode() ([]byte, error) {
	v.cutEach()
	for v.plain() > maxPlain && v.shrink() {
	}
	for {
		packed, plain, err := v.pack()
		if err != nil {
			return nil, fmt.Errorf("encoding the verdicts: %w", err)
		}
		if len(packed) <= MaxVerdictBytes && plain <= maxPlain || !v.shrink() {
			return packed, nil
		}
	}
}

// pack writes entry by entry, so that the whole text never is in memory. It says how long that
// is, too: some characters take six bytes in JSON.
func (v *Verdicts) pack() (packed []byte, plain int, err error) {
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, 0, err
	}
	w := &entryWriter{to: zip}
	w.json = json.NewEncoder(w)
	w.json.SetEscapeHTML(false)
	w.text(`{"groups":[`)
	entries(w, v.Groups)
	w.text(`],"nodes":[`)
	entries(w, v.Nodes)
	w.text(`],"pods":[`)
	entries(w, v.Pods)
	w.text(`],"prices":`)
	w.entry(v.Prices)
	w.text(`,"omitted":`)
	w.entry(v.Omitted)
	w.text(`}`)
	err = errors.Join(w.err, zip.Close())
	return out.Bytes(), w.written, err
}

// entryWriter counts, and keeps the first error.
type entryWriter struct {
	to      io.Writer
	json    *json.Encoder
	written int
	err     error
}

func (w *entryWriter) Write(text []byte) (int, error) {
	w.written += len(text)
	return w.to.Write(text)
}

func (w *entryWriter) text(text string) {
	if w.err == nil {
		_, w.err = io.WriteString(w, text)
	}
}

func (w *entryWriter) entry(value any) {
	if w.err == nil {
		w.err = w.json.Encode(value)
	}
}

func entries[T any](w *entryWriter, list List[T]) {
	for i := range list {
		if i > 0 {
			w.text(",")
		}
		w.entry(&list[i])
	}
}

// cutEach holds every entry to its bound.
func (v *Verdicts) cutEach() {
	v.Groups, v.Nodes, v.Pods = slices.Clone(v.Groups), slices.Clone(v.Nodes), slices.Clone(v.Pods)
	for i := range v.Groups {
		v.Groups[i].cut()
	}
	for i := range v.Nodes {
		if v.Nodes[i].cut() {
			v.Omitted.Params++
		}
	}
	for i := range v.Pods {
		v.Pods[i].cut()
	}
}

// cut shortens texts, and drops parameters that are too long together. It says whether it has
// dropped some.
func (v *Verdict) cut() (dropped bool) {
	left := maxDetails
	details := make([]Detail, 0, len(v.Details))
	for _, d := range v.Details {
		if left -= len(d.Text); left < 0 {
			d.Text = contract.Shorten(d.Text, max(maxText/4, len(d.Text)+left))
			details, dropped = append(details, Detail{Text: d.Text}), true
			break
		}
		if size := sizeOf(d.Params); size <= left {
			left -= size
		} else {
			d.Params, dropped = nil, true
		}
		details = append(details, d)
	}
	v.Details = details
	return dropped
}

// sizeOf is about what a value takes as text.
func sizeOf(value any) int {
	switch v := value.(type) {
	case string:
		return len(v)
	case []string:
		return total(v) + 4*len(v)
	case []any:
		sum := 0
		for _, one := range v {
			sum += sizeOf(one) + 4
		}
		return sum
	case map[string]any:
		sum := 0
		for name, one := range v {
			sum += len(name) + sizeOf(one) + 6
		}
		return sum
	}
	return 8
}

// plain is about what they take before they are compressed.
func (v *Verdicts) plain() int {
	const entry = 120
	sum := 0
	for i := range v.Groups {
		sum += entry + len(v.Groups[i].Name) + total(v.Groups[i].Faults) + v.Groups[i].size()
	}
	for i := range v.Nodes {
		sum += entry + len(v.Nodes[i].Name) + v.Nodes[i].size()
	}
	for i := range v.Pods {
		sum += entry + total(v.Pods[i].Names) + 4*len(v.Pods[i].Names) + v.Pods[i].size()
	}
	return sum
}

func (v *Verdict) size() int {
	sum := 0
	for _, d := range v.Details {
		sum += len(d.Text) + sizeOf(d.Params) + 20
	}
	return sum
}

// shrink leaves something out, in the order of Omitted. It says whether there was anything.
func (v *Verdicts) shrink() bool {
	switch {
	case v.dropPodNames():
	case v.dropPodClasses(podClasses):
	case dropEach(v.Nodes, &v.Omitted.Params, func(n *Node) bool { return dropParams(&n.Verdict) }):
	case dropEach(v.Nodes, &v.Omitted.Messages, func(n *Node) bool {
		had := len(n.Details) > 0
		n.Details = nil
		return had
	}):
	case v.dropPodClasses(1):
	case len(v.Nodes) > 1:
		v.Nodes = halve(v.Nodes, &v.Omitted.Nodes)
	case len(v.Groups) > 0:
		v.Groups = halve(v.Groups, &v.Omitted.Groups)
	default:
		return false
	}
	return true
}

func (v *Verdicts) dropPodNames() bool {
	dropped := 0
	for i := range v.Pods {
		if more := len(v.Pods[i].Names) - podNames; more > 0 {
			v.Pods[i].Names = v.Pods[i].Names[:podNames]
			dropped += more
		}
	}
	v.Omitted.PodNames += dropped
	return dropped > 0
}

// dropPodClasses halves them down to a number. They are ordered so that the largest class of each
// namespace goes last, then its next one: no tenant takes the place of the others.
func (v *Verdicts) dropPodClasses(least int) bool {
	if len(v.Pods) <= least {
		return false
	}
	slices.SortStableFunc(v.Pods, func(a, b Pods) int { return b.Count - a.Count })
	ranks, turn := make(map[string]int, len(v.Pods)), make(map[string]int)
	key := func(p *Pods) string { return strings.Join(p.Names[:min(1, len(p.Names))], "") }
	for i := range v.Pods {
		namespace, _, _ := strings.Cut(key(&v.Pods[i]), "/")
		ranks[key(&v.Pods[i])] = turn[namespace]
		turn[namespace]++
	}
	slices.SortStableFunc(v.Pods, func(a, b Pods) int { return ranks[key(&a)] - ranks[key(&b)] })
	keep := max(least, len(v.Pods)/2)
	v.Omitted.PodClasses += len(v.Pods) - keep
	v.Pods = v.Pods[:keep]
	return true
}

func dropParams(v *Verdict) bool {
	had := false
	for i, d := range v.Details {
		had = had || d.Params != nil
		v.Details[i].Params = nil
	}
	return had
}

// dropEach takes something from each entry that has it, and counts those.
func dropEach[T any](list List[T], count *int, drop func(*T) bool) bool {
	before := *count
	for i := range list {
		if drop(&list[i]) {
			*count++
		}
	}
	return *count > before
}

func halve[T any](list List[T], count *int) List[T] {
	keep := len(list) / 2
	*count += len(list) - keep
	return list[:keep]
}

// List is a list that is read within bounds.
type List[T any] []T

// UnmarshalJSON refuses lists and entries that are longer than any that are written.
func (l *List[T]) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	start, err := decoder.Token()
	if err != nil || start != json.Delim('[') {
		return errors.Join(errors.New("want a list"), err)
	}
	*l = nil
	for decoder.More() {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return err
		}
		var one T
		if len(raw) > maxEntry || len(*l) == maxEntries {
			return fmt.Errorf("entry %d: it has %d bytes, or there are more than %d", len(*l), len(raw), maxEntries)
		}
		if err := json.Unmarshal(raw, &one); err != nil {
			return fmt.Errorf("entry %d: %w", len(*l), err)
		}
		*l = append(*l, one)
	}
	return nil
}

// ErrNoVerdicts is that a ConfigMap has a page and no verdicts.
var ErrNoVerdicts = errors.New("it has no " + VerdictsKey + ": the scaler that wrote it is of an older version; upgrade it")

// ReadVerdicts finds the verdicts in their ConfigMap. It takes nothing on trust: what is larger
// than any that are written is an error, and costs no more than those to find out.
func ReadVerdicts(object *corev1.ConfigMap) (Verdicts, error) {
	v, err := unpack(object.BinaryData[VerdictsKey])
	if err != nil {
		return Verdicts{}, fmt.Errorf("config map %s: %w", contract.ConfigMapStatus, err)
	}
	return v, nil
}

func unpack(packed []byte) (v Verdicts, err error) {
	if len(packed) == 0 {
		return v, ErrNoVerdicts
	}
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return v, fmt.Errorf("%s: %w", VerdictsKey, err)
	}
	text, err := io.ReadAll(io.LimitReader(zip, maxPlain+1))
	switch {
	case err != nil:
		return v, fmt.Errorf("%s: %w", VerdictsKey, err)
	case len(text) > maxPlain:
		return v, fmt.Errorf("%s has more than %d bytes unpacked, which no scaler writes", VerdictsKey, maxPlain)
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return Verdicts{}, fmt.Errorf("%s: %w", VerdictsKey, err)
	}
	return v, nil
}

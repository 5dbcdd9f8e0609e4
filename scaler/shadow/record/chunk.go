package record

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
)

const (
	// Version is that of the text form. A chunk of another one is not read: what its fields mean is
	// not known.
	Version = 1
	// Chunks is how many there are at the most; MaxBytes the most that one has, compressed.
	Chunks   = 24
	MaxBytes = 256 << 10
	// Key is where a ConfigMap holds a chunk, below binaryData; numberKey its number, below data.
	Key       = "records.jsonl.gz"
	numberKey = "chunk"

	// maxPlain is how many bytes of records make a chunk full, however well they compress;
	// maxUnpacked bounds what is unpacked of one that somebody else may have written.
	maxPlain    = 4 << 20
	maxUnpacked = 2 * maxPlain
	maxLine     = 1 << 20
)

// Chunk is a part of the log.
type Chunk struct {
	// Number rises with each. A chunk takes the place of the one that is Chunks older.
	Number uint64
	Data   []byte
}

// name is that of the ConfigMap in which a chunk stands.
func (c Chunk) name() string { return names[c.Number%Chunks] }

var names = contract.ConfigMapsShadowLog(Chunks)

// ConfigMap is what the chunk stands in.
func (c Chunk) ConfigMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: c.name(), Labels: map[string]string{contract.LabelAppName: contract.AppScaler}},
		Data:       map[string]string{numberKey: strconv.FormatUint(c.Number, 10)},
		BinaryData: map[string][]byte{Key: c.Data},
	}
}

// ChunkOf is the chunk that stands in a ConfigMap, whatever its name; false where there is none.
func ChunkOf(object *corev1.ConfigMap) (Chunk, bool) {
	data, is := object.BinaryData[Key]
	number, err := strconv.ParseUint(object.Data[numberKey], 10, 64)
	if err != nil {
		number = 0 // it stands in the chunk, too
	}
	return Chunk{number, data}, is
}

// head is the first line of a chunk.
type head struct {
	Version int    `json:"version"`
	Number  uint64 `json:"chunk"`
	Omitted
}

// Omitted counts what found no room in the log.
type Omitted struct {
	// Records are all that were left out, and Invalid those of them that say nothing, or at no date.
	Records int `json:"omitted,omitempty"`
	Invalid int `json:"invalid,omitempty"`
	// Bound are, by side, the pods among them, PendingSeconds how long these were pending
	// together.
	Bound          map[Side]int   `json:"omittedBound,omitempty"`
	PendingSeconds map[Side]int64 `json:"omittedPendingSeconds,omitempty"`
	// Lives are how many pods came, ended or were listed in the records among them.
	Lives int `json:"omittedPods,omitempty"`
}

func (o *Omitted) add(other Omitted) {
	o.Records += other.Records
	o.Invalid += other.Invalid
	o.Lives += other.Lives
	for side, n := range other.Bound {
		o.count(side, n, other.PendingSeconds[side])
	}
}

func (o *Omitted) count(side Side, pods int, seconds int64) {
	if o.Bound == nil {
		o.Bound, o.PendingSeconds = map[Side]int{}, map[Side]int64{}
	}
	o.Bound[side] += pods
	o.PendingSeconds[side] += seconds
}

// omit counts a record.
func (o *Omitted) omit(r Record) {
	o.Records++
	switch {
	case !r.Valid():
		o.Invalid++
	case r.Pods != nil:
		o.Lives += r.Pods.Lives()
	case r.Bound != nil && (r.Bound.Side == World || r.Bound.Side == Windlass):
		o.count(r.Bound.Side, 1, int64(r.Pending()/time.Second))
	}
}

// Pending is how long the pod has waited, by the record's own date and that of the Bound.
func (r Record) Pending() time.Duration {
	if r.Bound == nil {
		return 0
	}
	return max(0, r.At.Sub(r.Bound.PendingSince))
}

// pack is the chunk's bytes.
func pack(h head, lines [][]byte) ([]byte, error) {
	var b bytes.Buffer
	zip, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	h.Version = Version
	first, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	_, err = zip.Write(append(first, '\n'))
	for _, line := range lines {
		if err != nil {
			break
		}
		_, err = zip.Write(line)
	}
	err = errors.Join(err, zip.Close())
	return b.Bytes(), err
}

var errVersion = errors.New("of another version")

// unpack reads a chunk's bytes.
func unpack(data []byte) (h head, records []Record, err error) {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return head{}, nil, err
	}
	limited := &io.LimitedReader{R: zip, N: maxUnpacked + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(nil, maxLine)
	n := 0
	for err == nil && lines.Scan() {
		if n++; n == 1 {
			h, err = parseHead(lines.Bytes())
			continue
		}
		var r Record
		if r, err = parse(lines.Bytes()); err == nil {
			records = append(records, r)
		}
	}
	switch cut := lines.Err(); {
	case limited.N == 0:
		err = fmt.Errorf("it unpacks to more than %d bytes", maxUnpacked)
	case cut != nil:
		err = cut
	case n == 0:
		err = errors.New("it is empty")
	case err != nil && !errors.Is(err, errVersion):
		err = fmt.Errorf("line %d: %w", n, err)
	}
	if err != nil {
		return head{}, nil, err
	}
	return h, records, nil
}

func parseHead(line []byte) (h head, err error) {
	err = json.Unmarshal(line, &h)
	if err == nil && h.Version != Version {
		err = fmt.Errorf("%w: %d, and this program reads %d", errVersion, h.Version, Version)
	}
	return h, err
}

func parse(line []byte) (r Record, err error) {
	if err := json.Unmarshal(line, &r); err != nil {
		return Record{}, err
	}
	if r = r.Normal(); !r.Valid() {
		return Record{}, errors.New("want one thing, at a date")
	}
	return r, nil
}

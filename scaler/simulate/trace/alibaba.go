package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"strconv"
	"strings"
)

// Slice is a part of a trace.
type Slice struct {
	// From and To are days.
	From, To float64
	// Ramp is how many seconds the pods that are alive at the start take to come; with 0
	// all of them come at once.
	Ramp int64
	// Divide is what requests are divided by, at least 1.
	Divide float64
	// Sample takes a service if a hash of its name, modulo Sample, is Phase; 0 takes all.
	Sample, Phase uint32
}

// Format is how a file lists pods.
type Format struct {
	// columns that must be there: cpu and memory requests, creation, deletion.
	cpu, memory, created, deleted string
	// milli is what of a core cpu counts, unit what memory does in bytes.
	milli, unit float64
	// service has the name by which services are sampled; without one, pods of equal
	// requests are of one.
	service string
}

// Formats are those that are known, by name.
//
// https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2023
// https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2025
var Formats = map[string]Format{
	"openb": {cpu: "cpu_milli", memory: "memory_mib", created: "creation_time", deleted: "deletion_time", milli: 1, unit: 1 << 20},
	"dlrm":  {cpu: "cpu_request", memory: "memory_request", created: "creation_time", deleted: "deletion_time", milli: 1000, unit: 1 << 30, service: "app_name"},
}

// row is a pod of a file.
type row struct {
	id, service      string
	milliCPU, memory int64
	created, deleted int64
}

// Read reads a slice. An error names the line.
func (f Format) Read(in io.Reader, s Slice) (Trace, error) {
	if !(s.Divide >= 1) || s.To <= s.From || s.Ramp < 0 {
		return Trace{}, fmt.Errorf("a slice of days %v to %v, divided by %v, with a ramp of %d s: want an end after the start, a divisor of at least 1, and no negative ramp", s.From, s.To, s.Divide, s.Ramp)
	}
	table := csv.NewReader(in)
	table.ReuseRecord = true
	head, err := table.Read()
	if err != nil {
		return Trace{}, fmt.Errorf("reading the head of the table: %w", err)
	}
	column := map[string]int{}
	for i, name := range head {
		column[strings.TrimSpace(name)] = i
	}
	for _, name := range []string{f.cpu, f.memory, f.created, f.deleted, f.service} {
		if _, has := column[name]; name != "" && !has {
			return Trace{}, fmt.Errorf("there is no column %s: is this another format? want one of openb, dlrm", name)
		}
	}
	t := Trace{Start: epoch, Seconds: int64((s.To - s.From) * day)}
	workloads := book{trace: &t}
	for {
		record, err := table.Read()
		if errors.Is(err, io.EOF) {
			t.order()
			return t, nil
		}
		if err != nil {
			return Trace{}, fmt.Errorf("reading the table: %w", err)
		}
		r, err := f.row(record, column, s.Divide)
		if err != nil {
			line, _ := table.FieldPos(0)
			return Trace{}, fmt.Errorf("line %d: %w", line, err)
		}
		if s.Sample > 0 && hashOf(r.service)%s.Sample != s.Phase {
			continue
		}
		arrive, ends, lives := s.cut(r)
		if !lives {
			continue
		}
		name := fmt.Sprintf("cpu-%dm-memory-%d", r.milliCPU, r.memory)
		if f.service != "" {
			name = r.service
		}
		size := fmt.Sprintf("%s/%d/%d", name, r.milliCPU, r.memory)
		n := workloads.workload(size, func() Workload {
			name := strings.ReplaceAll(strings.ToLower(name), "_", "-")
			if f.service != "" { // its instances may have several sizes
				name = fmt.Sprintf("%s-%d", name, len(t.Workloads))
			}
			return Workload{Namespace: "trace", Name: name, Kind: "ReplicaSet", Labels: map[string]string{"app": name}, Spec: spec(r.milliCPU, r.memory)}
		})
		t.Pods = append(t.Pods, Pod{Workload: n, Arrive: arrive, Ends: ends})
	}
}

// cut returns when a pod comes and ends in the slice, and whether it lives in it.
func (s Slice) cut(r row) (arrive, ends int64, lives bool) {
	from, to := int64(s.From*day), int64(s.To*day)
	if r.created >= to || r.deleted <= max(from, r.created) {
		return 0, 0, false
	}
	arrive, ends = r.created-from, r.deleted-from
	if r.deleted == Never {
		ends = Never
	}
	if arrive < 0 {
		share := float64(hashOf(r.id)%100_000) / 100_000
		arrive = int64(share * float64(s.Ramp))
	}
	return arrive, ends, arrive < ends
}

func (f Format) row(record []string, column map[string]int, divide float64) (row, error) {
	at := func(name string) string { return strings.TrimSpace(record[column[name]]) }
	number := func(name string) (float64, error) {
		x, err := strconv.ParseFloat(at(name), 64)
		if err != nil || !(x >= 0) || math.IsInf(x, 0) {
			return 0, fmt.Errorf("%s is %q: want a number of at least 0", name, at(name))
		}
		return x, nil
	}
	moment := func(name string, without int64) (int64, error) {
		if at(name) == "" {
			return without, nil
		}
		x, err := number(name)
		return int64(x), err
	}
	cpu, err1 := number(f.cpu)
	memory, err2 := number(f.memory)
	created, err3 := moment(f.created, math.MinInt64/2)
	deleted, err4 := moment(f.deleted, Never)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return row{}, err
	}
	r := row{
		id:       strings.Join(record[:min(3, len(record))], ","),
		milliCPU: int64(math.Round(cpu * f.milli / divide)), memory: int64(math.Round(memory * f.unit / divide)),
		created: created, deleted: deleted,
	}
	if f.service != "" {
		r.service = at(f.service)
	}
	return r, nil
}

func hashOf(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // a hash takes everything
	return h.Sum32()
}

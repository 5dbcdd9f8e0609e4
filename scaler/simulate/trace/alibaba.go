package trace

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

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

// FormatNames are those of all formats of files, Pods included.
var FormatNames = []string{"openb", "dlrm", "pods"}

// Read reads a slice. An error names the line.
func (f Format) Read(in io.Reader, s Slice) (Trace, error) {
	if err := s.check(); err != nil {
		return Trace{}, err
	}
	if s.To <= s.From {
		return Trace{}, fmt.Errorf("a slice of days %v to %v: want an end after the start", s.From, s.To)
	}
	table, err := openTable(in, f.cpu, f.memory, f.created, f.deleted, f.service)
	if err != nil {
		return Trace{}, err
	}
	g := newGather(epoch, int64(s.From*day), int64(s.To*day), s)
	if err := table.each(func(record []string) error {
		r, err := f.row(table, record, s.Divide)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("cpu-%dm-memory-%d", r.milliCPU, r.memory)
		if f.service != "" {
			name = r.service
		}
		g.add(r, fmt.Sprintf("%s/%d/%d", name, r.milliCPU, r.memory), func() Workload {
			name := strings.ReplaceAll(strings.ToLower(name), "_", "-")
			if f.service != "" { // its instances may have several sizes
				name = fmt.Sprintf("%s-%d", name, len(g.trace.Workloads))
			}
			return Workload{Namespace: "trace", Name: name, Kind: "ReplicaSet", Labels: map[string]string{"app": name}, Spec: spec(r.milliCPU, r.memory)}
		})
		return nil
	}); err != nil {
		return Trace{}, err
	}
	return g.done(), nil
}

func (f Format) row(table *table, record []string, divide float64) (row, error) {
	at := func(name string) string { return table.at(record, name) }
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

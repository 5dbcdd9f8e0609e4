package trace

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"windlass.dev/windlass/pkg/fleet"
)

// Columns of the format pods. The last two may be missing.
var podColumns = []string{"namespace", "name", "owner", "cpu", "memory", "created", "ended", "seen"}

// These are more than a node has.
var (
	mostCPU    = resource.MustParse("100k")
	mostMemory = resource.MustParse("1Pi")
)

// ReadPods reads a history in the format pods. An error names the line.
func ReadPods(in io.Reader) (*History, error) {
	table, err := openTable(in, podColumns[:6]...)
	if err != nil {
		return nil, err
	}
	h := &History{}
	return h, table.each(func(record []string) error {
		if slices.Equal(record, table.head) {
			return nil // of a file that others were appended to
		}
		r, err := podRecord(table, record)
		if err != nil {
			return err
		}
		first := r.Created
		if r.Seen > 0 {
			first = r.Seen
		}
		h.Cover(first, max(r.Created, r.Ended, r.Seen))
		return h.Add(r)
	})
}

func podRecord(table *table, record []string) (Record, error) {
	at := func(name string) string { return table.at(record, name) }
	r := Record{Namespace: at("namespace"), Name: at("name")}
	var errs []error
	if r.Namespace == "" || r.Name == "" {
		errs = append(errs, fmt.Errorf("namespace is %q and name %q: want both", r.Namespace, r.Name))
	}
	if owner := at("owner"); owner != "" {
		kind, name, whole := strings.Cut(owner, "/")
		if !whole || kind == "" || name == "" {
			errs = append(errs, fmt.Errorf("owner is %q: want a kind and a name, as ReplicaSet/web-5d9c, or nothing", owner))
		}
		r.Kind, r.Owner = kind, name
	}
	cpu, err1 := quantity(at("cpu"), mostCPU)
	memory, err2 := quantity(at("memory"), mostMemory)
	r.MilliCPU, r.Memory = cpu.MilliValue(), memory.Value()
	var err3, err4, err5 error
	r.Created, err3 = moment(at("created"))
	if err3 == nil && r.Created == 0 {
		err3 = errors.New("want a moment")
	}
	r.Ended, err4 = moment(at("ended"))
	r.Seen, err5 = moment(at("seen"))
	for i, err := range []error{err1, err2, err3, err4, err5} {
		if err != nil {
			name := podColumns[3+i]
			errs = append(errs, fmt.Errorf("%s is %q: %w", name, at(name), err))
		}
	}
	if len(errs) == 0 && r.Ended > 0 && r.Ended < r.Created {
		errs = append(errs, fmt.Errorf("ended is %q, which is before created, %q", at("ended"), at("created")))
	}
	return r, errors.Join(errs...)
}

// quantity is the sum of quantities with + between them; nothing is 0.
func quantity(text string, most resource.Quantity) (sum resource.Quantity, err error) {
	if text == "" {
		return sum, nil
	}
	for part := range strings.SplitSeq(text, "+") {
		q, err := fleet.ParseQuantity(strings.TrimSpace(part))
		if err != nil {
			return resource.Quantity{}, errors.New("want a quantity such as 250m or 1Gi, or several with + between them")
		}
		if sum.Add(q); q.Sign() < 0 || sum.Cmp(most) > 0 {
			return resource.Quantity{}, fmt.Errorf("want 0 to %s", most.String())
		}
	}
	return sum, nil
}

// moment is in seconds since 1970; nothing is 0.
func moment(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil && t.Unix() > 0 {
		return t.Unix(), nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 1 && seconds < latest) {
		return 0, errors.New("want a time as 2026-01-31T12:00:00Z, or seconds since 1970")
	}
	return int64(math.Floor(seconds)), nil
}

// latest is in the year 10000; later ones are milliseconds.
const latest = 253402300800

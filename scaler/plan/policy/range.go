package policy

import (
	"fmt"
	"strconv"
	"strings"
)

// Range is a bound below and one above, both included.
type Range struct{ Min, Max int64 }

// mostOfRange is more than any cluster has, and can still be counted in bytes and in
// thousandths.
const mostOfRange = 1 << 32

// ParseRange reads min:max, as Cluster Autoscaler's --cores-total and
// --memory-total have it.
func ParseRange(text string) (Range, error) {
	low, high, ok := strings.Cut(text, ":")
	least, errLow := strconv.ParseInt(low, 10, 64)
	most, errHigh := strconv.ParseInt(high, 10, 64)
	if !ok || errLow != nil || errHigh != nil {
		return Range{}, fmt.Errorf("%q is no range such as 0:320000", text)
	}
	if least < 0 || most < least || most > mostOfRange {
		return Range{}, fmt.Errorf("%q is no range: want 0 ≤ min ≤ max ≤ %d", text, mostOfRange)
	}
	return Range{least, most}, nil
}

func (r Range) String() string { return fmt.Sprintf("%d:%d", r.Min, r.Max) }

// Set makes a Range the value of a flag.
func (r *Range) Set(text string) (err error) {
	*r, err = ParseRange(text)
	return err
}

// Type names it in the usage.
func (r *Range) Type() string { return "min:max" }

const Gib = 1 << 30

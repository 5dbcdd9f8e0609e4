package machine

import (
	"fmt"
	"strconv"
	"strings"
)

// processorsFile lists the processors that are on. A kubelet counts those as its machine's.
// https://docs.kernel.org/admin-guide/cputopology.html
const processorsFile = "/sys/devices/system/cpu/online"

// firstProcessors lists so many of the host's processors, as processorsFile does.
func firstProcessors(host string, count int) (string, error) {
	all, err := parseProcessors(host)
	if err != nil {
		return "", fmt.Errorf("%s: %w", processorsFile, err)
	}
	if count < 1 || count > len(all) {
		return "", fmt.Errorf("a machine of %d vCPUs cannot be made on a host of %d: take a smaller instance type or a larger host", count, len(all))
	}
	return strings.Join(all[:count], ",") + "\n", nil
}

// parseProcessors reads a list of numbers and ranges, such as 0-3,6 (cpuset(7)).
func parseProcessors(list string) ([]string, error) {
	var all []string
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("%q is no list of processors", strings.TrimSpace(list))
		}
		for n := from; n <= to; n++ {
			all = append(all, strconv.Itoa(n))
		}
	}
	return all, nil
}

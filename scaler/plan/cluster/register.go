package cluster

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

// Register keeps who is where from evaluation to evaluation, and looks only at rows that hold
// another pod or node than before. A pod is never changed: another pointer is another version of
// it, and one that stayed in its row is what it was.
type Register struct {
	given []*fleet.Pod
	// homes number the names of nodes, and households are the pods with such a name, by its number.
	homes      map[string]int32
	households []household
	// touched are the households of which a pod has come or gone.
	touched []int32
	// unbound are the pods without a node, speaking those with terms about others, ending those that
	// are being deleted, and restless those of which time alone may change what the rules say.
	unbound, speaking, ending, restless household

	// nodeRows are the nodes as they were read, row by row. nodeOrder are their rows by name, and
	// nodeHomes in that order the numbers of their names. nodes is memory that each evaluation uses again.
	nodeRows  []*Row
	nodeOrder []int32
	nodeHomes []int32
	nodes     []Node
	// members are the instances of the last snapshot.
	members members
}

// Roll is a list of pods by namespace and name, with their rows in the snapshot. It is never changed:
// where one of its pods comes, goes or gets another row, another roll takes its place.
type Roll struct {
	Pods []*fleet.Pod
	Rows []int32
}

var nobody = &Roll{}

// household is a roll, and the rows of the pods that have yet to be written there.
type household struct {
	*Roll
	fresh   []int32
	touched bool
}

// update takes over the pods of a snapshot.
func (r *Register) update(pods []*fleet.Pod) {
	if len(r.homes) > 2*(len(pods)+len(r.nodeRows))+1000 { // most of these nodes are gone
		*r = Register{nodeRows: r.nodeRows, nodeOrder: r.nodeOrder, nodes: r.nodes, members: r.members}
	}
	if r.homes == nil {
		r.homes = map[string]int32{}
		for _, list := range r.lists() {
			list.Roll = nobody
		}
	}
	for row := range max(len(pods), len(r.given)) {
		was, is := podIn(r.given, row), podIn(pods, row)
		if was == is {
			continue
		}
		if was != nil {
			r.touch(was, gone)
		}
		if is != nil {
			r.touch(is, int32(row))
		}
	}
	for _, number := range r.touched {
		r.households[number].rewrite(pods)
	}
	for _, list := range r.lists() {
		list.rewrite(pods)
	}
	r.touched = r.touched[:0]
	r.given = append(r.given[:0], pods...)
}

func podIn(pods []*fleet.Pod, row int) *fleet.Pod {
	if row < len(pods) {
		return pods[row]
	}
	return nil
}

func (r *Register) lists() []*household {
	return []*household{&r.unbound, &r.speaking, &r.ending, &r.restless}
}

// gone stands for the row of a pod that has left its row.
const gone = -1

// touch notes a pod for all lists in which it stands: they are to be rewritten.
func (r *Register) touch(p *fleet.Pod, row int32) {
	r.unbound.touch(row, p.Node == "")
	r.speaking.touch(row, fit.CountTerms(p.Spec) > 0)
	r.ending.touch(row, !p.Deleted.IsZero())
	r.restless.touch(row, p.Node != "" && (!p.Deleted.IsZero() || p.Namespace == metav1.NamespaceSystem))
	if p.Node == "" {
		return
	}
	number := r.homeOf(p.Node)
	h := &r.households[number]
	if !h.touched {
		r.touched = append(r.touched, number)
	}
	h.touch(row, true)
}

// homeOf is the number of a node's name.
func (r *Register) homeOf(node string) int32 {
	number, known := r.homes[node]
	if !known {
		number = int32(len(r.households))
		r.homes[node] = number
		r.households = append(r.households, household{Roll: nobody})
	}
	return number
}

func (h *household) touch(row int32, stands bool) {
	if !stands {
		return
	}
	h.touched = true
	if row != gone {
		h.fresh = append(h.fresh, row)
	}
}

// rewrite leaves out the pods that are not in their rows any more, and puts in the fresh ones.
func (h *household) rewrite(pods []*fleet.Pod) {
	if !h.touched {
		return
	}
	stayed := make([]int32, 0, len(h.Rows)+len(h.fresh))
	for i, row := range h.Rows {
		if podIn(pods, int(row)) == h.Pods[i] {
			stayed = append(stayed, row)
		}
	}
	sortRows(pods, h.fresh)
	rows := merged(pods, stayed, h.fresh)
	h.Roll = &Roll{Pods: make([]*fleet.Pod, len(rows)), Rows: rows}
	for i, row := range rows {
		h.Pods[i] = pods[row]
	}
	h.fresh, h.touched = h.fresh[:0], false
}

// sortRows sorts rows as byName does their pods, but compares names that stand side by
// side: pods lie all over the memory.
func sortRows(pods []*fleet.Pod, rows []int32) {
	type entry struct {
		namespace, name string
		row             int32
	}
	list := make([]entry, len(rows))
	for i, row := range rows {
		list[i] = entry{pods[row].Namespace, pods[row].Name, row}
	}
	slices.SortFunc(list, func(a, b entry) int {
		if by := strings.Compare(a.namespace, b.namespace); by != 0 {
			return by
		}
		if by := strings.Compare(a.name, b.name); by != 0 {
			return by
		}
		return cmp.Compare(pods[a.row].UID, pods[b.row].UID)
	})
	for i, e := range list {
		rows[i] = e.row
	}
}

// merged makes one list of two that are sorted: where the first is long and the other short, the
// places of the few are sought.
func merged(pods []*fleet.Pod, long, short []int32) []int32 {
	out := make([]int32, 0, len(long)+len(short))
	for _, row := range short {
		step := 1 // grows, as the place is near where many are put in
		for step < len(long) && byName(pods[long[step]], pods[row]) <= 0 {
			step *= 2
		}
		reach := long[:min(step+1, len(long))]
		at, _ := slices.BinarySearchFunc(reach, row, func(a, b int32) int {
			if byName(pods[a], pods[b]) <= 0 {
				return -1
			}
			return 1
		})
		out, long = append(append(out, long[:at]...), row), long[at:]
	}
	return append(out, long...)
}

func byName(a, b *fleet.Pod) int {
	if by := cmp.Compare(a.Namespace, b.Namespace); by != 0 {
		return by
	}
	if by := cmp.Compare(a.Name, b.Name); by != 0 {
		return by
	}
	return cmp.Compare(a.UID, b.UID)
}

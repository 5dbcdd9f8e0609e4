package observe

import (
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/fleet"
)

// withoutOwners is what is decided where controllers may not be read.
const withoutOwners = "how many replicas the owner of a pod wants is not read"

// ownerRow is what is kept of a controller: a fraction of a hundredth of it, for there
// are ten to each workload.
type ownerRow struct {
	key      types.NamespacedName
	uid      types.UID
	replicas int32
}

// owners are the controllers of pods that set how many there shall be; the zero value
// knows none and watches none.
type owners struct {
	sets        *table[*appsv1.ReplicaSet, ownerRow]
	controllers *table[*corev1.ReplicationController, ownerRow]
	refused     []*refusal
	copied      *copiedOwners
}

// copiedOwners are those of the last snapshot, and the rows that they were made of.
type copiedOwners struct {
	mu   sync.Mutex
	rows [2][]*ownerRow
	all  map[types.UID]fleet.Owner
}

func newOwners(changed func()) owners {
	return owners{
		sets:        newOwnerTable(func(s *appsv1.ReplicaSet) *int32 { return s.Spec.Replicas }, changed),
		controllers: newOwnerTable(func(c *corev1.ReplicationController) *int32 { return c.Spec.Replicas }, changed),
		copied:      &copiedOwners{},
	}
}

func newOwnerTable[O object](replicas func(O) *int32, changed func()) *table[O, ownerRow] {
	return newTable(
		func(o O) *ownerRow {
			row := &ownerRow{key: keyOf(o), uid: o.GetUID(), replicas: 1} // where it is not set
			if n := replicas(o); n != nil {
				row.replicas = *n
			}
			return row
		},
		func(row *ownerRow) types.NamespacedName { return row.key },
		func(was, is *ownerRow) bool { return *was != *is },
		func(_, _ *ownerRow) { changed() },
	)
}

func (x *owners) watches(o *Observer) []watched {
	list := []watched{
		useful(o, "replicasets", withoutOwners, o.config.Client.AppsV1().ReplicaSets(""), x.sets),
		useful(o, "replicationcontrollers", withoutOwners, o.config.Client.CoreV1().ReplicationControllers(""), x.controllers),
	}
	for _, w := range list {
		x.refused = append(x.refused, w.refused)
	}
	return list
}

// latest are all of them by UID; nil where they are not watched, or may not be.
func (x *owners) latest() map[types.UID]fleet.Owner {
	if x.copied == nil {
		return nil
	}
	for _, r := range x.refused {
		if r.lasts() {
			return nil
		}
	}
	x.copied.mu.Lock()
	defer x.copied.mu.Unlock()
	rows := [2][]*ownerRow{x.sets.snapshot(), x.controllers.snapshot()}
	if x.copied.all == nil || !sameRows(x.copied.rows[0], rows[0]) || !sameRows(x.copied.rows[1], rows[1]) {
		x.copied.rows, x.copied.all = rows, map[types.UID]fleet.Owner{}
		for _, list := range rows {
			for _, row := range list {
				x.copied.all[row.uid] = fleet.Owner{Replicas: row.replicas}
			}
		}
	}
	return x.copied.all
}

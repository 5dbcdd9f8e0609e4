package seats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Who may create a CapacityBuffer in one namespace shall not make the cluster buy what
// their quotas forbid, nor take the room that buffers of other namespaces may ask for, nor
// the time of an evaluation. So buffers are cut, each of which says so: by the
// ResourceQuotas of its namespace, in the order of the names as Cluster Autoscaler does it,
// and then by how many pods all buffers of a namespace, and of the cluster, may ask for.

// Why a buffer is smaller than it asks to be. The first is Cluster Autoscaler's.
const (
	limitedByQuota     = "ResourceQuotasAllocated"
	limitedInNamespace = "NamespaceLimit"
	limitedInCluster   = "ClusterLimit"
)

// bufferLimits is what buffers may still ask for.
type bufferLimits struct {
	policy policy.Policy
	fit    *fit.Cluster
	quotas []*quotaLeft
	// spaces are the buffers of each namespace.
	spaces [][]*Buffer
}

func quotasOf(s fleet.Snapshot) []*fleet.Quota {
	list := make([]*fleet.Quota, len(s.Quotas))
	for i := range s.Quotas {
		list[i] = &s.Quotas[i]
	}
	slices.SortFunc(list, func(a, b *fleet.Quota) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// quotaLeft is a ResourceQuota, and what buffers have taken of it.
type quotaLeft struct {
	*fleet.Quota
	taken map[corev1.ResourceName]int64
}

func (d *Seats) newBufferLimits() *bufferLimits {
	l := &bufferLimits{policy: d.Policy, fit: d.Fit}
	for _, q := range d.quotas {
		l.quotas = append(l.quotas, &quotaLeft{q, map[corev1.ResourceName]int64{}})
	}
	return l
}

// ask notes how much a buffer asks for, as far as the quotas of its namespace allow.
// Buffers come by namespace and name.
func (l *bufferLimits) ask(b *Buffer, wanted int64) {
	b.asked = wanted
	quotas, cutting, wanted := l.withinQuotas(b, wanted)
	if len(cutting) > 0 {
		b.limitTo(limitedByQuota, "resource quota "+strings.Join(cutting, ", "))
	}
	for _, q := range quotas {
		for name := range q.Hard {
			q.taken[name] += wanted * l.requested(b.Room.Tenant.Class, name)
		}
	}
	b.Room.Wanted = int(wanted)
	if last := len(l.spaces) - 1; last < 0 || l.spaces[last][0].Namespace != b.Namespace {
		l.spaces = append(l.spaces, nil)
	}
	last := len(l.spaces) - 1
	l.spaces[last] = append(l.spaces[last], b)
}

func (b *Buffer) limitTo(limit, why string) { b.limit, b.limited = limit, why }

// share cuts the buffers that ask for most where those of a namespace ask for too much, and
// then where those of all do.
func (l *bufferLimits) share() {
	most := l.policy.BufferPodsPerNamespace
	demands := make([]int, len(l.spaces))
	for i, space := range l.spaces {
		demands[i] = shareBuffers(space, most, limitedInNamespace, fmt.Sprintf("all buffers of a namespace keep room for %s at most", verdict.Counted(most, "pod")))
	}
	all := l.policy.BufferPods
	for i, most := range fairShares(all, demands) {
		shareBuffers(l.spaces[i], most, limitedInCluster, fmt.Sprintf("all buffers of the cluster keep room for %s at most, which their namespaces share", verdict.Counted(all, "pod")))
	}
}

// shareBuffers divides so much among buffers, and says how much of it they have.
func shareBuffers(buffers []*Buffer, most int, limit, why string) (sum int) {
	demands := make([]int, len(buffers))
	for i, b := range buffers {
		demands[i] = b.Room.Wanted
	}
	for i, share := range fairShares(most, demands) {
		if b := buffers[i]; share < b.Room.Wanted {
			b.Room.Wanted = share
			b.limitTo(limit, why)
		}
		sum += share
	}
	return sum
}

// fairShares divides so much among demands: each gets what it asks for, or as much as any
// other that does not.
func fairShares(most int, demands []int) []int {
	order := make([]int, len(demands))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return demands[a] - demands[b] })
	shares := make([]int, len(demands))
	for i, at := range order {
		shares[at] = min(demands[at], most/(len(order)-i))
		most -= shares[at]
	}
	return shares
}

// withinQuotas is how much of what a buffer asks for the quotas of its namespace leave, of
// which some cut it.
func (l *bufferLimits) withinQuotas(b *Buffer, wanted int64) (matching []*quotaLeft, cutting []string, allowed int64) {
	allowed = wanted
	for _, q := range l.quotas {
		if q.Namespace != b.Namespace || !q.Covers(b.stock.pod) {
			continue
		}
		matching = append(matching, q)
		if n := q.allows(l, b.Room.Tenant.Class); n < wanted {
			cutting = append(cutting, q.Name)
			allowed = min(allowed, n)
		}
	}
	return matching, cutting, allowed
}

// allows is how many pods of a class a quota leaves room for.
func (q *quotaLeft) allows(l *bufferLimits, class *fit.Class) int64 {
	most := int64(math.MaxInt64)
	for name, hard := range q.Hard {
		each := l.requested(class, name)
		if each <= 0 {
			continue
		}
		used := q.Used[name]
		most = min(most, max(0, inUnits(name, hard)-inUnits(name, used)-q.taken[name])/each)
	}
	return most
}

// requested is what a pod of a class counts for by a name that quotas have: requests go by
// the resource itself or with a prefix. How many pods there are is no matter of a quota
// here, as Cluster Autoscaler has it.
func (l *bufferLimits) requested(class *fit.Class, name corev1.ResourceName) int64 {
	if !fleet.Requests(name) {
		return 0
	}
	return l.fit.Requested(class, quotaResource(name))
}

func inUnits(name corev1.ResourceName, q resource.Quantity) int64 {
	return fit.Units(quotaResource(name), q)
}

func quotaResource(name corev1.ResourceName) corev1.ResourceName {
	return corev1.ResourceName(strings.TrimPrefix(string(name), corev1.DefaultResourceRequestsPrefix))
}

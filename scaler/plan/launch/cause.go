package launch

import (
	"strings"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/outcome"
	"windlass.dev/windlass/scaler/plan/policy"
)

// Reach is how much else a launch that failed would fail for, too.
type Reach string

// The reaches.
const (
	// ReachZone: the same group in the same zone.
	ReachZone Reach = "zone"
	// ReachGroup: the same group, wherever.
	ReachGroup Reach = "group"
	// ReachQuota: all groups whose instances count against the same limit of the
	// account.
	ReachQuota Reach = "quota"
	// ReachAccount: all groups.
	ReachAccount Reach = "account"
)

// reaches of causes that do not concern the group alone. What a definition or its
// rights lack is missing in every zone.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ts-as-capacity.html
var reaches = map[string]Reach{
	"InsufficientInstanceCapacity":         ReachZone,
	"UnfulfillableCapacity":                ReachZone,
	"InsufficientReservedInstanceCapacity": ReachZone,
	"ReservationCapacityExceeded":          ReachZone,
	"InsufficientFreeAddressesInSubnet":    ReachZone,
	"InvalidSubnet":                        ReachZone,
	"Unsupported":                          ReachZone, // the instance type is not offered there
	"SpotMaxPriceTooLow":                   ReachZone, // prices are those of a zone

	"VcpuLimitExceeded":            ReachQuota,
	"MaxSpotInstanceCountExceeded": ReachQuota,
	"InstanceLimitExceeded":        ReachQuota,

	"VolumeLimitExceeded": ReachAccount,
}

// Scope says how far the cause of a failed launch reaches. One that is not known
// concerns its group.
func Scope(cause string) Reach {
	if reach, known := reaches[cause]; known {
		return reach
	}
	return ReachGroup
}

// Blame is the back-offs, by fleet.BackOffKey, after a failed launch of a group: its
// own, of the zone or of the group, and those of the groups that share the limit
// that was reached.
func Blame(p policy.Policy, backOffs map[string]fleet.BackOff, groups []fleet.Group, group string, f fleet.Failure) map[string]fleet.BackOff {
	of := &fleet.Group{Name: group}
	all := make([]*fleet.Group, len(groups))
	for i := range groups {
		all[i] = &groups[i]
		if all[i].Name == group {
			of = all[i]
		}
	}
	backOffs = outcome.Copied(backOffs)
	for _, key := range concerned(all, of, f) {
		backOffs[key] = Learn(p, backOffs[key], f)
	}
	return backOffs
}

// concerned are the keys in fleet.State.BackOffs of all that would fail as a
// launch of that group did.
func concerned(groups []*fleet.Group, of *fleet.Group, f fleet.Failure) []string {
	reach := Scope(f.Cause)
	if reach == ReachZone || ofZone(f) {
		return []string{fleet.BackOffKey(of.Name, f.Zone, f.Cause)}
	}
	keys := []string{fleet.BackOffKey(of.Name, "", f.Cause)}
	for _, g := range groups {
		if g.Name != of.Name && (reach == ReachAccount || reach == ReachQuota && sharesQuota(g, of)) {
			keys = append(keys, fleet.BackOffKey(g.Name, "", f.Cause))
		}
	}
	return keys
}

// ofZone reports whether our own finding about a zone is about that zone; see lose.
func ofZone(f fleet.Failure) bool {
	return f.Zone != "" && (f.Cause == cluster.NeverJoined || f.Cause == cluster.NeverReady)
}

// sharesQuota reports whether new instances of the two groups count against the same
// limit. Where that is not known they do not.
func sharesQuota(a, b *fleet.Group) bool {
	quota := quotaOf(a)
	return quota != "" && quota == quotaOf(b)
}

// quotaOf names the limit that a group's instances count against, empty where it
// is not known or not one. Limits are by market and by kind of instance type.
// https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html
func quotaOf(g *fleet.Group) string {
	quota := ""
	for i, s := range g.NodeTemplates {
		kind := kindOf(s.InstanceType)
		if kind == "" || i > 0 && kind != quota {
			return ""
		}
		quota = kind
	}
	if quota == "" {
		return ""
	}
	if g.Spot {
		return "spot " + quota
	}
	return "on-demand " + quota
}

// kinds are the instance types with limits of their own, by the beginning of their
// names; the longer ones first. All types of the letters in standardKinds share
// one.
var kinds = []struct{ prefix, kind string }{
	{"dl", "DL"}, {"hpc", "HPC"}, {"inf", "Inf"}, {"mac", "Mac"}, {"trn", "Trn"}, {"u-", "High Memory"}, {"u7", "High Memory"}, {"vt", "G and VT"},
	{"f", "F"}, {"g", "G and VT"}, {"p", "P"}, {"x", "X"},
}

const standardKinds = "acdhimrtz"

func kindOf(instanceType string) string {
	for _, k := range kinds {
		if strings.HasPrefix(instanceType, k.prefix) {
			return k.kind
		}
	}
	if instanceType != "" && strings.Contains(standardKinds, instanceType[:1]) {
		return "Standard"
	}
	return ""
}

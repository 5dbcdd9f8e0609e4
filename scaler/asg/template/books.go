package template

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/prices"
)

// RedrawEvery is how often a blueprint is made again although the group's definition
// is the same: $Latest may mean another version by then, and a managed group other
// labels. The books keep what cannot have changed.
const RedrawEvery = 10 * time.Minute

// errMissing: what is asked for does not exist.
var errMissing = errors.New("not found")

// Describer asks AWS, anew with each call.
type Describer interface {
	// InstanceTypes describes the types of these names, typesAtOnce at most.
	InstanceTypes(ctx context.Context, names []string) ([]ec2types.InstanceTypeInfo, error)
	// MatchingTypes names the types that meet requirements.
	MatchingTypes(ctx context.Context, of []ec2types.ArchitectureType, requirements *ec2types.InstanceRequirementsRequest) ([]string, error)
	// TemplateVersion describes a version of the launch template of an id or, where
	// that is empty, of a name; nil if there is none.
	TemplateVersion(ctx context.Context, id, name, version string) (*ec2types.LaunchTemplateVersion, error)
	// TemplateVersions describes such versions of all launch templates of the account:
	// a page of them, and which page is next, empty after the last.
	TemplateVersions(ctx context.Context, versions []string, page string) (described []ec2types.LaunchTemplateVersion, next string, err error)
	// Image is nil if there is none of that id.
	Image(ctx context.Context, id string) (*ec2types.Image, error)
	// LaunchConfiguration is nil if there is none of that name.
	LaunchConfiguration(ctx context.Context, name string) (*astypes.LaunchConfiguration, error)
	Nodegroup(ctx context.Context, cluster, name string) (*ekstypes.Nodegroup, error)
	// Zones are those of the region.
	Zones(ctx context.Context) ([]ec2types.AvailabilityZone, error)
}

// Assumptions are what is taken to be so until it is seen, or because it cannot be
// seen.
type Assumptions struct {
	// MemoryOverhead is the share of an instance type's memory that its nodes do not
	// report, until one was seen: firmware and the kernel keep some. 0.075 is what
	// Karpenter assumes.
	// https://karpenter.sh/docs/reference/settings/ (vm-memory-overhead-percent)
	MemoryOverhead float64
	// Prices are on demand; nil knows none.
	Prices prices.Book
	// SpotFactor is the price of a spot instance as a share of that on demand.
	SpotFactor float64
	// AskSpot has EC2 asked for spot prices; SpotFactor is for those that it does not report.
	AskSpot bool
}

// Books keep what was found out of what nodes are made of, for all groups together.
type Books struct {
	region     string
	assume     Assumptions
	types      *typeBook
	launches   *launchBook
	nodegroups *nodegroupBook
	zones      *zoneBook
}

// NewBooks returns empty books of a region.
func NewBooks(aws Describer, region string, assume Assumptions, logger *slog.Logger, now func() time.Time) *Books {
	return &Books{
		region: region, assume: assume,
		types:      &typeBook{aws: aws, known: map[string]typeInfo{}},
		launches:   &launchBook{aws: aws, now: now, known: map[string]launchTemplate{}, floating: floating{wanted: map[string]bool{}}, architectures: map[string]ec2types.ArchitectureType{}},
		nodegroups: &nodegroupBook{aws: aws, now: now, known: map[string]nodegroup{}},
		zones:      &zoneBook{aws: aws, logger: logger, now: now, known: map[string]string{}},
	}
}

// LearnZones takes over what the instances of a group show of zones.
func (b *Books) LearnZones(instances []astypes.Instance) { b.zones.learn(instances) }

// Blueprint finds out what a group's new nodes will be. changed is true if the group's
// definition is not as it was. What fails becomes a fault; err is the first failure that may
// pass, so that it is worth asking again soon.
func (b *Books) Blueprint(ctx context.Context, g *astypes.AutoScalingGroup, changed bool) (Blueprint, error) {
	tags := readTags(g.Tags)
	p := Blueprint{
		region: b.region, assume: b.assume, Zones: slices.Sorted(slices.Values(g.AvailabilityZones)), zoneIDs: b.zones.ids(ctx, g.AvailabilityZones),
		labels: map[string]string{}, extra: corev1.ResourceList{}, ScaleDown: tags.options, Headroom: tags.headroom, Faults: tags.faults,
	}
	var failed error
	fault := func(err error) {
		p.Faults = append(p.Faults, err.Error())
		if failed == nil {
			failed = err
		}
	}

	var err error
	if p.launch, err = b.launches.of(ctx, g); err == nil {
		p.machines, err = b.machines(ctx, p.launch.offers)
	}
	if err != nil {
		p.Uncountable = errors.Is(err, errUncountable)
		fault(fmt.Errorf("its node template is not known: %w", err))
	}
	for _, doubt := range p.launch.doubts() {
		fault(doubt)
	}
	p.readUserData()
	if tags.nodegroup != "" && tags.cluster != "" {
		n, err := b.nodegroups.get(ctx, tags.cluster, tags.nodegroup, changed)
		if err != nil {
			fault(err)
		}
		maps.Copy(p.labels, n.labels)
		p.taints = mergeTaints(p.taints, n.taints)
		p.add(n.tags)
		p.Faults = append(p.Faults, n.tags.faults...)
	}
	p.add(tags)
	return p, failed
}

// machines looks up the types that are offered.
func (b *Books) machines(ctx context.Context, offers []offer) ([]machine, error) {
	names := make([]string, 0, len(offers))
	for _, o := range offers {
		names = append(names, o.name)
	}
	types, err := b.types.get(ctx, names)
	if err != nil {
		return nil, err
	}
	machines := make([]machine, 0, len(offers))
	for i, o := range offers {
		m := machine{typeInfo: types[i], from: o.from, overhead: b.assume.MemoryOverhead}
		if o.from.cpus > 0 {
			m.cores = o.from.cpus
		}
		machines = append(machines, m)
	}
	return machines, nil
}

package externalgrpc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/externalgrpc/protocol"
)

// known is what is kept of a group from one reading to the next.
type known struct {
	id       string
	min, max int
	// twice: the provider names the id more than once.
	twice bool

	// sized: target and instances were read once; sizeFault is why they were not read now.
	sized     bool
	sizedAt   time.Time // when its size and its instances were read
	target    int
	instances []*protocol.Instance
	sizeFault string
	// sights are the instances that were seen, by id.
	sights map[string]sight

	definedAt     time.Time // when template, price and options were read
	template      *fleet.NodeTemplate
	version       string // of the template
	templateFault string
	options       fleet.ScaleDownOptions
	optionsFault  string
	atOnce        bool // the group grows to its maximum or not at all
}

// sight is since when something is seen of an instance, and with which template it came as far as
// is known.
type sight struct {
	template         string
	failing, leaving time.Time
}

const (
	// defineEvery is how often the template, the price and the options of a group are read.
	defineEvery = 30 * time.Second
	// groupsAtOnce is how many groups are read at the same time.
	groupsAtOnce = 8
)

// read asks for all of a group that is due.
func (k *known) read(ctx context.Context, r *Reader, now time.Time) {
	k.readSize(ctx, r.provider, now)
	if k.definedAt.IsZero() || now.Sub(k.definedAt) >= defineEvery {
		k.definedAt = now
		k.readTemplate(ctx, r.provider, now)
		k.readOptions(ctx, r.provider, r.defaults)
	}
	k.look(now)
}

// readSize keeps what was known where one of the two answers is missing.
func (k *known) readSize(ctx context.Context, p *Provider, now time.Time) {
	size, err := ask(ctx, p, "NodeGroupTargetSize", p.client.NodeGroupTargetSize, &protocol.NodeGroupTargetSizeRequest{Id: k.id})
	if err != nil {
		k.sizeFault = err.Error()
		return
	}
	instances, err := p.instances(ctx, k.id)
	if err != nil {
		k.sizeFault = err.Error()
		return
	}
	k.sized, k.sizedAt, k.sizeFault, k.target, k.instances = true, now, "", int(size.GetTargetSize()), instances
}

func (k *known) readTemplate(ctx context.Context, p *Provider, now time.Time) {
	out, err := ask(ctx, p, "NodeGroupTemplateNodeInfo", p.client.NodeGroupTemplateNodeInfo, &protocol.NodeGroupTemplateNodeInfoRequest{Id: k.id})
	switch {
	case errors.Is(err, errNotServed):
		k.template, k.version, k.templateFault = nil, "", "" // the group's nodes stand in, once there is one
		return
	case err != nil:
		k.templateFault = "its node template is as it was before, because since then: " + err.Error()
		if k.template == nil {
			k.templateFault = "its node template was not read: " + err.Error()
		}
		return
	}
	t, node, err := readTemplate(described(out))
	if err != nil {
		k.template, k.version, k.templateFault = nil, "", "its provider's node template is not understood: "+err.Error()
		return
	}
	k.template, k.version, k.templateFault = &t, versionOf(t), ""
	k.readPrice(ctx, p, node, now)
}

// readPrice asks what a new node costs in an hour, by the numbers of both generations. A provider
// need not know.
func (k *known) readPrice(ctx context.Context, p *Provider, node *corev1.Node, now time.Time) {
	from, to := timestamppb.New(now), timestamppb.New(now.Add(time.Hour))
	out, err := ask(ctx, p, "PricingNodePrice", p.client.PricingNodePrice, &protocol.PricingNodePriceRequest{
		Node:      &protocol.ExternalGrpcNode{ProviderID: node.Spec.ProviderID, Name: node.Name, Labels: node.Labels, Annotations: node.Annotations},
		StartTime: from, EndTime: to, StartTimestamp: from, EndTimestamp: to,
	})
	if errors.Is(err, errNotServed) {
		return
	}
	if err == nil {
		k.template.PricePerHour, err = readPrice(out.GetPrice())
	}
	if err != nil {
		k.templateFault = "its price is not known: " + err.Error()
	}
}

func (k *known) readOptions(ctx context.Context, p *Provider, defaults Defaults) {
	out, err := ask(ctx, p, "NodeGroupGetOptions", p.client.NodeGroupGetOptions, &protocol.NodeGroupAutoscalingOptionsRequest{Id: k.id, Defaults: defaults.message()})
	if errors.Is(err, errNotServed) {
		k.options, k.atOnce, k.optionsFault = fleet.ScaleDownOptions{}, false, ""
		return
	}
	if err == nil {
		k.options, k.atOnce, err = readOptions(out.GetNodeGroupAutoscalingOptions(), defaults)
	}
	k.optionsFault = ""
	if err != nil {
		k.optionsFault = "its options: " + clean(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

// look notes when what was read of instances is seen for the first time.
func (k *known) look(now time.Time) {
	sights := make(map[string]sight, len(k.instances))
	for _, i := range k.instances {
		s, before := k.sights[i.GetId()]
		if !before {
			s.template = k.version
		}
		if s.template == "" {
			s.template = k.version // the first that was read
		}
		s.failing = since(s.failing, failing(i), now)
		s.leaving = since(s.leaving, i.GetStatus().GetInstanceState() == protocol.InstanceStatus_instanceDeleting, now)
		sights[i.GetId()] = s
	}
	k.sights = sights
}

// since is the moment from which on something is so; zero where it is not.
func since(before time.Time, so bool, now time.Time) time.Time {
	switch {
	case !so:
		return time.Time{}
	case before.IsZero():
		return now
	}
	return before
}

// failing reports whether the provider says that it cannot create an instance. Of one that runs an
// error says nothing: Cluster Autoscaler does not ask for it either.
func failing(i *protocol.Instance) bool {
	return i.GetStatus().GetInstanceState() == protocol.InstanceStatus_instanceCreating && i.GetStatus().GetErrorInfo().GetErrorCode() != ""
}

// ledger is which instances the provider was told to end: they may show as they were for a while.
type ledger struct {
	mu    sync.Mutex
	ended map[string]time.Time
}

// endsWithin is how long an instance that was told to end counts as ending though nothing shows.
const endsWithin = 2 * time.Minute

func (l *ledger) note(instance string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil {
		l.ended = map[string]time.Time{}
	}
	maps.DeleteFunc(l.ended, func(_ string, at time.Time) bool { return now.Sub(at) > endsWithin })
	l.ended[instance] = now
}

// since is when the provider was told to end the instance; zero where it was not.
func (l *ledger) since(instance string, now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.ended[instance]; now.Sub(at) <= endsWithin {
		return at
	}
	return time.Time{}
}

// match makes what is known agree with the groups that the provider names, and says what it names
// in vain.
func match(before map[string]*known, named []*protocol.NodeGroup) (after map[string]*known, fault string) {
	after = make(map[string]*known, len(named))
	var wrong []string
	for n, g := range named {
		id := g.GetId()
		switch {
		case n >= mostGroups:
			wrong = append(wrong, fmt.Sprintf("it names %d groups, more than %d: the others are left out", len(named), mostGroups))
		case id == "":
			wrong = append(wrong, "it names a group without an id")
		case len(id) > mostID:
			wrong = append(wrong, fmt.Sprintf("it names a group with an id of %d bytes, more than %d: %s", len(id), mostID, clean(id[:64])))
		case after[id] != nil:
			after[id].twice = true
			continue
		}
		if n >= mostGroups {
			break
		}
		if id == "" || len(id) > mostID {
			continue
		}
		k := before[id]
		if k == nil {
			k = &known{id: id}
		}
		k.min, k.max, k.twice = int(g.GetMinSize()), int(g.GetMaxSize()), false
		after[id] = k
	}
	slices.Sort(wrong)
	if wrong = slices.Compact(wrong); len(wrong) == 0 {
		return after, ""
	}
	return after, "the external provider: " + strings.Join(wrong, "; ")
}

const (
	// mostGroups is how many groups a provider may have, and mostID how many bytes an id.
	mostGroups, mostID = 1000, 256
)

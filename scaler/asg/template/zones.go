package template

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

// zoneBook knows the ids of zones, such as euw1-az2 for eu-west-1a. They never
// change; instances show theirs, and EC2 is asked for the others once.
type zoneBook struct {
	aws    Describer
	logger *slog.Logger
	now    func() time.Time

	mu    sync.Mutex
	known map[string]string
	next  time.Time // when to ask again after a failure
}

// zonesAgain is how long to wait after a failure. Few pods ask for a zone by its
// id, so that no group gets a fault for it.
const zonesAgain = time.Hour

// learn takes over what the instances of a group show.
func (b *zoneBook) learn(instances []astypes.Instance) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, i := range instances {
		if id := aws.ToString(i.AvailabilityZoneId); id != "" {
			b.known[aws.ToString(i.AvailabilityZone)] = id
		}
	}
}

// ids are those of zones, as far as they are known.
func (b *zoneBook) ids(ctx context.Context, zones []string) map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string]string{}
	for _, zone := range zones {
		if b.known[zone] == "" && !b.now().Before(b.next) {
			b.fetch(ctx)
		}
		if id := b.known[zone]; id != "" {
			out[zone] = id
		}
	}
	return out
}

func (b *zoneBook) fetch(ctx context.Context) {
	b.next = b.now().Add(zonesAgain)
	described, err := b.aws.Zones(ctx)
	if err != nil {
		b.logger.Warn("ids of zones not read: node templates have no label "+labelZoneID, "err", err)
		return
	}
	for _, z := range described {
		b.known[aws.ToString(z.ZoneName)] = aws.ToString(z.ZoneId)
	}
}

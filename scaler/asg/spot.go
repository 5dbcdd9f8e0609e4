package asg

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"windlass.dev/windlass/pkg/prices"
	"windlass.dev/windlass/scaler/asg/template"
)

const (
	// spotEvery is how often EC2 is asked for spot prices, and up to spotJitter later, so that
	// clusters of an account that were started together do not ask together for ever.
	spotEvery, spotJitter = 10 * time.Minute, 2 * time.Minute
	// spotSoon is when it is asked again after a failure that may pass, or of new types and zones.
	spotSoon = time.Minute
	// spotKept is how long an answer counts while there is no other.
	spotKept = time.Hour
	// spotMoves is the share by which a price has to differ from the one that counts to replace it:
	// decisions that go by prices are not taken back for less.
	spotMoves = 0.1
	// spotFloor is the share of the price on demand below which a spot price is no price. AWS
	// speaks of up to 90 % off.
	// https://aws.amazon.com/ec2/spot/pricing/
	spotFloor = 0.01

	// A filter takes 200 values. No group spans more zones than a region has.
	spotTypesAtOnce, mostSpotTypes, mostSpotZones = 100, 500, 20
	// mostSpotPages bounds the pages of one call, which are two at the most where EC2 answers what
	// was asked.
	spotPage, mostSpotPages = 1000, 5

	// spotProduct is the one of which the prices on demand are.
	spotProduct = "Linux/UNIX"
)

// Spot is what is known of spot prices.
type Spot struct {
	Prices prices.Spot // shared: do not change it
	// At is when EC2 reported them; zero where there are none.
	At time.Time
	// Fault says why they are not as of now; empty where EC2 has answered, or is not asked.
	Fault string
	// Note says which were not taken as they were reported.
	Note string
}

// Spot returns the spot prices of the latest reading.
func (r *Reader) Spot() Spot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest.spot
}

// Fault is that of the spot prices of the latest reading; empty where all is well.
func (r *Reader) Fault() string { return r.Spot().Fault }

// spotBook keeps the spot prices of what groups may buy. Who reads groups uses it, one at a time.
type spotBook struct {
	ec2    computing
	region string
	assume template.Assumptions
	logger *slog.Logger

	types, zones []string    // that were asked for last, sorted
	known        prices.Spot // replaced, never changed
	at           time.Time   // of what is known
	tried, next  time.Time
	err          error
	note         string
}

// latest is what counts now.
func (b *spotBook) latest(now time.Time) Spot {
	if b == nil {
		return Spot{}
	}
	s := Spot{Note: b.note}
	if !b.at.IsZero() && now.Sub(b.at) < spotKept {
		s.Prices, s.At = b.known, b.at
	}
	assumed := fmt.Sprintf("spot prices are assumed at %v of those on demand: ", b.assume.SpotFactor)
	switch {
	case b.err != nil && s.At.IsZero():
		s.Fault = assumed + b.err.Error()
	case b.err != nil:
		s.Fault = fmt.Sprintf("spot prices are those of %s, because since then: %v", s.At.UTC().Format(time.TimeOnly), b.err)
	case s.At.IsZero() && !b.at.IsZero():
		s.Fault = assumed + "EC2 last reported them at " + b.at.UTC().Format(time.RFC3339)
	}
	return s
}

// readSpot asks for the types and zones of groups that may buy spot instances.
func (r *Reader) readSpot(ctx context.Context, now time.Time) (changed bool) {
	if r.spots == nil {
		return false
	}
	var types, zones []string
	for _, k := range r.known {
		if spot, _ := k.blueprint.Purchases(); spot {
			types, zones = append(types, k.blueprint.Types()...), append(zones, k.blueprint.Zones...)
		}
	}
	slices.Sort(types)
	slices.Sort(zones)
	return r.spots.read(ctx, now, slices.Compact(types), slices.Compact(zones))
}

// read asks EC2 if it is time, of types and zones that are sorted. It reports whether what is
// known has changed.
func (b *spotBook) read(ctx context.Context, now time.Time, types, zones []string) (changed bool) {
	if len(types) == 0 {
		changed = b.known != nil || b.err != nil
		*b = spotBook{ec2: b.ec2, region: b.region, assume: b.assume, logger: b.logger}
		return changed
	}
	if missesAny(b.types, types) || missesAny(b.zones, zones) {
		b.next = b.tried.Add(spotSoon)
	}
	if now.Before(b.next) {
		return false
	}
	b.tried, b.next = now, now.Add(spotEvery+rand.N(spotJitter))
	b.types, b.zones = types, zones
	answer, err := b.ask(ctx, types[:min(len(types), mostSpotTypes)], zones[:min(len(zones), mostSpotZones)], now)
	news := said(err) != said(b.err)
	b.err = err
	if err != nil {
		if passing(err) {
			b.next = now.Add(spotSoon)
		}
		if news {
			b.logger.Warn("spot prices not read", "err", err)
		}
		return news
	}
	note := answer.note(len(types))
	if note != "" && b.note == "" {
		b.logger.Warn("spot prices not taken as they were reported", "note", note)
	}
	changed = news || !maps.Equal(answer.found, b.known)
	b.known, b.at, b.note = answer.found, now, note
	return changed
}

// missesAny reports whether one of names is not in a sorted list.
func missesAny(sorted, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { _, found := slices.BinarySearch(sorted, name); return !found })
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// ask reads the prices that are in force now.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotPriceHistory.html
func (b *spotBook) ask(ctx context.Context, types, zones []string, now time.Time) (*spotAnswer, error) {
	answer := &spotAnswer{book: b, found: prices.Spot{}, newest: map[prices.Offer]time.Time{}}
	for chunk := range slices.Chunk(types, spotTypesAtOnce) {
		in := &ec2.DescribeSpotPriceHistoryInput{
			// By a filter: a type that EC2 does not know would fail the whole call.
			Filters: []ec2types.Filter{
				{Name: aws.String("instance-type"), Values: chunk}, {Name: aws.String("availability-zone"), Values: zones},
			},
			ProductDescriptions: []string{spotProduct}, MaxResults: aws.Int32(spotPage),
			StartTime: &now, EndTime: &now, // what was in force at the start, and no change
		}
		for page := 1; ; page++ {
			out, err := b.ec2.DescribeSpotPriceHistory(ctx, in)
			if err != nil {
				return nil, explain("ec2:DescribeSpotPriceHistory", err)
			}
			for _, p := range out.SpotPriceHistory {
				answer.take(p, chunk, zones)
			}
			if aws.ToString(out.NextToken) == "" {
				break
			}
			if page == mostSpotPages {
				return nil, fmt.Errorf("ec2:DescribeSpotPriceHistory: no end after %d pages", page)
			}
			in.NextToken = out.NextToken
		}
	}
	return answer, nil
}

// spotAnswer is what EC2 reports, as far as it can be.
type spotAnswer struct {
	book   *spotBook
	found  prices.Spot
	newest map[prices.Offer]time.Time
	// dear and none count prices above those on demand, and such that are none; the first of each
	// is an example.
	dear, none             int
	dearExample, noExample string
}

// take keeps a price of what was asked for. Spot instances cost no more than those on demand.
func (a *spotAnswer) take(p ec2types.SpotPrice, types, zones []string) {
	o := prices.Offer{Zone: aws.ToString(p.AvailabilityZone), Type: string(p.InstanceType)}
	onDemand, at := a.book.assume.Prices.Of(a.book.region, o.Type), aws.ToTime(p.Timestamp)
	if p.ProductDescription != spotProduct || missesAny(types, []string{o.Type}) || missesAny(zones, []string{o.Zone}) || onDemand == 0 {
		return
	}
	if before, has := a.newest[o]; has && !at.After(before) {
		return
	}
	text := aws.ToString(p.SpotPrice)
	example := fmt.Sprintf("%s in %s at %q", o.Type, o.Zone, text[:min(len(text), 20)])
	price, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || !(price >= onDemand*spotFloor) || math.IsInf(price, 0):
		if a.none++; a.none == 1 {
			a.noExample = example
		}
		return
	case price > onDemand:
		if a.dear++; a.dear == 1 {
			a.dearExample = example
		}
		price = onDemand
	}
	if was, has := a.book.known[o]; has && math.Abs(price-was) <= was*spotMoves {
		price = was
	}
	a.found[o], a.newest[o] = price, at
}

// note says what was not taken as it was reported, and of how many types was not asked.
func (a *spotAnswer) note(types int) string {
	var notes []string
	if a.dear > 0 {
		notes = append(notes, fmt.Sprintf("spot prices above those on demand count as these: %d, such as %s", a.dear, a.dearExample))
	}
	if a.none > 0 {
		notes = append(notes, fmt.Sprintf("spot prices that are none are left out: %d, such as %s", a.none, a.noExample))
	}
	if more := types - mostSpotTypes; more > 0 {
		notes = append(notes, fmt.Sprintf("spot prices of %d types are not asked for: groups may buy %d types, and %d are the most", more, types, mostSpotTypes))
	}
	return strings.Join(notes, "; ")
}

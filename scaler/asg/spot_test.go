package asg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	smithy "github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/prices"
	"windlass.dev/windlass/scaler/asg/template"
)

// pricing is an EC2 that answers prices, whatever is asked, a few a page.
type pricing struct {
	computing
	answer []ec2types.SpotPrice
	page   int // 0: all at once
	// endless gives a token with every page.
	endless bool
	err     error
	asked   []*ec2.DescribeSpotPriceHistoryInput
}

func (p *pricing) DescribeSpotPriceHistory(_ context.Context, in *ec2.DescribeSpotPriceHistoryInput, _ ...func(*ec2.Options)) (*ec2.DescribeSpotPriceHistoryOutput, error) {
	copied := *in
	p.asked = append(p.asked, &copied)
	if p.err != nil {
		return nil, p.err
	}
	from, size := 0, len(p.answer)
	if p.page > 0 {
		size = p.page
	}
	if in.NextToken != nil {
		if _, err := fmt.Sscan(*in.NextToken, &from); err != nil {
			return nil, err
		}
	}
	to := min(from+size, len(p.answer))
	out := &ec2.DescribeSpotPriceHistoryOutput{SpotPriceHistory: p.answer[min(from, to):to]}
	if to < len(p.answer) || p.endless {
		out.NextToken = new(fmt.Sprint(to))
	}
	return out, nil
}

func quote(zone, instanceType, price string) ec2types.SpotPrice {
	return ec2types.SpotPrice{AvailabilityZone: &zone, InstanceType: ec2types.InstanceType(instanceType), ProductDescription: spotProduct, SpotPrice: &price, Timestamp: new(time.Unix(100, 0))}
}

var spotList = prices.Book{"eu-west-1": {"m5.large": 0.1, "c5.large": 0.08}}

func newSpotBook(api computing) (*spotBook, *bytes.Buffer) {
	log := &bytes.Buffer{}
	return &spotBook{ec2: api, region: "eu-west-1", assume: template.Assumptions{Prices: spotList, SpotFactor: 0.4}, logger: slog.New(slog.NewTextHandler(log, nil))}, log
}

var spotNoon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// What EC2 answers is taken as far as it can be a price of what was asked.
func TestSpotPricesAreTaken(t *testing.T) {
	other, later := quote("a", "m5.large", "0.05"), quote("a", "m5.large", "0.06")
	other.ProductDescription = "Windows"
	later.Timestamp = new(time.Unix(200, 0))
	bare := ec2types.SpotPrice{}
	for name, tc := range map[string]struct {
		answer []ec2types.SpotPrice
		want   float64 // of m5.large in zone a; 0 for none
		note   string
	}{
		"a price":               {[]ec2types.SpotPrice{quote("a", "m5.large", "0.035000")}, 0.035, ""},
		"the newest, first":     {[]ec2types.SpotPrice{later, quote("a", "m5.large", "0.035")}, 0.06, ""},
		"the newest, last":      {[]ec2types.SpotPrice{quote("a", "m5.large", "0.035"), later}, 0.06, ""},
		"as on demand":          {[]ec2types.SpotPrice{quote("a", "m5.large", "0.1")}, 0.1, ""},
		"above on demand":       {[]ec2types.SpotPrice{quote("a", "m5.large", "7000")}, 0.1, `spot prices above those on demand count as these: 1, such as m5.large in a at "7000"`},
		"zero":                  {[]ec2types.SpotPrice{quote("a", "m5.large", "0")}, 0, `spot prices that are none are left out: 1, such as m5.large in a at "0"`},
		"next to nothing":       {[]ec2types.SpotPrice{quote("a", "m5.large", "0.0000001")}, 0, "left out: 1"},
		"negative":              {[]ec2types.SpotPrice{quote("a", "m5.large", "-0.05")}, 0, "left out: 1"},
		"infinite":              {[]ec2types.SpotPrice{quote("a", "m5.large", "Inf")}, 0, "left out: 1"},
		"no number":             {[]ec2types.SpotPrice{quote("a", "m5.large", "NaN")}, 0, "left out: 1"},
		"text":                  {[]ec2types.SpotPrice{quote("a", "m5.large", strings.Repeat("cheap", 99))}, 0, `at "cheapcheapcheapcheap"`},
		"no text":               {[]ec2types.SpotPrice{quote("a", "m5.large", "")}, 0, "left out: 1"},
		"a wrong and a right":   {[]ec2types.SpotPrice{quote("a", "m5.large", "x"), quote("a", "m5.large", "0.03")}, 0.03, "left out: 1"},
		"another product":       {[]ec2types.SpotPrice{other}, 0, ""},
		"an unknown zone":       {[]ec2types.SpotPrice{quote("z", "m5.large", "0.05")}, 0, ""},
		"another type":          {[]ec2types.SpotPrice{quote("a", "c5.large", "0.05")}, 0, ""},
		"a type without a list": {[]ec2types.SpotPrice{quote("a", "x99.huge", "0.05")}, 0, ""},
		"nothing":               {nil, 0, ""},
		"an empty entry":        {[]ec2types.SpotPrice{bare}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, log := newSpotBook(&pricing{answer: tc.answer})
			b.read(t.Context(), spotNoon, []string{"m5.large", "x99.huge"}, []string{"a", "b"})
			got := b.latest(spotNoon)
			want := prices.Spot{}
			if tc.want > 0 {
				want[prices.Offer{Zone: "a", Type: "m5.large"}] = tc.want
			}
			if diff := cmp.Diff(want, got.Prices); diff != "" || got.Fault != "" || !got.At.Equal(spotNoon) || !strings.Contains(got.Note, tc.note) || (got.Note == "") != (tc.note == "") {
				t.Errorf("%+v (-want +got):\n%s", got, diff)
			}
			if logged := strings.Contains(log.String(), "not taken"); logged != (tc.note != "") {
				t.Errorf("log %q", log)
			}
		})
	}
}

// EC2 is asked of what spot groups may buy, at a pace, in calls and pages that are bounded.
func TestSpotPricesAreAskedFor(t *testing.T) {
	api := &pricing{answer: []ec2types.SpotPrice{quote("a", "c5.large", "0.02"), quote("a", "m5.large", "0.03"), quote("b", "m5.large", "0.04")}, page: 2}
	b, _ := newSpotBook(api)
	now, ab := spotNoon, []string{"a", "b"}
	read := func(what string, changed bool, asked int, types ...string) {
		t.Helper()
		before := len(api.asked)
		if got := b.read(t.Context(), now, types, ab); got != changed || len(api.asked)-before != asked {
			t.Errorf("%s: %d calls, changed %v; want %d, %v", what, len(api.asked)-before, got, asked, changed)
		}
	}
	read("no spot group", false, 0)
	read("one", true, 2, "m5.large")
	in := api.asked[0]
	if diff := cmp.Diff([][]string{{"m5.large"}, ab, {spotProduct}}, [][]string{in.Filters[0].Values, in.Filters[1].Values, in.ProductDescriptions}); diff != "" || !in.StartTime.Equal(now) {
		t.Errorf("asked %+v\n%s", in, diff)
	}
	read("at once", false, 0, "m5.large")
	read("another type at once", false, 0, "c5.large", "m5.large")
	now = now.Add(spotSoon)
	read("another type", true, 2, "c5.large", "m5.large")
	if len(b.known) != 3 {
		t.Errorf("knows %v", b.known)
	}
	now = now.Add(spotEvery - 1)
	read("within its time", false, 0, "c5.large", "m5.large")
	now = now.Add(spotJitter + 1)
	read("after its time", false, 2, "c5.large", "m5.large")
	read("none any more", true, 0)
	if got := b.latest(now); got.Prices != nil || !got.At.IsZero() || got.Fault != "" {
		t.Errorf("%+v", got)
	}

	var types []string
	list := map[string]float64{}
	for i := range mostSpotTypes + 20 {
		types = append(types, fmt.Sprintf("m%03d.large", i))
		list[types[i]] = 0.1
	}
	api = &pricing{}
	b, _ = newSpotBook(api)
	b.assume.Prices = prices.Book{"eu-west-1": list}
	read("more types than are asked for", false, mostSpotTypes/spotTypesAtOnce, types...)
	if note := b.latest(now).Note; !strings.Contains(note, "spot prices of 20 types are not asked for") {
		t.Error(note)
	}
	api = &pricing{endless: true}
	b, _ = newSpotBook(api)
	read("no end", true, mostSpotPages, "m5.large")
	if fault := b.latest(now).Fault; !strings.Contains(fault, "no end after 5 pages") {
		t.Error(fault)
	}
}

// Without the right, and while AWS is away, the factor holds, after an hour in which the last
// answer does; what is said names what is missing.
func TestSpotPricesThatAreNotRead(t *testing.T) {
	denied := &smithy.GenericAPIError{Code: "UnauthorizedOperation", Message: "You are not authorized to perform this operation. User: u is not authorized to perform: ec2:DescribeSpotPriceHistory because no identity-based policy allows the ec2:DescribeSpotPriceHistory action"}
	api := &pricing{answer: []ec2types.SpotPrice{quote("a", "m5.large", "0.03")}, err: denied}
	b, log := newSpotBook(api)
	now := spotNoon
	want := func(what string, known int, fault string) {
		t.Helper()
		if got := b.latest(now); len(got.Prices) != known || !strings.Contains(got.Fault, fault) || fault == "" && got.Fault != "" || got.At.IsZero() != (known == 0) {
			t.Errorf("%s: %+v, want %d prices and %q", what, got, known, fault)
		}
	}
	next := func(after time.Duration) {
		now = now.Add(after)
		b.read(t.Context(), now, []string{"m5.large"}, []string{"a"})
	}
	next(0)
	want("without the right", 0, "spot prices are assumed at 0.4 of those on demand: no right to call ec2:DescribeSpotPriceHistory; statement SeeSpotPrices of manifests/iam/spot-prices.json grants it")
	next(spotEvery + spotJitter)
	if n := strings.Count(log.String(), "spot prices not read"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, log)
	}
	api.err = nil
	next(spotEvery + spotJitter)
	want("with the right", 1, "")
	api.err = errors.New("i/o timeout")
	next(spotEvery + spotJitter)
	want("AWS is away", 1, "spot prices are those of 12:24:00, because since then: ec2:DescribeSpotPriceHistory: i/o timeout")
	asked := len(api.asked)
	next(spotSoon)
	if len(api.asked) != asked+1 {
		t.Error("a failure that may pass is not asked again soon")
	}
	next(spotKept)
	want("for long", 0, "spot prices are assumed at 0.4 of those on demand: ec2:DescribeSpotPriceHistory: i/o timeout")
	api.err = nil
	next(spotSoon)
	want("it is back", 1, "")
	now = now.Add(spotKept)
	want("no reading ends for long", 0, "assumed at 0.4 of those on demand: EC2 last reported them at 2026-08-01T")
}

// However prices move within a tenth of those that count, the ones that count stay, and with them
// every decision. A price that counts is never further than a tenth from what EC2 reports, and
// never above that on demand.
func TestSmallMovesOfSpotPricesChangeNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		api := &pricing{}
		b, _ := newSpotBook(api)
		now := spotNoon
		var before prices.Spot
		for range rapid.IntRange(1, 20).Draw(rt, "answers") {
			api.answer = nil
			small, reported := true, map[prices.Offer]float64{}
			for _, zone := range []string{"a", "b"} {
				for _, name := range []string{"c5.large", "m5.large"} {
					onDemand := spotList["eu-west-1"][name]
					o := prices.Offer{Zone: zone, Type: name}
					price := onDemand * rapid.Float64Range(0.02, 1.5).Draw(rt, "share")
					if was, known := before[o]; known && rapid.Bool().Draw(rt, "moves a little") {
						price = was * rapid.Float64Range(0.9001, 1.0999).Draw(rt, "move")
					} else {
						small = false
					}
					api.answer = append(api.answer, quote(zone, name, fmt.Sprintf("%.9f", price)))
					reported[o] = min(price, onDemand)
				}
			}
			slices.SortFunc(api.answer, func(x, y ec2types.SpotPrice) int { return strings.Compare(*x.SpotPrice, *y.SpotPrice) })
			changed := b.read(t.Context(), now, []string{"c5.large", "m5.large"}, []string{"a", "b"})
			got := b.latest(now).Prices
			if small && (changed || !cmp.Equal(before, got)) {
				rt.Fatalf("changed %v: %v, was %v", changed, got, before)
			}
			for o, price := range reported {
				if math.Abs(got[o]-price) > got[o]*spotMoves+1e-6 || got[o] > spotList["eu-west-1"][o.Type] {
					rt.Fatalf("%v counts as %v, EC2 reports %v", o, got[o], price)
				}
			}
			before, now = got, now.Add(spotEvery+spotJitter)
		}
	})
}

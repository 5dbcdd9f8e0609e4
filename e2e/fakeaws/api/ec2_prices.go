package api

import (
	"slices"
	"strconv"
	"time"

	"windlass.dev/windlass/e2e/fakeaws/catalog"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakeaws/wire"
)

type ec2Price struct {
	InstanceType       string    `xml:"instanceType"`
	ProductDescription string    `xml:"productDescription"`
	SpotPrice          string    `xml:"spotPrice"`
	Timestamp          wire.Time `xml:"timestamp"`
	AvailabilityZone   string    `xml:"availabilityZone"`
	AvailabilityZoneID string    `xml:"availabilityZoneId"`
}

const (
	linux       = "Linux/UNIX"
	historyEach = 6 * time.Hour // a new price
	historyMost = 90 * 24 * time.Hour
)

// describeSpotPrices answers the price in force at the start time and each change after it, newest first. Without a start time it answers the current one.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotPriceHistory.html
func describeSpotPrices(c *cloud.Cloud, v wire.Values) (any, error) {
	from, to, err := priceSpan(c.Now(), v)
	if err != nil {
		return nil, err
	}
	named, products := v.List("InstanceType"), v.List("ProductDescription")
	filters := v.Filters("Filter", "Value")
	if err := known(filters, priceFields(ec2Price{})); err != nil {
		return nil, err
	}
	var all []ec2Price
	for at := to.Truncate(historyEach); !at.Add(historyEach).Before(from); at = at.Add(-historyEach) {
		for _, t := range catalog.All() {
			if len(named) > 0 && !slices.Contains(named, t.Name) {
				continue
			}
			for _, zone := range c.Zones() {
				price := priceShape(t, zone, at)
				if priceMatches(price, v.Get("AvailabilityZone"), products, filters) {
					all = append(all, price)
				}
			}
		}
		if from.Equal(to) {
			break
		}
	}
	page, next, err := wire.Page(v, "DescribeSpotPriceHistory", results(1, 1000), all)
	if err != nil {
		return nil, err
	}
	return struct {
		Prices    []ec2Price `xml:"spotPriceHistorySet>item"`
		NextToken string     `xml:"nextToken,omitempty"`
	}{page, next}, nil
}

func priceShape(t catalog.Type, zone string, at time.Time) ec2Price {
	return ec2Price{
		InstanceType: t.Name, ProductDescription: linux, Timestamp: wire.Time{Time: at}, AvailabilityZone: zone, AvailabilityZoneID: cloud.ZoneID(zone),
		SpotPrice: strconv.FormatFloat(cloud.SpotPrice(t, zone, int(at.Unix()/3600)), 'f', 6, 64),
	}
}

func priceMatches(p ec2Price, zone string, products []string, filters []wire.Filter) bool {
	return (zone == "" || zone == p.AvailabilityZone) && (len(products) == 0 || slices.Contains(products, p.ProductDescription)) && matches(filters, priceFields(p))
}

// priceFields are what DescribeSpotPriceHistory can be filtered by here.
func priceFields(p ec2Price) func(name string) ([]string, bool) {
	return fields(map[string]string{
		"availability-zone": p.AvailabilityZone, "instance-type": p.InstanceType, "product-description": p.ProductDescription, "spot-price": p.SpotPrice,
	})
}

func priceSpan(now time.Time, v wire.Values) (from, to time.Time, err error) {
	from, to = now, now
	for name, t := range map[string]*time.Time{"StartTime": &from, "EndTime": &to} {
		if !v.Has(name) {
			continue
		}
		if *t, err = time.Parse(time.RFC3339, v.Get(name)); err != nil {
			return from, to, cloud.Errorf(400, wire.InvalidParameterValue, "Value (%s) for parameter %s is invalid.", v.Get(name), name)
		}
	}
	if from.Before(now.Add(-historyMost)) {
		from = now.Add(-historyMost)
	}
	if from.After(to) {
		from = to
	}
	return from, to, nil
}

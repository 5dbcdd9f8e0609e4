package prices

// Spot has what EC2 reports of spot instances, in US dollars an hour. A nil one knows nothing.
type Spot map[Offer]float64

// Offer is a type in a zone: spot prices differ by both.
type Offer struct{ Zone, Type string }

// OfSpot returns what a spot instance costs, and whether that is reported of its type and zone:
// else it is assumed, as the share factor of the price on demand. It is 0 where neither is known.
func (b Book) OfSpot(spot Spot, region string, o Offer, factor float64) (price float64, reported bool) {
	if price, reported = spot[o]; reported {
		return price, true
	}
	return b.Of(region, o.Type) * factor, false
}

package cloud

import (
	"testing"

	"windlass.dev/windlass/e2e/fakeaws/catalog"
)

// In every hour of a year no two zones have the same price, so a test may tell them apart whenever it runs; each is below half of the on-demand price.
func TestSpotPrice(t *testing.T) {
	const year = 366 * 24
	for _, shape := range catalog.All() {
		moved := false
		for hour := range year {
			zones := map[float64]string{}
			for _, zone := range []string{"eu-west-1a", "eu-west-1b", "eu-west-1c", "us-east-1f"} {
				price := SpotPrice(shape, zone, hour)
				if price <= 0 || price >= shape.HourlyUSD/2 {
					t.Fatalf("%s costs %v in %s in hour %d, %v on demand", shape.Name, price, zone, hour, shape.HourlyUSD)
				}
				if other, same := zones[price]; same {
					t.Fatalf("%s costs %v in hour %d in %s as in %s", shape.Name, price, hour, zone, other)
				}
				zones[price] = zone
				moved = moved || price != SpotPrice(shape, zone, 0)
			}
		}
		if !moved {
			t.Errorf("%s: the price never moves", shape.Name)
		}
	}
}

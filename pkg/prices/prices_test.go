package prices_test

import (
	"os"
	"strings"
	"testing"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/pkg/prices"
)

// The list and the catalog of the test bed were put together apart from each
// other; where both know a type they agree.
func TestShippedAgreesWithTheCatalog(t *testing.T) {
	book := prices.Shipped()
	if n := len(book["us-east-1"]); n < 1000 {
		t.Errorf("%d types", n)
	}
	for _, name := range []string{"c5.large", "m5.large", "c6g.2xlarge", "c7i.4xlarge", "g4dn.xlarge", "t3.medium"} {
		figures, ok := fakeaws.LookupType(name)
		if got := book.Of("us-east-1", name); !ok || got != figures.HourlyUSD {
			t.Errorf("%s: %v, the catalog says %v", name, got, figures.HourlyUSD)
		}
	}
}

// What a region's list lacks is borrowed; an unknown type has no price.
func TestOf(t *testing.T) {
	book := prices.Shipped().With(prices.Book{"eu-west-1": {"m5.large": 0.107}})
	for _, tc := range []struct {
		region, name string
		want         float64
	}{
		{"us-east-1", "m5.large", 0.096},
		{"eu-west-1", "m5.large", 0.107},
		{"eu-west-1", "c5.large", 0.085},
		{"ap-south-1", "m5.large", 0.096},
		{"us-east-1", "x99.huge", 0},
	} {
		if got := book.Of(tc.region, tc.name); got != tc.want {
			t.Errorf("%s in %s: %v, want %v", tc.name, tc.region, got, tc.want)
		}
	}
}

func TestParse(t *testing.T) {
	book, err := prices.Parse("# a list\n\neu-west-1 m5.large 0.1\t# today\neu-west-1 m5.large .2\n")
	if err != nil || len(book) != 1 || book.Of("eu-west-1", "m5.large") != .2 {
		t.Errorf("%v, %v", book, err)
	}
	for text, want := range map[string]string{
		"eu-west-1 m5.large":                 "line 1: ",
		"\neu-west-1 m5.large cheap":         `line 2: "cheap" is no price`,
		"eu-west-1 m5.large 0":               `"0" is no price`,
		"eu-west-1 m5.large -1":              `"-1" is no price`,
		"eu-west-1 m5.large NaN":             `"NaN" is no price`,
		"eu-west-1 m5.large Inf":             `"Inf" is no price`,
		"a b " + strings.Repeat("9", 70_000): "reading prices: ",
	} {
		if _, err := prices.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v, want %s", text, err, want)
		}
	}
}

// The date that people read beside a figure is that of the list.
func TestSourceIsThatOfTheList(t *testing.T) {
	text, err := os.ReadFile("prices.txt")
	if err != nil {
		t.Fatal(err)
	}
	if head, _, _ := strings.Cut(string(text), "\n\n"); !strings.Contains(head, "published them on "+prices.Date+",") || !strings.Contains(prices.Source, prices.Date) {
		t.Errorf("prices.txt begins with\n%s\nand the program says %q", head, prices.Source)
	}
}

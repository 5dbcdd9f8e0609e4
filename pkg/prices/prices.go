// Package prices knows what instances cost: a list that is part of the program,
// with its date, and lists that people give in its place.
package prices

import (
	"bufio"
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Book has what Linux instances cost on demand, in US dollars an hour, by region
// and type.
type Book map[string]map[string]float64

// standIn is the region whose prices are taken where a region has none. Prices
// differ by region, by a tenth or two; the order of types by price hardly does, and
// no more is asked of them when one of several groups is chosen.
const standIn = "us-east-1"

// Of returns a type's price in a region; 0 where it is not known.
func (b Book) Of(region, instanceType string) float64 {
	if own, ok := b[region][instanceType]; ok {
		return own
	}
	return b[standIn][instanceType]
}

//go:embed prices.txt
var shipped string

// Date is of which day the list is that is part of the program.
const Date = "2026-07-20"

// Source says where that list is from, for those who read a figure that was made with it.
const Source = "AWS's list prices of " + Date + " for Linux on demand in " + standIn + ", which stand in for other regions"

// Shipped is the list that is part of the program. Where it is from and of which
// day stands at the head of prices.txt, and in Source.
func Shipped() Book {
	b, err := Parse(shipped)
	if err != nil {
		panic(fmt.Sprintf("prices.txt: %v", err)) // a part of the program, which a test reads
	}
	return b
}

// Parse reads a list: a line has a region, a type and a price, with blanks between
// them; # begins a comment. An error names the line.
func Parse(text string) (Book, error) {
	b := Book{}
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 3 {
			return nil, fmt.Errorf("line %d: %q: want a region, an instance type and a price, such as eu-west-1 m5.large 0.107", n, line)
		}
		region, name := fields[0], fields[1]
		price, err := strconv.ParseFloat(fields[2], 64)
		if err != nil || !(price > 0) || math.IsInf(price, 0) {
			return nil, fmt.Errorf("line %d: %q is no price in US dollars an hour", n, fields[2])
		}
		if b[region] == nil {
			b[region] = map[string]float64{}
		}
		b[region][name] = price
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading prices: %w", err)
	}
	return b, nil
}

// ReadFile is the built-in list with that of a file over it, as --price-file names one, and
// what Source then is. Without a name it is the built-in one.
func ReadFile(name string, read func(string) ([]byte, error)) (Book, string, error) {
	if name == "" {
		return Shipped(), Source, nil
	}
	text, err := read(name)
	if err != nil {
		return nil, "", fmt.Errorf("--price-file: %w", err)
	}
	own, err := Parse(string(text))
	if err != nil {
		return nil, "", fmt.Errorf("--price-file=%s: %w", name, err)
	}
	return Shipped().With(own), "those of " + name + "; where it has none, " + Source, nil
}

// With lays another list over this one: it wins, region by region and type by
// type.
func (b Book) With(other Book) Book {
	out := Book{}
	for _, list := range []Book{b, other} {
		for region, types := range list {
			if out[region] == nil {
				out[region] = make(map[string]float64, len(types))
			}
			for name, price := range types {
				out[region][name] = price
			}
		}
	}
	return out
}

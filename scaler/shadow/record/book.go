package record

import (
	"cmp"
	"fmt"
	"slices"
)

// Book is a log as it is read.
type Book struct {
	// Records are in the order of their dates, those of one date as they were written.
	Records []Record
	Omitted Omitted
	// Cut is true where older chunks have made room for younger ones.
	Cut bool
	// Faults name the chunks that could not be read, and those that are missing between others.
	Faults []string
}

// Read puts the chunks of one log together. One that cannot be read is left out and named.
func Read(chunks []Chunk) Book {
	type part struct {
		head
		records []Record
	}
	var b Book
	var parts []part
	unread := map[uint64]bool{}
	for _, c := range chunks {
		h, records, err := unpack(c.Data)
		if err != nil {
			unread[c.Number] = true
			b.Faults = append(b.Faults, fmt.Sprintf("chunk %d: %v", c.Number, err))
			continue
		}
		parts = append(parts, part{h, records})
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.Number, b.Number) })
	b.Cut = len(parts) > 0 && parts[0].Number > 0
	for i, p := range parts {
		if i > 0 && p.Number == parts[i-1].Number {
			b.Faults = append(b.Faults, fmt.Sprintf("chunk %d is there twice: the first counts", p.Number))
			continue
		}
		if i > 0 {
			b.missing(parts[i-1].Number+1, p.Number, unread)
		}
		b.Omitted.add(p.Omitted)
		b.Records = append(b.Records, p.records...)
	}
	slices.SortStableFunc(b.Records, func(a, b Record) int { return a.At.Compare(b.At) })
	return b
}

// missing names the chunks of a range that are not there.
func (b *Book) missing(from, before uint64, unread map[uint64]bool) {
	for from < before && unread[from] {
		from++
	}
	switch {
	case from >= before:
	case from+1 == before:
		b.Faults = append(b.Faults, fmt.Sprintf("chunk %d is missing", from))
	default:
		b.Faults = append(b.Faults, fmt.Sprintf("chunks %d to %d are missing", from, before-1))
	}
}

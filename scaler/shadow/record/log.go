package record

import (
	"fmt"
	"slices"
	"time"
)

// Log is the log that a shadow writes. Appending takes no more than the record's own time; what is
// due to be written is packed when somebody asks for it. It is for one goroutine.
type Log struct {
	// number is that of the open chunk, lines its records, bytes how many these have.
	number  uint64
	lines   [][]byte
	bytes   int
	omitted Omitted
	// fits is how many of the lines are known to have room in a chunk.
	fits int
	// appended counts, packed is what it was when Unwritten was asked, written when that was
	// written.
	appended, packed, written int
	full                      []Chunk // not written yet, the oldest first
	room                      map[string]*allowance
	last                      time.Time // when a sample was kept
}

// allowance is how many bytes of one kind may still come: so many at once, and so many more each
// minute. Whoever makes many pods could otherwise have all else go out of the log.
type allowance struct {
	most, rate, has float64
	at              time.Time
}

// allowances are by kind of record.
func allowances() map[string]*allowance {
	all := map[string]*allowance{}
	for kind, a := range map[string]allowance{
		"sample":   {most: 1 << 20, rate: 160 << 10},
		"bound":    {most: 512 << 10, rate: 8 << 10},
		"seen":     {most: 512 << 10, rate: 4 << 10},
		"claim":    {most: 256 << 10, rate: 2 << 10},
		"decided":  {most: 512 << 10, rate: 4 << 10},
		"diverged": {most: 256 << 10, rate: 2 << 10},
		"began":    {most: 64 << 10, rate: 1 << 10},
		"pods":     {most: 1 << 20, rate: 4 << 10},
		"groups":   {most: 256 << 10, rate: 1 << 10},
	} {
		a.has = a.most
		all[kind] = &a
	}
	return all
}

// take takes so many bytes off, if they are there. A clock that jumps back allows nothing more.
func (a *allowance) take(bytes int, at time.Time) bool {
	if minutes := at.Sub(a.at).Minutes(); !a.at.IsZero() && minutes > 0 {
		a.has = min(a.most, a.has+minutes*a.rate)
	}
	a.at = at
	if a.has < float64(bytes) {
		return false
	}
	a.has -= float64(bytes)
	return true
}

func (r Record) kind() string {
	switch {
	case r.Sample != nil:
		return "sample"
	case r.Bound != nil:
		return "bound"
	case r.Seen != nil && r.Seen.By == ByClaim:
		return "claim" // tenants choose how many there are
	case r.Seen != nil:
		return "seen"
	case r.Decided != nil:
		return "decided"
	case r.Diverged != nil:
		return "diverged"
	case r.Pods != nil:
		return "pods"
	case r.Groups != nil:
		return "groups"
	}
	return "began"
}

// Resume is the log that goes on after these chunks, in any order: the newest is written on, unless
// it cannot be read. faults name those that cannot; they stay until their slot's turn comes.
func Resume(chunks []Chunk) (l *Log, faults []error) {
	l = &Log{room: allowances()}
	for _, c := range chunks {
		h, records, err := unpack(c.Data)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("chunk %d of the shadow's log: %w", c.Number, err))
			if c.Number >= l.number && c.Number < mostChunk {
				l.begin(c.Number+1, nil, Omitted{})
			}
		case h.Number >= l.number && h.Number < mostChunk:
			l.begin(h.Number, records, h.Omitted)
		}
	}
	return l, faults
}

// mostChunk is beyond all numbers that a log can come to.
const mostChunk = 1 << 62

// begin opens a chunk.
func (l *Log) begin(number uint64, records []Record, omitted Omitted) {
	l.number, l.lines, l.bytes, l.fits, l.omitted = number, nil, 0, 0, omitted
	for _, r := range records {
		if line, err := r.line(); err == nil { // it was read from one
			l.put(line)
		}
	}
	l.fits = len(l.lines)
}

func (l *Log) put(line []byte) {
	l.lines = append(l.lines, line)
	l.bytes += len(line)
}

// Append adds a record, or counts it where there is no room for it at this moment: the date of a record
// may be somebody else's choice. A sample finds room each SampleEvery whatever it has.
func (l *Log) Append(r Record, now time.Time) error {
	r = r.Normal()
	l.appended++
	if !r.Valid() {
		l.omitted.omit(r)
		return nil
	}
	line, err := r.line()
	if err != nil {
		l.omitted.omit(r)
		return fmt.Errorf("encoding a record of the shadow: %w", err)
	}
	if !l.admits(r, len(line), now) {
		l.omitted.omit(r)
		return nil
	}
	l.put(line)
	if l.bytes < maxPlain {
		return nil
	}
	_, err = l.settle()
	return err
}

func (l *Log) admits(r Record, bytes int, now time.Time) bool {
	ok := l.room[r.kind()].take(bytes, now)
	if r.Sample == nil {
		return ok
	}
	since := now.Sub(l.last)
	if ok = ok || since < 0 || since >= SampleEvery; ok {
		l.last = now
	}
	return ok
}

// Unwritten are the chunks that are not written as they are now, the oldest first. What could not
// be written is among them the next time.
func (l *Log) Unwritten() ([]Chunk, error) {
	if l.appended == l.written && len(l.full) == 0 {
		return nil, nil
	}
	open, err := l.settle()
	if err != nil {
		return nil, err
	}
	l.fits, l.packed = len(l.lines), l.appended
	return append(l.full[:len(l.full):len(l.full)], open), nil
}

// Written records that the chunks that Unwritten has returned last are written.
func (l *Log) Written(chunks []Chunk) {
	if len(chunks) == 0 {
		return
	}
	l.written = l.packed
	open := chunks[len(chunks)-1].Number
	l.full = slices.DeleteFunc(l.full, func(c Chunk) bool { return c.Number < open })
}

// pack is a chunk of the first lines of the open one.
func (l *Log) pack(lines int) (Chunk, error) {
	data, err := pack(head{Number: l.number, Omitted: l.omitted}, l.lines[:lines])
	if err != nil {
		return Chunk{}, fmt.Errorf("packing a chunk of the shadow's log: %w", err)
	}
	return Chunk{l.number, data}, nil
}

// settle closes as many chunks as the lines need, until those that stay open have room in the one
// that it returns.
func (l *Log) settle() (open Chunk, err error) {
	for {
		if l.bytes < maxPlain {
			open, err := l.pack(len(l.lines))
			if err != nil || len(open.Data) <= MaxBytes {
				return open, err
			}
		}
		if err := l.close(); err != nil {
			return Chunk{}, err
		}
	}
}

// close makes a chunk of the first lines that have room in one.
func (l *Log) close() error {
	for n := len(l.lines); ; {
		c, err := l.pack(n)
		if err != nil {
			return err
		}
		if len(c.Data) > MaxBytes && n > 1 {
			if n /= 2; 0 < l.fits && l.fits < 2*n {
				n = l.fits
			}
			continue
		}
		l.full = append(l.full, c)
		l.full = l.full[max(0, len(l.full)-(Chunks-1)):] // while they cannot be written
		rest := l.lines[n:]
		l.begin(l.number+1, nil, Omitted{})
		for _, line := range rest {
			l.put(line)
		}
		return nil
	}
}

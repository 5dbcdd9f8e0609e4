package fit

// topology is a label of nodes by which they are domains, such as zones.
type topology struct {
	key string
	// domains numbers the label's values.
	domains map[string]int32
	values  []string
	// free are numbers of domains that were removed.
	free []int32
}

// none is the domain of a place without the label.
const none int32 = -1

func (t *topology) domain(value string) int32 {
	d, known := t.domains[value]
	if !known {
		d = t.fresh(value)
		t.domains[value] = d
	}
	return d
}

// fresh is a domain that only one place is in.
func (t *topology) fresh(value string) int32 {
	if last := len(t.free) - 1; last >= 0 {
		d := t.free[last]
		t.free = t.free[:last]
		t.values[d] = value
		return d
	}
	t.values = append(t.values, value)
	return int32(len(t.values) - 1)
}

// counts is a number for each domain, 0 for most. Terms that only few pods have are
// counted in few domains, and there may be thousands of such terms: they cost what they
// count, and not what domains there are.
type counts struct {
	few   []entry
	pages []*[pageSize]int32
}

// entry is what is counted in a domain.
type entry struct{ domain, n int32 }

const (
	pageSize = 16
	// mostFew is how many entries are searched one by one; more are kept in pages.
	mostFew = 8
)

func (c *counts) at(d int32) int32 {
	if c.pages == nil {
		for _, e := range c.few {
			if e.domain == d {
				return e.n
			}
		}
		return 0
	}
	page := int(d) / pageSize
	if page >= len(c.pages) || c.pages[page] == nil {
		return 0
	}
	return c.pages[page][d%pageSize]
}

// add changes a number and returns what it was.
func (c *counts) add(d, n int32) (before int32) {
	if c.pages == nil {
		for i := range c.few {
			e := &c.few[i]
			if e.domain != d {
				continue
			}
			before, e.n = e.n, e.n+n
			if e.n == 0 {
				last := len(c.few) - 1
				c.few[i] = c.few[last]
				c.few = c.few[:last]
			}
			return before
		}
		if len(c.few) < mostFew {
			c.few = append(c.few, entry{d, n})
			return 0
		}
		for _, e := range c.few {
			c.addPaged(e.domain, e.n)
		}
		c.few = nil
	}
	return c.addPaged(d, n)
}

func (c *counts) addPaged(d, n int32) (before int32) {
	page := int(d) / pageSize
	for len(c.pages) <= page {
		c.pages = append(c.pages, nil)
	}
	if c.pages[page] == nil {
		c.pages[page] = new([pageSize]int32)
	}
	before = c.pages[page][d%pageSize]
	c.pages[page][d%pageSize] += n
	return before
}

// tally counts pods by the domain that they are in.
type tally struct {
	tallyKey
	over int
	// electorate are the places that count, nil for all.
	electorate *electorate
	// selectors must all match a pod that counts; of an owning tally, only pods
	// count that own the term.
	selectors []int
	counts    counts
	// occupied counts the domains with a pod.
	occupied int32
	// levels counts, for spread, the domains with each number of pods but 0; no
	// domain has fewer than low, unless none.
	levels []int32
	low    int
}

// tallyKey identifies a tally.
type tallyKey struct {
	purpose purpose
	// selector is the first of the selectors, none without any; others are the rest.
	selector   int32
	others     string
	topology   string
	electorate int
}

type purpose uint8

const (
	// matching counts the pods that the selectors match.
	matching purpose = iota
	// spreading likewise, but for terminating ones.
	spreading
	// owning counts the pods that own an anti-affinity term.
	owning
)

// add counts n pods more at a place.
func (t *tally) add(p *Place, n int32) {
	if t.electorate != nil && !p.votes[t.electorate.id] {
		return
	}
	d := p.domains[t.over]
	if d == none {
		return
	}
	before := t.counts.add(d, n)
	switch after := before + n; {
	case before == 0 && after > 0:
		t.occupied++
	case before > 0 && after == 0:
		t.occupied--
	}
	if t.purpose == spreading {
		t.level(before, -1)
		t.level(before+n, 1)
	}
}

func (t *tally) level(at, n int32) {
	if at <= 0 {
		return
	}
	for len(t.levels) <= int(at) {
		t.levels = append(t.levels, 0)
	}
	t.levels[at] += n
	if n > 0 {
		t.low = min(t.low, int(at))
	}
}

// at is how many pods are in the domain of a place; 0 where it is in none.
func (t *tally) at(p *Place) int32 {
	if d := p.domains[t.over]; d != none {
		return t.counts.at(d)
	}
	return 0
}

// fewest is the least number of pods in any domain of the electorate.
func (t *tally) fewest() int32 {
	if t.electorate.present(t.over) > t.occupied || t.occupied == 0 {
		return 0
	}
	for t.low < len(t.levels) && t.levels[t.low] == 0 {
		t.low++
	}
	return int32(t.low)
}

package scaledown

import (
	"cmp"
	"slices"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// exchanges is how often at most a node is put in another's stead for a try.
const exchanges = 100

// exchange lets dearer nodes go in the stead of cheaper ones: for one whose pods had no
// other place, one that was chosen is taken back, and its pods with it, if there is room
// then. Nodes that were chosen in an earlier look are not taken back for that.
func (r *retirement) exchange(list, chosen []*candidate) []*candidate {
	stuck := slices.DeleteFunc(slices.Clone(list), func(c *candidate) bool { return c.reason != verdict.NodeNoPlace })
	slices.SortStableFunc(stuck, func(a, b *candidate) int { return cmp.Compare(b.worth, a.worth) })
	slices.SortStableFunc(chosen, func(a, b *candidate) int { return cmp.Compare(a.worth, b.worth) })
	if len(stuck) == 0 || len(chosen) == 0 || stuck[0].worth <= chosen[0].worth+epsilon {
		return chosen
	}
	tries, seats := 0, r.seats()
	r.rehearsal = true
	for _, dear := range stuck {
		for i, cheap := range chosen {
			if cheap.worth >= dear.worth-epsilon || tries == exchanges || r.spent(shareExchanges) {
				break
			}
			if !cheap.since.IsZero() {
				continue
			}
			tries++
			if r.instead(dear, cheap, seats) {
				chosen[i], seats = dear, r.seats()
				break
			}
		}
	}
	return chosen
}

// seats says where pods have a seat that are on other nodes now.
func (r *retirement) seats() map[*fleet.Pod]*fit.Place {
	at := map[*fleet.Pod]*fit.Place{}
	for _, p := range r.places {
		for _, t := range p.Seated() {
			at[t.Pod] = p
		}
	}
	return at
}

// instead tries whether a dear node can go if a cheap one stays.
func (r *retirement) instead(dear, cheap *candidate, seats map[*fleet.Pod]*fit.Place) bool {
	start := r.Fit.Try()
	for _, t := range cheap.movers {
		r.Fit.Lift(t, seats[t.Pod])
		r.Fit.Put(t, cheap.Place)
	}
	r.Fit.Reopen(cheap.Place)
	r.row = r.Fit.NewRow(r.places) // room has come free
	r.takeBack(cheap)
	reason, _ := r.withheld(dear)
	if reason == "" {
		reason, _ = r.empty(dear)
	}
	if reason != "" {
		r.Fit.Revert(start)
		r.letGo(cheap)
		return false
	}
	r.letGo(dear)
	dear.reason = ""
	cheap.reason, cheap.why = verdict.NodeNoPlace, verdict.Say("its pods would take the places of those of {node}, which costs more", verdict.Node(dear.Name))
	return true
}

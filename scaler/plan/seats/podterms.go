package seats

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// What a pod says of others is asked about every kind of pod that it may concern, so that thousands
// of pods that each say something else of all others cost their number squared. One tenant can make
// them. So what pods say is weighed before anything is learned of it, and the namespaces share what
// an evaluation can bear. Of pods that run, what weighs least has its say, always the same; the
// others are taken to stay where they are. Pods that wait are considered by turns; the clock
// decides whose it is, so that nothing has to be persisted.

const (
	// fewTerms are not worth weighing. Where they name many labels, each of those counts as one.
	fewTerms = 1000
	// turnOfTerms is for how long the same pending pods are considered.
	turnOfTerms = time.Minute
)

// hush finds the pods that have no say in this evaluation, and says why of those that could
// trigger scale-up.
func (k *Cache) hush(d *Seats, kubernetes string) (mute map[*fleet.Pod]bool) {
	mute, d.Unheard = map[*fleet.Pod]bool{}, map[*fleet.Pod]verdict.Details{}
	var waiting, running speakers
	for i, p := range d.Speaking.Pods {
		row := d.Speaking.Rows[i]
		switch terms := fit.CountTerms(p.Spec) + fit.LongValues(p.Spec); {
		case p.Ended() || p.Node == "" && p.Nominated() != "":
		case p.Node != "":
			running.hear(row, p, k.rules.Terms(kubernetes, p), terms)
		case d.TriggersNoScaleUp(p):
			mute[p] = true
		default:
			waiting.hear(row, p, k.rules.Terms(kubernetes, p), terms)
		}
	}
	most := d.Policy.Bounds.PodTerms
	if waiting.terms+running.terms <= min(fewTerms, most) {
		return mute
	}
	scales := k.rules.Scales(d.Pods, len(waiting.said)+len(running.said))
	for _, s := range running.overweight(scales, most) {
		s.hushHeaviest()
	}
	for _, s := range waiting.overweight(scales, most) {
		s.takeTurns(d)
	}
	running.each(func(row int32, _ verdict.Details) { mute[d.Pods[row]] = true })
	waiting.each(func(row int32, why verdict.Details) { mute[d.Pods[row]], d.Unheard[d.Pods[row]] = true, why })
	return mute
}

// mostDaemonTerms is what fit.CountTerms counts of the templates of all DaemonSets at most.
const mostDaemonTerms = 256

// hushDaemons are the DaemonSets without what their templates say of other pods where that is more than the
// pods of a buffer may say, or more than the share of their namespace. They may have a pod on no node and
// cost nobody anything, and each term is asked about every kind of pod. The first ones have their say.
func hushDaemons(sets []fleet.DaemonSet) []fleet.DaemonSet {
	spaces := map[string]bool{}
	for i := range sets {
		if fit.CountTerms(&sets[i].Template.Spec) > 0 {
			spaces[sets[i].Namespace] = true
		}
	}
	share, said, hushed := max(mostBufferTerms, mostDaemonTerms/max(1, len(spaces))), map[string]int{}, false
	for i := range sets {
		spec, space := &sets[i].Template.Spec, sets[i].Namespace
		terms := fit.CountTerms(spec)
		if said[space]+terms <= share && terms <= mostBufferTerms && fit.CountValues(spec) <= mostBufferValues {
			said[space] += terms
			continue
		}
		if !hushed {
			sets, hushed = slices.Clone(sets), true
		}
		sets[i].Template.Spec.TopologySpreadConstraints = nil
		if a := spec.Affinity; a != nil {
			sets[i].Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: a.NodeAffinity}
		}
	}
	return sets
}

// speakers are pods that say something of others.
type speakers struct {
	// heard are the pods whose terms were read, by the row among all pods, and which of their
	// terms.
	heard []struct{ row, said int32 }
	said  []saying
	// terms counts what is said, each set once.
	terms int
	index map[fit.TermsKey]int
}

// saying is what some pods of a namespace say, the same of all.
type saying struct {
	fit.TermsKey
	first  *fleet.Pod // of those that say it
	weight int
	// unheard is why it has no say; nil where it has.
	unheard verdict.Details
}

func (s *speakers) hear(row int32, p *fleet.Pod, key fit.TermsKey, terms int) {
	i := len(s.said) - 1
	if i < 0 || s.said[i].TermsKey != key { // pods of one owner follow each other
		known := false
		if i, known = s.index[key]; !known {
			if s.index == nil {
				s.index = map[fit.TermsKey]int{}
			}
			i = len(s.said)
			s.index[key] = i
			s.said = append(s.said, saying{TermsKey: key, first: p})
			s.terms += terms
		}
	}
	s.heard = append(s.heard, struct{ row, said int32 }{row, int32(i)})
}

// each goes through the pods that have no say.
func (s *speakers) each(unheard func(row int32, why verdict.Details)) {
	for _, h := range s.heard {
		if why := s.said[h.said].unheard; why != nil {
			unheard(h.row, why)
		}
	}
}

// speaking is a namespace whose pods say more than its share.
type speaking struct {
	name  string
	said  []*saying
	share int
}

// overweight lets the namespaces share the weight that an evaluation can bear, and lists
// those that ask for more, by name.
func (s *speakers) overweight(scales *fit.Scales, most int) (list []speaking) {
	var begins, demands []int // of each namespace: pods come by it
	for i := range s.said {
		if i == 0 || s.said[i].first.Namespace != s.said[i-1].first.Namespace {
			begins, demands = append(begins, i), append(demands, 0)
		}
		s.said[i].weight = scales.Weigh(s.said[i].TermsKey)
		demands[len(demands)-1] += s.said[i].weight
	}
	begins = append(begins, len(s.said))
	for i, share := range fairShares(most, demands) {
		if share >= demands[i] {
			continue
		}
		space := speaking{name: s.said[begins[i]].first.Namespace, share: share}
		for j := begins[i]; j < begins[i+1]; j++ {
			space.said = append(space.said, &s.said[j])
		}
		list = append(list, space)
	}
	return list
}

// hushHeaviest lets the lightest have their say.
func (s speaking) hushHeaviest() {
	slices.SortStableFunc(s.said, func(a, b *saying) int { return cmp.Compare(a.weight, b.weight) })
	for _, one := range s.said {
		if s.share -= one.weight; s.share < 0 {
			one.unheard = verdict.Say("others of its namespace say less")
		}
	}
}

// takeTurns lets those of the greatest priority and the oldest have their say, as far as half
// of the share goes, and the others by turns.
func (s speaking) takeTurns(d *Seats) {
	slices.SortStableFunc(s.said, func(a, b *saying) int {
		p, q := a.first, b.first
		return cmp.Or(cmp.Compare(q.Priority(), p.Priority()), cmp.Compare(p.Created, q.Created))
	})
	left, first := s.share, 0
	for first < len(s.said) && left-s.said[first].weight >= s.share/2 {
		left -= s.said[first].weight
		first++
	}
	rest, weight := s.said[first:], 0
	for _, one := range rest {
		weight += one.weight
	}
	byTurns := verdict.Say("the pending pods of namespace {namespace} have {count} different sets of affinity, anti-affinity and spread terms, more than an evaluation considers: it is considered in its turn",
		verdict.Namespace(s.name), verdict.Count(len(s.said)))
	never := verdict.Say("its affinity, anti-affinity and spread terms alone concern more kinds of pods than an evaluation considers for namespace {namespace}", verdict.Namespace(s.name))
	each := max(1, len(rest)*left/weight) // in a turn
	turn := int(d.Now.Unix() / int64(turnOfTerms/time.Second) % int64(len(rest)))
	for i := range rest {
		one := rest[(turn*each+i)%len(rest)]
		if one.weight <= left {
			left -= one.weight
			continue
		}
		one.unheard = byTurns
		if one.weight > s.share {
			one.unheard = never
		}
	}
	d.Clock.At(d.Now.Truncate(turnOfTerms).Add(turnOfTerms))
}

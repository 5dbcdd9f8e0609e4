package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

// What a pod says of others is asked about every kind of pod that it may concern, so that
// thousands of pods that each say something else of all others cost their number squared.
// One tenant can make them. So what pods say is weighed before anything is learned of it,
// and the namespaces share what an evaluation can bear. Of pods that run, what weighs least
// has its say, always the same; the others are taken to stay where they are. Pods that wait
// are considered by turns; the clock tells whose it is, so that nothing has to be persisted.

const (
	// fewTerms are not worth weighing.
	fewTerms = 1000
	// turnOfTerms is for how long the same waiting pods are considered.
	turnOfTerms = time.Minute
)

// hush finds the pods that have no say in this evaluation, and says why of those that could
// bring a node.
func (k *Planner) hush(d *decision, kubernetes string) (mute map[*fleet.Pod]bool) {
	mute, d.unheard = map[*fleet.Pod]bool{}, map[*fleet.Pod]string{}
	var waiting, running speakers
	for _, p := range d.pods {
		switch terms := fit.CountTerms(p.Spec); {
		case terms == 0 || p.Ended() || p.Node == "" && p.Nominated != "":
		case p.Node != "":
			running.hear(p, k.rules.Terms(kubernetes, p), terms)
		case d.bringsNone(p):
			mute[p] = true
		default:
			waiting.hear(p, k.rules.Terms(kubernetes, p), terms)
		}
	}
	most := d.policy.Bounds.PodTerms
	if waiting.terms+running.terms <= min(fewTerms, most) {
		return mute
	}
	scales := k.rules.Scales(d.pods)
	for _, s := range running.overweight(scales, most) {
		s.hushHeaviest(mute)
	}
	for _, s := range waiting.overweight(scales, most) {
		s.takeTurns(d, mute)
	}
	return mute
}

// bringsNone says that no node is brought for a pod without one as it is now.
func (d *decision) bringsNone(p *fleet.Pod) bool {
	return !drainable.MustBePlacedAgain(p) || p.Scheduling == fleet.Gated || !d.scheduled(p) || d.expendable(p)
}

// speakers are pods that say something of others.
type speakers struct {
	// terms counts what is said, each set once.
	terms int
	said  []saying
	index map[fit.TermsKey]int
}

// saying is what some pods of a namespace say, the same of all, and what that weighs.
type saying struct {
	pods   []*fleet.Pod
	weight int
}

func (s *speakers) hear(p *fleet.Pod, key fit.TermsKey, terms int) {
	i, known := s.index[key]
	if !known {
		if s.index == nil {
			s.index = map[fit.TermsKey]int{}
		}
		i = len(s.said)
		s.index[key] = i
		s.said = append(s.said, saying{})
		s.terms += terms
	}
	s.said[i].pods = append(s.said[i].pods, p)
}

// speaking is a namespace whose pods say more than its share.
type speaking struct {
	name  string
	said  []saying
	share int
}

// overweight lets the namespaces share the weight that an evaluation can bear, and lists
// those that ask for more, by name.
func (s *speakers) overweight(scales *fit.Scales, most int) (list []speaking) {
	var spaces []speaking // pods come by namespace
	var demands []int
	for _, one := range s.said {
		name := one.pods[0].Namespace
		if last := len(spaces) - 1; last < 0 || spaces[last].name != name {
			spaces, demands = append(spaces, speaking{name: name}), append(demands, 0)
		}
		last := len(spaces) - 1
		one.weight = scales.Weigh(one.pods[0])
		spaces[last].said = append(spaces[last].said, one)
		demands[last] += one.weight
	}
	for i, share := range fairShares(most, demands) {
		if share < demands[i] {
			spaces[i].share = share
			list = append(list, spaces[i])
		}
	}
	return list
}

// hushHeaviest lets the lightest have their say.
func (s speaking) hushHeaviest(mute map[*fleet.Pod]bool) {
	slices.SortStableFunc(s.said, func(a, b saying) int { return cmp.Compare(a.weight, b.weight) })
	for _, one := range s.said {
		if s.share -= one.weight; s.share >= 0 {
			continue
		}
		for _, p := range one.pods {
			mute[p] = true
		}
	}
}

// takeTurns lets those of the greatest priority and the oldest have their say, as far as half
// of the share goes, and the others by turns.
func (s speaking) takeTurns(d *decision, mute map[*fleet.Pod]bool) {
	slices.SortStableFunc(s.said, func(a, b saying) int {
		p, q := a.pods[0], b.pods[0]
		return cmp.Or(cmp.Compare(q.Priority(), p.Priority()), p.Created.Compare(q.Created))
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
	byTurns := fmt.Sprintf("the pods of namespace %s that wait have %d different sets of affinity, anti-affinity and spread terms, more than an evaluation considers: others of them are considered now, and this one in its turn", s.name, len(s.said))
	never := fmt.Sprintf("its affinity, anti-affinity and spread terms alone concern more kinds of pods than an evaluation considers for namespace %s", s.name)
	each := max(1, len(rest)*left/weight) // in a turn
	turn := int(d.now.Unix() / int64(turnOfTerms/time.Second) % int64(len(rest)))
	for i := range rest {
		one := rest[(turn*each+i)%len(rest)]
		if one.weight <= left {
			left -= one.weight
			continue
		}
		for _, p := range one.pods {
			mute[p], d.unheard[p] = true, byTurns
			if one.weight > s.share {
				d.unheard[p] = never
			}
		}
	}
	d.clock.at(d.now.Truncate(turnOfTerms).Add(turnOfTerms))
}

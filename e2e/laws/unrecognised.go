package laws

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"windlass.dev/windlass/e2e/fakeaws"
)

// Machine is what the laws need to know of an instance.
type Machine struct {
	Group string
	// Max is the largest size of its group.
	Max      int
	Launched time.Time
}

// Brake is what bounds the end of instances that are not recognised as Nodes.
type Brake struct {
	// Machine finds an instance, also one that is gone.
	Machine func(id string) (Machine, bool)
	// Provision is how long an instance may take to become a Node, BackOff the shortest
	// pause between two that are replaced in a group at its min.
	Provision, BackOff time.Duration
	// Away are the times in which the API server did not answer: nobody can join then.
	Away []Span
}

// brakeWindow is the rolling window in which so few are ended.
const brakeWindow = 10 * time.Minute

// early is how much sooner than by our account the scaler may believe that a time is
// over: an outage begins and ends for it a little later than for us.
const early = 15 * time.Second

// lost is an instance that was ended although no Node of it was there.
type lost struct {
	at        time.Time
	id        string
	machine   Machine
	decrement bool
	everKnown bool
	// asked: LaunchInstances has asked for it, so that its end is a matter of its group's back-off.
	asked bool
}

// Breaches finds the instances that were ended without a Node of theirs, beyond what the
// brake allows: where a group may shrink at most one, or a tenth of it, within ten
// minutes, of those that nobody has asked to launch; where it is at its min the next one after the one before has been
// replaced, or after a back-off; and none before its time to join is over.
func (b Brake) Breaches(audit []Request, calls []fakeaws.Call) []string {
	nodes, launches := registrations(audit), launchesIn(calls)
	groups := map[string][]lost{}
	for _, c := range calls {
		id := c.Params["InstanceId"]
		m, ok := b.Machine(id)
		if c.Operation != "TerminateInstanceInAutoScalingGroup" || c.Error != "" || !ok || nodes.known(id, c.Time) {
			continue
		}
		groups[m.Group] = append(groups[m.Group], lost{c.Time, id, m, c.Params["ShouldDecrementDesiredCapacity"] == "true", len(nodes[id]) > 0, launches.took(m)})
	}
	var breaches []string
	for group, all := range groups {
		slices.SortFunc(all, func(a, b lost) int { return a.at.Compare(b.at) })
		breaches = append(breaches, b.tooEarly(all)...)
		breaches = append(breaches, tooMany(group, all)...)
		breaches = append(breaches, b.tooFast(group, all, nodes)...)
	}
	slices.Sort(breaches)
	return breaches
}

// launch is a call that asked for new instances, and how many of them have not been found.
type launch struct {
	fakeaws.Call
	left int
}

type launches []launch

// launchesIn are the LaunchInstances calls that succeeded.
func launchesIn(calls []fakeaws.Call) launches {
	var found launches
	for _, c := range calls {
		if c.Operation != "LaunchInstances" || c.Error != "" {
			continue
		}
		if count, err := strconv.Atoi(c.Params["RequestedCapacity"]); err == nil {
			found = append(found, launch{c, count})
		}
	}
	return found
}

// took reports whether an instance is one that a call has launched, which is then counted.
func (l launches) took(m Machine) bool {
	for i, c := range l {
		if c.left > 0 && c.Params["AutoScalingGroupName"] == m.Group && !m.Launched.Before(c.Time) && !m.Launched.After(c.Time.Add(c.Took)) {
			l[i].left--
			return true
		}
	}
	return false
}

func (b Brake) tooEarly(all []lost) []string {
	var breaches []string
	for _, x := range all {
		waited := x.at.Sub(x.machine.Launched) - overlap(b.Away, x.machine.Launched, x.at)
		if !x.everKnown && waited < b.Provision-early {
			breaches = append(breaches, fmt.Sprintf("%s of %s was ended at %s for want of a Node, %s after its launch without the outages of the API server, and may take %s",
				x.id, x.machine.Group, stamp(x.at), waited.Round(time.Second), b.Provision))
		}
	}
	return breaches
}

// overlap is how much of a time fell into spans.
func overlap(spans []Span, from, to time.Time) (sum time.Duration) {
	for _, s := range spans {
		begin, end := s.From, s.To
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		sum += max(0, end.Sub(begin))
	}
	return sum
}

// tooMany looks at those by which a group shrank, and that were not asked for.
func tooMany(group string, all []lost) []string {
	all = slices.DeleteFunc(slices.Clone(all), func(x lost) bool { return !x.decrement || x.asked })
	var breaches []string
	for i, last := range all {
		allowed := max(1, int(math.Ceil(float64(last.machine.Max)/10)))
		var within []string
		for _, x := range all[:i+1] {
			if last.at.Sub(x.at) < brakeWindow {
				within = append(within, x.id)
			}
		}
		if len(within) > allowed {
			breaches = append(breaches, fmt.Sprintf("%d instances of %s that are no Nodes were ended within %s by %s, and %d may be: %s",
				len(within), group, brakeWindow, stamp(last.at), allowed, strings.Join(within, " ")))
		}
	}
	return breaches
}

// tooFast looks at those that were to be replaced.
func (b Brake) tooFast(group string, all []lost, nodes tenures) []string {
	all = slices.DeleteFunc(slices.Clone(all), func(x lost) bool { return x.decrement })
	var breaches []string
	for i := 1; i < len(all); i++ {
		before, x := all[i-1], all[i]
		if x.at.Sub(before.at) >= b.BackOff || b.joinedBetween(group, nodes, before.at, x.at) {
			continue
		}
		breaches = append(breaches, fmt.Sprintf("%s of %s was ended for want of a Node at %s, %s after %s, which nothing had replaced",
			x.id, group, stamp(x.at), x.at.Sub(before.at).Round(time.Millisecond), before.id))
	}
	return breaches
}

// joinedBetween reports whether a Node of a group's instance registered between two moments.
func (b Brake) joinedBetween(group string, nodes tenures, from, to time.Time) bool {
	for id, spans := range nodes {
		if m, ok := b.Machine(id); !ok || m.Group != group {
			continue
		}
		if slices.ContainsFunc(spans, func(s Span) bool { return s.From.After(from) && s.From.Before(to) }) {
			return true
		}
	}
	return false
}

// tenures are the times in which there was a Node with an instance's provider id, by
// instance.
type tenures map[string][]Span

// forgotten is how long after the end of a Node an instance still counts as known: what was
// decided for the Node may be under way.
const forgotten = 5 * time.Second

func (t tenures) known(id string, at time.Time) bool {
	return slices.ContainsFunc(t[id], func(s Span) bool { return Span{s.From, s.To.Add(forgotten)}.Holds(at) })
}

func registrations(audit []Request) tenures {
	all, now := tenures{}, map[string]string{} // now: the instance of each Node
	end := func(node string, at time.Time) {
		if spans := all[now[node]]; len(spans) > 0 {
			spans[len(spans)-1].To = at
		}
		delete(now, node)
	}
	for _, a := range audit {
		if a.ObjectRef.Resource != "nodes" || a.ObjectRef.Subresource != "" || a.ResponseStatus.Code/100 != 2 {
			continue
		}
		node, id := a.ObjectRef.Name, instanceOf(a.RequestObject.Spec.ProviderID)
		switch {
		case a.Verb == "delete":
			end(node, a.RequestReceivedTimestamp)
		case id != "" && now[node] != id:
			end(node, a.RequestReceivedTimestamp)
			now[node] = id
			all[id] = append(all[id], Span{a.RequestReceivedTimestamp, time.Unix(1<<40, 0)})
		}
	}
	return all
}

// instanceOf is the instance that a provider id names.
func instanceOf(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

// fresh is how long before an instance is ended, or its hook completed, the Nodes may have
// been read.
const fresh = time.Minute

// Unseen finds instances that were ended, and hooks that were completed, without a look at
// all Nodes right before: one at the API server's storage, not at its cache.
func Unseen(audit []Request, calls []fakeaws.Call) []string {
	var looks []time.Time
	for _, a := range audit {
		live := a.Verb == "list" && a.ObjectRef.Resource == "nodes" && !strings.Contains(a.RequestURI, "resourceVersion=")
		if live && strings.HasPrefix(a.User.Username, ours) && a.ResponseStatus.Code == http.StatusOK {
			looks = append(looks, a.RequestReceivedTimestamp)
		}
	}
	var breaches []string
	for _, c := range calls {
		ends := c.Operation == "TerminateInstanceInAutoScalingGroup" || c.Operation == "CompleteLifecycleAction"
		if !ends || c.Error != "" {
			continue
		}
		if !slices.ContainsFunc(looks, Span{c.Time.Add(-fresh), c.Time}.Holds) {
			breaches = append(breaches, fmt.Sprintf("%s of %s at %s, and the Nodes were not read before", c.Operation, c.Params["InstanceId"], stamp(c.Time)))
		}
	}
	return breaches
}

func stamp(t time.Time) string { return t.Format("15:04:05.000") }

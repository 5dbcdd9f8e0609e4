package act

import (
	"cmp"
	"slices"
	"strings"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/plan"
)

// Announcer tells pods that get no node why: one Event when the verdict is
// reached, and another only when it changes. The oldest pod is told first.
type Announcer struct {
	Events Events

	told map[string]string // the message, by the pod's UID
}

// Announce tells what is new in the verdicts of waiting pods.
func (n *Announcer) Announce(s fleet.Snapshot, verdicts []plan.Verdict) {
	news := n.news(verdicts)
	if len(news) == 0 {
		return
	}
	created := map[string]int64{}
	for _, p := range s.Pods {
		if p.Node == "" {
			created[string(p.UID)] = p.Created.UnixNano()
		}
	}
	slices.SortStableFunc(news, func(a, b plan.Verdict) int { return cmp.Compare(created[a.UID], created[b.UID]) })
	for _, v := range news {
		namespace, name, _ := strings.Cut(v.Name, "/")
		event := kube.Event{Object: kube.PodReference(namespace, name, v.UID), Reason: contract.EventNotTriggerScaleUp, Message: v.Message}
		if !n.Events.Write(event) {
			return // there is no room; the next look tries again
		}
		n.told[v.UID] = v.Message
	}
}

// news returns the verdicts that were not told, and forgets pods that do not
// wait any more.
func (n *Announcer) news(verdicts []plan.Verdict) []plan.Verdict {
	told := make(map[string]string, len(n.told))
	var news []plan.Verdict
	for _, v := range verdicts {
		if v.Of != plan.OfPod || !refused(v.Reason) {
			continue
		}
		if n.told[v.UID] == v.Message {
			told[v.UID] = v.Message
			continue
		}
		news = append(news, v)
	}
	n.told = told
	return news
}

// refused says that the pod waits and nothing is done about it.
func refused(r plan.Reason) bool {
	return r == plan.PodFitsNothing || r == plan.PodGroupsFull
}

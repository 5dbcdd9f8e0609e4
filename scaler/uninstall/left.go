package uninstall

import (
	"fmt"
	"slices"

	"windlass.dev/windlass/pkg/contract"
)

// Left is something that stays, as people may want it or may have made it.
type Left struct{ What, Command string }

// Stays is what Steps does not touch.
func Stays(w World, o Options) (left []Left) {
	s := steps{World: w, Options: o}
	for _, g := range w.Groups {
		if g.Owner != "" && g.Owner != w.Cluster {
			continue
		}
		for _, h := range s.ours(g) {
			if !o.Hooks {
				left = append(left, Left{fmt.Sprintf("hook %s of group %s holds each instance until its timeout", h, g.Name), deleteHookCommand(g.Name, h)})
			}
		}
		if _, ours := w.Suspending[g.Name]; !ours && slices.Contains(g.Suspended, rebalance) {
			left = append(left, Left{fmt.Sprintf("%s of group %s is suspended, and no persisted state says by Windlass", rebalance, g.Name), resumeCommand(g.Name)})
		}
	}
	for _, name := range w.Unread() {
		left = append(left, Left{
			fmt.Sprintf("%s of group %s, which was not read, is suspended by Windlass, and ConfigMap %s says so", rebalance, name, contract.ConfigMapState),
			"give the flags that name the groups as the scaler has them, and run this again, or " + resumeCommand(name) + fmt.Sprintf(" && kubectl -n %s delete configmap %s", w.Namespace, contract.ConfigMapState),
		})
	}
	for _, n := range w.Nodes {
		if value, held := n.Annotations[contract.AnnotationHold]; held {
			left = append(left, Left{fmt.Sprintf("somebody holds Node %s by %s=%s", n.Name, contract.AnnotationHold, value), fmt.Sprintf("kubectl annotate node %s %s-", n.Name, contract.AnnotationHold)})
		}
		if _, ours := n.Annotations[contract.AnnotationCordonedBy]; n.Unschedulable && !ours {
			left = append(left, Left{fmt.Sprintf("somebody cordoned Node %s", n.Name), "kubectl uncordon " + n.Name})
		}
	}
	if len(w.Programs) > 0 {
		left = append(left, Left{"what was applied in namespace " + w.Namespace, "kubectl delete --ignore-not-found -k manifests, or helm uninstall windlass --namespace " + w.Namespace})
	}
	return left
}

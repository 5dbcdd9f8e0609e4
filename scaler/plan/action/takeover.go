package action

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
)

// TakeOver takes the taints of a Cluster Autoscaler that is gone off a node, and with the harder of
// them its cordon, if they still stand there as they were seen, nothing drains the node, and its
// instance is in service at that moment.
type TakeOver struct {
	Group    string
	Node     NodeRef
	Instance string
	Taints   []corev1.Taint
	Uncordon bool
	// Cordoned: a cordon stands there that stays, as it may be somebody's.
	Cordoned bool
}

func (a TakeOver) String() string {
	var what []string
	if a.Uncordon {
		what = append(what, "its cordon")
	}
	for _, t := range a.Taints {
		seconds, _ := strconv.ParseInt(t.Value, 10, 64) // it was read before
		what = append(what, fmt.Sprintf("taint %s of %s", t.Key, time.Unix(seconds, 0).UTC().Format(time.RFC3339)))
	}
	text := fmt.Sprintf("take off %s what a Cluster Autoscaler left there: %s", a.Node, strings.Join(what, ", "))
	if a.Cordoned {
		text += fmt.Sprintf("; its cordon stays, as without %s it is somebody's: kubectl uncordon %s unless somebody wants it", contract.TaintToBeDeleted, a.Node.Name)
	}
	return text
}

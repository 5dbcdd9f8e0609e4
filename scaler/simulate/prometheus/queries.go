package prometheus

import (
	"fmt"
	"strings"
	"time"
)

// The series of kube-state-metrics that are asked for.
const (
	seriesCreated    = "kube_pod_created"
	seriesPhase      = "kube_pod_status_phase"
	seriesCompletion = "kube_pod_completion_time"
	seriesOwner      = "kube_pod_owner"
	seriesRequests   = "kube_pod_container_resource_requests"
)

// who are the labels that tell pods apart. Where Prometheus does not honour the labels of
// kube-state-metrics, its own stand in their place, and they are called exported_. Several
// replicas of kube-state-metrics serve one pod several times.
const who = "namespace, pod, uid, exported_namespace, exported_pod"

// selector is a series with matchers.
func selector(series string, matchers ...string) string {
	var all []string
	for _, m := range matchers {
		if m != "" {
			all = append(all, m)
		}
	}
	return series + "{" + strings.Join(all, ",") + "}"
}

// over is what a range vector selector ends with.
func over(d time.Duration) string { return fmt.Sprintf("[%ds]", int64(d.Seconds())) }

// queryAlive has a point for each minute in which a pod was there and had not ended; its value is
// when the pod was created, so that one that was made again under its name is another.
func queryAlive(match string) string {
	return fmt.Sprintf("max by (%s) (max_over_time(%s%s)) and on (%s) (max by (%s) (max_over_time(%s%s)) == 1)",
		who, selector(seriesCreated, match), over(step),
		who, who, selector(seriesPhase, `phase=~"Pending|Running|Unknown"`, match), over(step))
}

// queryCreated knows pods, too, that were seen after they had ended and never before.
func queryCreated(match string, part time.Duration) string {
	return fmt.Sprintf("max by (%s) (max_over_time(%s%s))", who, selector(seriesCreated, match), over(part))
}

// queryCompletion has the moment at which the last container ended. A container that is started
// again has had such a moment, too.
func queryCompletion(match string, part time.Duration) string {
	return fmt.Sprintf("max by (%s) (last_over_time(%s%s))", who, selector(seriesCompletion, match), over(part))
}

func queryOwner(match string, part time.Duration) string {
	return fmt.Sprintf("max by (%s, owner_kind, owner_name) (last_over_time(%s%s))", who, selector(seriesOwner, `owner_is_controller!="false"`, match), over(part))
}

func queryRequests(match string, part time.Duration) string {
	return fmt.Sprintf("sum by (%s, resource) (max by (%s, resource, container, exported_container) (last_over_time(%s%s)))",
		who, who, selector(seriesRequests, `resource=~"cpu|memory"`, match), over(part))
}

package migrate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTranslate: what flags set, and what has to be decided.
func TestTranslate(t *testing.T) {
	for name, tc := range map[string]struct {
		of            Program
		flags         string
		scaler, agent string
		decide        string
	}{
		"a scheduler that is bypassed":      {Autoscaler, "--nodes=0:1:a --bypassed-scheduler-names=volcano,x", "nodes=0:1:a scheduler-name=default-scheduler scheduler-name=volcano scheduler-name=x", "", ""},
		"only one scheduler":                {Autoscaler, "--nodes=0:1:a --allowed-scheduler-names=volcano", "nodes=0:1:a scheduler-name=volcano", "", ""},
		"one that is allowed and bypassed":  {Autoscaler, "--nodes=0:1:a --allowed-scheduler-names=volcano --bypassed-scheduler-names=volcano,x", "nodes=0:1:a scheduler-name=volcano scheduler-name=x", "", ""},
		"the older name beside the newer":   {Autoscaler, "--nodes=0:1:a --max-empty-bulk-delete=3 --max-scale-down-parallelism=5", "max-scale-down-parallelism=5 nodes=0:1:a", "", ""},
		"the newer before the older":        {Autoscaler, "--nodes=0:1:a --max-scale-down-parallelism=5 --max-empty-bulk-delete=3", "max-scale-down-parallelism=5 nodes=0:1:a", "", ""},
		"a flag twice":                      {Autoscaler, "--nodes=0:1:a --max-nodes-total=3 --max_nodes_total=5", "max-nodes-total=5 nodes=0:1:a", "", ""},
		"a group with two bounds":           {Autoscaler, "--nodes=0:1:a --nodes=0:2:a", "nodes=0:1:a", "", `nodes: the group "a" has other bounds already: keep one of them`},
		"another cloud":                     {Autoscaler, "--nodes=0:1:a --cloud-provider=gce", "nodes=0:1:a", "", `cloud-provider: the provider "gce" is none of Windlass's: it scales Auto Scaling groups of EC2 (aws) and groups of a provider of one's own (externalgrpc), so keep Cluster Autoscaler for other groups`},
		"a provider of one's own":           {Autoscaler, "--cloud-config=/etc/provider.yaml --nodes=0:1:a --cloud-provider=externalgrpc", "cloud-config=/etc/provider.yaml cloud-provider=externalgrpc", "metadata=none", ""},
		"a file for AWS":                    {Autoscaler, "--nodes=0:1:a --cloud-config=/etc/aws.conf", "nodes=0:1:a", "", "cloud-config: of AWS the file is not read: give the region by AWS_REGION and other endpoints by AWS_ENDPOINT_URL_AUTO_SCALING and its like, and leave this out"},
		"what matters, by default":          {Autoscaler, "--nodes=0:1:a --enable-provisioning-requests=false --memory-difference-ratio=0.015", "nodes=0:1:a", "", ""},
		"what matters":                      {Autoscaler, "--nodes=0:1:a --scale-up-from-zero=0", "nodes=0:1:a", "", "scale-up-from-zero: groups always grow for pending pods, also with no Ready node: leave this out"},
		"no groups":                         {Autoscaler, "--v=4", "", "", "groups: nothing says which groups: give the name of the cluster in their tags as CLUSTER_NAME, or --nodes"},
		"no value":                          {Autoscaler, "--nodes=0:1:a --expander", "nodes=0:1:a", "", "expander: it has no value: give one"},
		"no duration":                       {Autoscaler, "--nodes=0:1:a --scale-down-unneeded-time=soon", "nodes=0:1:a", "", "scale-down-unneeded-time: its value is none: want a duration such as 10m"},
		"an address with a host":            {Autoscaler, "--nodes=0:1:a --address=10.0.0.1:8085", "nodes=0:1:a", "", "address: probes ask the pod's own address: leave the host out, as in :8085"},
		"pods of DaemonSets":                {Autoscaler, "--nodes=0:1:a --daemonset-eviction-for-occupied-nodes=true", "evict-daemonset-pods=true nodes=0:1:a", "evict-daemonset-pods=true", ""},
		"only cordons":                      {Handler, "--cordon-only --enable-rebalance-draining", "", "notice-policy=maintenance=cordon,rebalance=cordon,spot=cordon", ""},
		"no draining of a notice":           {Handler, "--enable-spot-interruption-draining=false --cordon-only", "", "notice-policy=maintenance=cordon,spot=ignore", ""},
		"only cordons, and no spot":         {Handler, "--cordon-only --enable-spot-interruption-draining=false --enable-rebalance-draining", "", "notice-policy=maintenance=cordon,rebalance=cordon,spot=ignore", ""},
		"recommendations":                   {Handler, "--enable-rebalance-monitoring --enable-rebalance-draining", "", "notice-policy=rebalance=drain", ""},
		"monitors beside a queue":           {Handler, "--enable-spot-interruption-draining=false --enable-scheduled-event-draining=false --enable-rebalance-monitoring --enable-sqs-termination-draining", "", "", ""},
		"monitors, and no queue":            {Handler, "--enable-spot-interruption-draining=false --enable-sqs-termination-draining --enable-sqs-termination-draining=false", "", "notice-policy=spot=ignore", ""},
		"recommendations beside a queue":    {Handler, "--enable-sqs-termination-draining --enable-rebalance-monitoring --enable-rebalance-draining", "", "notice-policy=rebalance=drain", ""},
		"cordons for what a queue brings":   {Handler, "--enable-sqs-termination-draining --cordon-only", "", "notice-policy=maintenance=cordon,spot=cordon", ""},
		"local data that keeps a node":      {Handler, "--delete-local-data=false", "keep-local-storage=true", "keep-local-storage=true", ""},
		"a level":                           {Handler, "--log-level=WARN", "", "log-level=warn", ""},
		"no level":                          {Handler, "--log-level=loud", "", "", "log-level: there is no such level: want one of debug, info, warn, error"},
		"a webhook":                         {Handler, "--webhook-url=https://x", "", "", "webhook-url: windlass-notifier sends messages: name the address in its configuration, docs/operate/notifications.md"},
		"a word of another region than env": {Handler, "--aws-region=Frankfurt", "", "", "aws-region: it is no region of AWS: give one such as eu-central-1 as AWS_REGION"},
	} {
		t.Run(name, func(t *testing.T) {
			var in Input
			if err := in.AddFile(tc.of, tc.flags, "file"); err != nil {
				t.Fatal(err)
			}
			report := Translate(in, nil)
			shown := func(settings []Setting) string {
				var all []string
				for _, s := range settings {
					all = append(all, s.Flag+"="+s.Value)
				}
				return strings.Join(all, " ")
			}
			var decide []string
			for _, i := range report.Decide {
				decide = append(decide, i.Name+": "+i.Why)
			}
			got := []string{shown(report.Settings.Scaler), shown(report.Settings.Agent), strings.Join(decide, "\n")}
			if diff := cmp.Diff([]string{tc.scaler, tc.agent, tc.decide}, got); diff != "" {
				t.Errorf("scaler, agent, to be decided (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHiddenAutoscaler: one that renews nothing that Windlass sees is to be stopped first.
func TestHiddenAutoscaler(t *testing.T) {
	for flags, hidden := range map[string]bool{
		"":                               false,
		"--leader-elect=false":           false,
		"--write-status-configmap=false": false,
		"--leader-elect=false --write-status-configmap=false":                                     true,
		"--leader-elect=false --status-config-map-name=other":                                     true,
		"--leader-elect-resource-lock=configmaps --write-status-configmap=false":                  true,
		"--leader-elect-resource-lock=endpointsleases --write-status-configmap=false":             false,
		"--leader-elect=false --leader-elect --write-status-configmap=false":                      false,
		"--leader-elect=false --write-status-configmap=false --cloud-provider=externalgrpc":       true,
		"--leader_elect=false --write-status-configmap=false --status-config-map-name=irrelevant": true,
	} {
		var in Input
		if err := in.AddFile(Autoscaler, "--nodes=0:1:a "+flags, "file"); err != nil {
			t.Fatal(err)
		}
		todo := strings.Join(Translate(in, nil).Todo, "\n")
		if first, later := strings.Contains(todo, "to 0 BEFORE"), strings.Contains(todo, "Windlass only plans"); first != hidden || later == hidden {
			t.Errorf("%q: hidden %v, want %v:\n%s", flags, first, hidden, todo)
		}
	}
}

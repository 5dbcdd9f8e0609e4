package seen

import (
	"time"

	"windlass.dev/windlass/scaler/shadow/record"
	"windlass.dev/windlass/scaler/status/cas"
)

// OfStatus is how many nodes there are by Cluster Autoscaler's status, and which groups are in
// back-off; nothing where it does not say when it was written.
func OfStatus(s cas.Status) (records []record.Record) {
	at, err := time.Parse(cas.TimeFormat, s.Time)
	if err != nil {
		return nil
	}
	var sample record.Sample
	for _, g := range s.NodeGroups {
		n := g.Health.NodeCounts
		sample.Groups = append(sample.Groups, record.GroupSample{Group: g.Name, World: record.Size{Desired: g.Health.CloudProviderTarget, Nodes: n.Registered.Total + n.Unregistered + n.LongUnregistered}})
		if g.ScaleUp.Status != cas.Backoff {
			continue
		}
		why := "in back-off"
		if info := g.ScaleUp.BackoffInfo; info.ErrorCode != "" {
			why += ": " + info.ErrorCode + ": " + info.ErrorMessage
		}
		since := g.ScaleUp.LastTransitionTime.Time
		if since.IsZero() {
			since = at
		}
		records = append(records, record.Record{At: since, Seen: &record.Seen{By: record.ByAutoscaler, Kind: record.Failed, Group: g.Name, Why: why}}.Normal())
	}
	return append(records, record.Record{At: at, Sample: &sample}.Normal())
}

package template

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
)

// TestMissingLabels: what a node lacks is reported, but not that a cluster has no EBS CSI driver,
// which does not matter until a pod asks for its label.
func TestMissingLabels(t *testing.T) {
	const noTier = "node n has no label tier, its node template has tier=web: check the tag k8s.io/cluster-autoscaler/node-template/label/tier"
	const noDriver = "node n has no label topology.ebs.csi.aws.com/zone, its node template has topology.ebs.csi.aws.com/zone=a: check the tag k8s.io/cluster-autoscaler/node-template/label/topology.ebs.csi.aws.com/zone"
	const otherZone = "node n has the label topology.ebs.csi.aws.com/zone=b, its node template has topology.ebs.csi.aws.com/zone=a: check the tag k8s.io/cluster-autoscaler/node-template/label/topology.ebs.csi.aws.com/zone"
	planned := fleet.NodeTemplate{Labels: map[string]string{"tier": "web", driversLabel: "a"}}
	for _, c := range []struct {
		reason string
		labels map[string]string
		asked  string
		want   string
	}{
		{"as planned", planned.Labels, "", ""},
		{"nothing of it", nil, "", noTier},
		{"nothing of it, and a pod asks for both", nil, driversLabel, noTier + "; " + noDriver},
		{"the driver knows better", map[string]string{"tier": "web", driversLabel: "b"}, "", otherZone},
	} {
		n := &cluster.Node{Row: &cluster.Row{Node: &fleet.Node{Name: "n"}}}
		got := missingLabels(planned, fleet.NodeTemplate{Labels: c.labels}, n, func(key string) bool { return key == c.asked })
		if diff := cmp.Diff(c.want, got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, diff)
		}
	}
}

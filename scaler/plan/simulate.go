package plan

import (
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

// cache is what is found out about rules and classes of pods, and kept from evaluation to
// evaluation.
type cache struct {
	rules *fit.Rules
	// imagined are the pods that stand for head-room, by what is asked for.
	imagined map[string]*fleet.Pod
	// stocks are those that stand for buffers, by these.
	stocks map[string]*stock
}

// newCache knows nothing yet.
func newCache() *cache { return &cache{rules: fit.NewRules()} }

// imagine prepares the question which pods fit where: on nodes, and on those that there
// could be.
func (d *decision) imagine(s fleet.Snapshot, k *cache) {
	d.buffers, d.quotas = k.findBuffers(s), quotasOf(s)
	d.fit = k.rules.Cluster(fit.World{
		Kubernetes: s.Kubernetes, Mute: k.hush(d, s.Kubernetes), Pods: withSamples(d.pods, d.buffers), Namespaces: s.Namespaces, Storage: s.Storage, Devices: s.Devices, DaemonSets: d.daemons, Closing: closed,
	})
	d.settle()
	k.findHeadRooms(d)
	d.sizeBuffers()
}

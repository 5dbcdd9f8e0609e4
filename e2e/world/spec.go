package world

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/pkg/contract"
)

// Spec is a world as a script writes it down. Its fields stand beside those of
// the cloud (groups, launchTemplates, timing, timeScale, ...).
type Spec struct {
	Cloud cloud.Spec `json:"-"`

	// Machines are Simulated, if empty, or Real, for which the process must be inside
	// the namespaces of machine.Enter.
	Machines Machines `json:"machines,omitempty"`
	// Settle is how long a simulated node takes from joining to Ready; 300ms if empty
	// (real: 5 to 20 s).
	Settle cloud.Duration `json:"settle,omitempty"`
	// NeverReady names groups whose nodes join and never turn Ready, NeverJoin those of
	// real machines whose kubelets never start.
	NeverReady []string `json:"neverReady,omitempty"`
	NeverJoin  []string `json:"neverJoin,omitempty"`
	// Elsewhere names groups whose simulated machines serve another cluster: none of them
	// registers here.
	Elsewhere []string `json:"elsewhere,omitempty"`
	// Provider puts an external provider in front of the groups, by which the scaler knows them;
	// simulated machines bear its provider ids, and agents ask for no metadata.
	Provider bool `json:"provider,omitempty"`
	// Undiscovered leaves the groups without the tags by which the scaler of the
	// manifests finds groups.
	Undiscovered bool `json:"undiscovered,omitempty"`
	// NoIMDS starts no metadata services, for worlds of thousands of nodes.
	NoIMDS bool `json:"noIMDS,omitempty"`
	// NoAgents names groups on whose machines no agent runs: its pod is there and does nothing, for
	// worlds of thousands of nodes.
	NoAgents []string `json:"noAgents,omitempty"`
	// NoPrograms starts the world without agents and scalers.
	NoPrograms bool `json:"noPrograms,omitempty"`
	// Scaler and Agent are flags that are added to those of the manifests.
	Scaler []string `json:"scaler,omitempty"`
	Agent  []string `json:"agent,omitempty"`
	// Environment is added to that of both, as NAME=value; on real machines to the
	// scaler's alone.
	Environment []string `json:"environment,omitempty"`
	// Autoscaler are flags of a stand-in for Cluster Autoscaler (e2e/autoscaler). Where there are
	// any, the world has its Deployment cluster-autoscaler in namespace kube-system, without replicas.
	Autoscaler []string `json:"autoscaler,omitempty"`
	// Replicas of the scaler; nil as in the manifests.
	Replicas *int `json:"replicas,omitempty"`
	// ControlPlane are flags of the control plane's supervisor.
	ControlPlane []string `json:"controlPlane,omitempty"`
}

// Machines says what nodes are made of.
type Machines string

// Kinds of machines.
const (
	Simulated Machines = "simulated" // kwok plays the kubelets
	Real      Machines = "real"      // kubelets with containerd, in namespaces of their own
)

// ParseSpec reads the YAML of a spec. Unknown fields are errors.
func ParseSpec(content []byte) (Spec, error) {
	var all struct {
		cloud.Spec
		World Spec `json:"world"`
	}
	if err := yaml.UnmarshalStrict(content, &all); err != nil {
		return Spec{}, fmt.Errorf("reading the world's YAML: %w", err)
	}
	all.World.Cloud = all.Spec
	return all.World, all.World.check()
}

func (s Spec) check() error {
	switch s.Machines {
	case "", Simulated:
		if len(s.NeverJoin) > 0 {
			return errors.New("the world's neverJoin is for real machines; a simulated one that never joins has no instance")
		}
	case Real:
		if s.NoIMDS {
			return errors.New("the world's noIMDS is for simulated machines")
		}
		if len(s.Autoscaler) > 0 {
			return errors.New("the world's autoscaler is for simulated machines")
		}
		if s.Provider {
			return errors.New("the world's provider is for simulated machines")
		}
		if len(s.NoAgents) > 0 {
			return errors.New("the world's noAgents is for simulated machines")
		}
		if len(s.Elsewhere) > 0 {
			return errors.New("the world's elsewhere is for simulated machines; of real ones neverJoin says the same")
		}
	default:
		return fmt.Errorf("the world's machines are %q: want %s or %s", s.Machines, Simulated, Real)
	}
	return nil
}

// ClusterName is the name of every world's cluster: that of manifests/settings.env.
const ClusterName = "my-cluster"

// discoverable gives every group the tags by which the scaler finds it, except
// those that say something of their own about it.
func (s Spec) discoverable() cloud.Spec {
	c := s.Cloud
	if s.Undiscovered {
		return c
	}
	c.Groups = append([]cloud.Group(nil), c.Groups...)
	for i := range c.Groups {
		tags := map[string]string{tagEnabled: "true", tagCluster: "owned"}
		maps.Copy(tags, c.Groups[i].Tags)
		c.Groups[i].Tags = tags
	}
	return c
}

const (
	tagEnabled = "k8s.io/cluster-autoscaler/enabled"
	tagCluster = "k8s.io/cluster-autoscaler/" + ClusterName
)

// settle is Spec.Settle with its default.
func (s Spec) settle() time.Duration {
	if s.Settle == 0 {
		return 300 * time.Millisecond
	}
	return time.Duration(s.Settle)
}

// readyAt is when a node of the group turns Ready that starts now.
func (s Spec) readyAt(group string) time.Time {
	if slices.Contains(s.NeverReady, group) {
		return never
	}
	return time.Now().Add(s.settle())
}

// extras are what the spec adds to the programs' manifests.
func (s Spec) extras() map[string]Extra {
	return map[string]Extra{
		contract.AppAgent:  {Args: s.Agent, Env: s.Environment},
		contract.AppScaler: {Args: s.Scaler, Env: s.Environment},
	}
}

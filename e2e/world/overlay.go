package world

import (
	"fmt"
	"strings"

	"windlass.dev/windlass/pkg/contract"
)

// overlay is what a kustomization says of this world besides its manifests; "" is nothing.
// Programs that are processes get their flags from the world itself.
func (s Spec) overlay() string {
	var text strings.Builder
	if s.Replicas != nil {
		fmt.Fprintf(&text, "replicas: [{name: %s, count: %d}]\n", contract.AppScaler, *s.Replicas)
	}
	if s.Machines == Real && len(s.Scaler)+len(s.Agent) > 0 {
		text.WriteString("patches:\n")
		addFlags(&text, "Deployment", contract.AppScaler, s.Scaler)
		addFlags(&text, "DaemonSet", contract.AppAgent, s.Agent)
	}
	return text.String()
}

func addFlags(text *strings.Builder, kind, name string, flags []string) {
	if len(flags) == 0 {
		return
	}
	fmt.Fprintf(text, "- target: {kind: %s, name: %s}\n  patch: |-\n", kind, name)
	for _, flag := range flags {
		fmt.Fprintf(text, "    - {op: add, path: /spec/template/spec/containers/0/args/-, value: %q}\n", flag)
	}
}

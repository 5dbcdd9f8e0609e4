package world

import (
	"errors"

	"windlass.dev/windlass/e2e/machine"
)

// Usage reads what a pod of one of the two programs uses on its real machine.
func (w *World) Usage(pod string) (machine.Usage, error) {
	pods, ok := w.runner.(*containers)
	if !ok {
		return machine.Usage{}, errors.New("programs on simulated machines are processes of this host and have no cgroups; ask MemoryOf")
	}
	p, err := pods.named(pod)
	if err != nil {
		return machine.Usage{}, err
	}
	return w.yard.Usage(string(p.UID))
}

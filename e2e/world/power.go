package world

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// StopKubelet silences the kubelet of a node: nobody reports for the Node any more, and
// what runs there runs on. Of a simulated node the control plane's patience is not waited
// for, and pods that are deleted still end, which kwok sees to.
func (w *World) StopKubelet(ctx context.Context, node string) error {
	return w.setKubelet(ctx, node, false)
}

// StartKubelet has the kubelet of a node report again.
func (w *World) StartKubelet(ctx context.Context, node string) error {
	return w.setKubelet(ctx, node, true)
}

func (w *World) setKubelet(ctx context.Context, node string, runs bool) error {
	i, ok := w.joiner.instance(node)
	if !ok {
		return fmt.Errorf("no instance runs behind node %q", node)
	}
	return w.joiner.hardware.kubelet(ctx, i, runs)
}

// powerOff ends what runs on a node whose machine goes off, or is gone. Its pods
// stay: a kubelet runs them again when the machine is up.
func (k *programs) powerOff(node string) {
	k.mu.Lock()
	k.off[node] = true
	k.mu.Unlock()
	for _, p := range k.on(node) {
		k.cut(p)
	}
}

// powerOn runs the programs of a node whose machine is up, but for those that
// were killed by name.
func (k *programs) powerOn(ctx context.Context, node string) {
	k.mu.Lock()
	delete(k.off, node)
	k.mu.Unlock()
	for _, p := range k.on(node) {
		k.wait.Go(func() { k.runAgain(ctx, p) })
	}
}

func (k *programs) on(node string) []*programPod {
	return k.find(func(p *programPod) bool { return p.pod.Spec.NodeName == node })
}

func (k *programs) isOff(node string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.off[node]
}

// cut ends a process as a loss of power does, at once and for good.
func (k *programs) cut(p *programPod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil {
		return
	}
	p.process.asked = true
	if err := p.process.kill(); err != nil {
		k.logger.Error("cannot kill a program", "pod", p.pod.Name, "error", err)
	}
}

func (k *programs) runAgain(ctx context.Context, p *programPod) {
	<-p.begun
	p.mu.Lock()
	defer p.mu.Unlock()
	running := p.process != nil && p.process.running()
	if p.down || running || p.gone.Load() || k.isOff(p.pod.Spec.NodeName) {
		return
	}
	if err := k.start(ctx, p); err != nil {
		k.logger.Error("cannot run a program again", "pod", p.pod.Name, "error", err)
		return
	}
	k.setReady(ctx, p, true)
}

// forget kills the process of a pod that is no more.
func (k *programs) forget(pod *corev1.Pod) {
	k.mu.Lock()
	p := k.pods[pod.UID]
	delete(k.pods, pod.UID)
	k.mu.Unlock()
	if p == nil {
		return
	}
	p.gone.Store(true)
	k.cut(p)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, port := range []*Port{p.metrics, p.answers} {
		if port != nil {
			port.Release()
		}
	}
}

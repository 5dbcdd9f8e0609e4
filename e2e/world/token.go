package world

import (
	"context"
	"fmt"
	"path"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TokenOnMachine reads the token that a kubelet has put into a pod of the programs, out of the
// pod's volume on the machine, as somebody would who has broken into it. The machines
// must be real.
func (w *World) TokenOnMachine(ctx context.Context, pod string) (string, error) {
	p, err := w.Client.CoreV1().Pods(Namespace).Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	instance, ok := w.Instance(p.Spec.NodeName)
	if !ok {
		return "", fmt.Errorf("no instance behind node %s of pod %s", p.Spec.NodeName, pod)
	}
	for _, v := range p.Spec.Volumes {
		if !strings.HasPrefix(v.Name, "kube-api-access-") {
			continue
		}
		token, err := w.yard.ReadFile(instance.ID, path.Join("/var/lib/kubelet/pods", string(p.UID), "volumes/kubernetes.io~projected", v.Name, "token"))
		return string(token), err
	}
	return "", fmt.Errorf("pod %s has no volume with a token", pod)
}

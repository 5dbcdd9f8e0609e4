package status

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// ReasonsOfNodes are those that stand in the ConfigMap windlass-status of the namespace that maps
// belong to, by the name of the node: of all nodes that the verdicts have, or of the first that the
// page of an older scaler names. Without a ConfigMap there are none.
func ReasonsOfNodes(ctx context.Context, maps corev1client.ConfigMapInterface) (map[string]verdict.Reason, error) {
	object, err := maps.Get(ctx, contract.ConfigMapStatus, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading config map %s: %w", contract.ConfigMapStatus, err)
	}
	reasons := map[string]verdict.Reason{}
	verdicts, err := statuspage.ReadVerdicts(object)
	if err == nil {
		for i := range verdicts.Nodes {
			reasons[verdicts.Nodes[i].Name] = verdicts.Nodes[i].Reason
		}
		return reasons, nil
	}
	if !errors.Is(err, statuspage.ErrNoVerdicts) {
		return nil, err
	}
	page, err := statuspage.Read(object)
	if err != nil {
		return nil, err
	}
	for _, line := range page.Nodes {
		for name := range line.Nodes {
			reasons[name] = line.Reason
		}
	}
	return reasons, nil
}

package status

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// ReasonsOfNodes are those on the page that stands in the ConfigMap windlass-status of the
// namespace that maps belong to, by the name of the node, for as many nodes as it names.
// Without a page there are none.
func ReasonsOfNodes(ctx context.Context, maps corev1client.ConfigMapInterface) (map[string]verdict.Reason, error) {
	object, err := maps.Get(ctx, contract.ConfigMapStatus, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading config map %s: %w", contract.ConfigMapStatus, err)
	}
	page, err := statuspage.Read(object)
	if err != nil {
		return nil, err
	}
	reasons := map[string]verdict.Reason{}
	for _, line := range page.Nodes {
		for name := range line.Nodes {
			reasons[name] = line.Reason
		}
	}
	return reasons, nil
}

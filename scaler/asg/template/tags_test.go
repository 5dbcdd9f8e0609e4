package template

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

func tagsOf(pairs ...string) []astypes.TagDescription {
	var out []astypes.TagDescription
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, astypes.TagDescription{Key: aws.String(pairs[i]), Value: aws.String(pairs[i+1])})
	}
	return out
}

// A malformed tag is named and left out; all others stand.
func TestTags(t *testing.T) {
	got := readTags(tagsOf(
		contract.TagTemplateLabel+"team", "blue",
		contract.TagTemplateLabel+"bad label", "x",
		contract.TagTemplateTaint+"dedicated", "gpu:NoSchedule",
		contract.TagTemplateTaint+"empty", ":NoExecute",
		contract.TagTemplateTaint+"wrong", "gpu",
		contract.TagTemplateResource+"ephemeral-storage", "100Gi",
		contract.TagTemplateResource+"example.com/dongle", "many",
		contract.TagTemplateResource+"Memory", "8Gi",
		contract.TagTemplateResource+"cpu", "1e999999999",
		contract.TagTemplateResource+"memory", "1e-999999999",
		contract.TagTemplateResource+"nvidia.com gpu", "1",
		contract.TagTemplateOption+"scaledownunneededtime", "3m",
		contract.TagTemplateOption+"scaledownutilizationthreshold", "1.5",
		contract.TagTemplateOption+"scaledowngpuutilizationthreshold", "0.25",
		contract.TagTemplateOption+"scaledownunreadytime", "7m",
		contract.TagTemplateOption+"ignoredaemonsetsutilization", "true",
		contract.TagHeadroom, "pods=2 cpu=1",
		contract.TagEKSCluster, "prod", contract.TagEKSNodegroup, "web",
		"Name", "anything",
	))
	if diff := cmp.Diff(map[string]string{"team": "blue"}, got.labels); diff != "" {
		t.Error(diff)
	}
	wantTaints := []corev1.Taint{{Key: "dedicated", Value: "gpu", Effect: "NoSchedule"}, {Key: "empty", Effect: "NoExecute"}}
	if diff := cmp.Diff(wantTaints, got.taints); diff != "" {
		t.Error(diff)
	}
	if q := got.resources[corev1.ResourceEphemeralStorage]; q.String() != "100Gi" || len(got.resources) != 1 {
		t.Errorf("resources: %v", got.resources)
	}
	wantOptions := fleet.ScaleDownOptions{
		UnneededTime: &metav1.Duration{Duration: 3 * time.Minute}, UnreadyTime: &metav1.Duration{Duration: 7 * time.Minute},
		GPUUtilizationThreshold: aws.Float64(0.25), IgnoreDaemonSets: aws.Bool(true),
	}
	if diff := cmp.Diff(wantOptions, got.options); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
	if got.headroom.String() != "pods=2,cpu=1" {
		t.Errorf("head-room: %s", got.headroom)
	}
	if got.cluster != "prod" || got.nodegroup != "web" {
		t.Errorf("managed group: %q/%q", got.cluster, got.nodegroup)
	}
	for i, want := range []string{"autoscaling-options/scaledownutilizationthreshold=1.5", "label/bad label", "resources/Memory=8Gi", "resources/cpu=1e999999999", "resources/example.com/dongle=many", "resources/memory=1e-999999999", "resources/nvidia.com gpu=1", "taint/wrong=gpu"} {
		if i >= len(got.faults) || !strings.Contains(got.faults[i], want) {
			t.Errorf("fault %d of %q does not name %s", i, got.faults, want)
		}
	}
}

// A tag keeps no more room than the flag may, and the fault names it.
func TestHeadroomTagIsBounded(t *testing.T) {
	got := readTags(tagsOf(contract.TagHeadroom, "pods=1000000 cpu=1"))
	if !got.headroom.IsZero() || len(got.faults) != 1 || !strings.Contains(got.faults[0], "tag "+contract.TagHeadroom+"=pods=1000000 cpu=1 is left out: pods=1000000: want 1 to 20000") {
		t.Errorf("headroom %s, faults %q", got.headroom, got.faults)
	}
}

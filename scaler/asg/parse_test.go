package asg

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

func TestParseSelection(t *testing.T) {
	for _, tc := range []struct {
		name             string
		nodes, discovery []string
		want             Selection
	}{
		{"named", []string{"1:5:web", "0:10:batch:with:colons"}, nil,
			Selection{Named: []Named{{"web", 1, 5}, {"batch:with:colons", 0, 10}}}},
		{"discovered by key and by value", nil, []string{"asg:tag=k8s.io/cluster-autoscaler/enabled,owner=me"},
			Selection{Tags: []Tag{{Key: "k8s.io/cluster-autoscaler/enabled", Any: true}, {Key: "owner", Value: "me"}}}},
		{"several flags are one AND", nil, []string{"asg:tag=a=1", "asg:tag=b", "asg:tag=a=1"},
			Selection{Tags: []Tag{{Key: "a", Value: "1"}, {Key: "b", Any: true}}}},
		{"an empty value is a value", nil, []string{"asg:tag=a="}, Selection{Tags: []Tag{{Key: "a"}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseSelection(tc.nodes, tc.discovery)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhyNone(t *testing.T) {
	s, err := ParseSelection(nil, []string{"asg:tag=owner=me,enabled"})
	if err != nil {
		t.Fatal(err)
	}
	want := "no Auto Scaling group in eu-west-1 carries all the tags of --node-group-auto-discovery: enabled, owner=me"
	if got := s.WhyNone("eu-west-1"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What is wrong is quoted, and the right form is shown.
func TestParseSelectionErrors(t *testing.T) {
	for _, tc := range []struct {
		nodes, discovery []string
		want             []string
	}{
		{nil, nil, []string{"no groups", "--nodes=", "--node-group-auto-discovery="}},
		{[]string{"web"}, nil, []string{"--nodes=web", "min:max:name"}},
		{[]string{"a:5:web"}, nil, []string{`min "a"`, "0:10:web"}},
		{[]string{"1:-5:web"}, nil, []string{`max "-5"`}},
		{[]string{"6:5:web"}, nil, []string{"min 6 is greater than max 5"}},
		{[]string{"1:5:"}, nil, []string{"the name is empty"}},
		{[]string{"1:5:web", "1:6:web"}, nil, []string{"named twice"}},
		{nil, []string{"mig:namePrefix=x"}, []string{"--node-group-auto-discovery=mig:namePrefix=x", `"asg:tag="`}},
		{nil, []string{"asg:tag=a,,b"}, []string{"a tag without a key", "asg:tag=key[=value]"}},
	} {
		_, err := ParseSelection(tc.nodes, tc.discovery)
		if err == nil {
			t.Errorf("%v %v: no error", tc.nodes, tc.discovery)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v %v: %q does not contain %q", tc.nodes, tc.discovery, err, want)
			}
		}
	}
}

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
		contract.TagTemplateResource+"nvidia.com gpu", "1",
		contract.TagTemplateOption+"scaledownunneededtime", "3m",
		contract.TagTemplateOption+"scaledownutilizationthreshold", "1.5",
		contract.TagTemplateOption+"scaledowngpuutilizationthreshold", "0.25",
		contract.TagTemplateOption+"scaledownunreadytime", "7m",
		contract.TagTemplateOption+"ignoredaemonsetsutilization", "true",
		contract.TagHeadRoom, "pods=2 cpu=1",
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
	if got.headRoom.String() != "pods=2,cpu=1" {
		t.Errorf("head-room: %s", got.headRoom)
	}
	if got.cluster != "prod" || got.nodegroup != "web" {
		t.Errorf("managed group: %q/%q", got.cluster, got.nodegroup)
	}
	for i, want := range []string{"autoscaling-options/scaledownutilizationthreshold=1.5", "label/bad label", "resources/Memory=8Gi", "resources/example.com/dongle=many", "resources/nvidia.com gpu=1", "taint/wrong=gpu"} {
		if i >= len(got.faults) || !strings.Contains(got.faults[i], want) {
			t.Errorf("fault %d of %q does not name %s", i, got.faults, want)
		}
	}
}

// Figures of nodes as EKS runs them: instance types with the pods, the cpu and
// the memory that their nodes reported.
func TestReserved(t *testing.T) {
	for _, tc := range []struct {
		cores, wantMilli int64
	}{{1, 60}, {2, 70}, {4, 80}, {8, 90}, {16, 110}, {96, 310}} {
		if got := reservedCPU(tc.cores); got != tc.wantMilli {
			t.Errorf("%d cores: reserved %dm, want %dm", tc.cores, got, tc.wantMilli)
		}
	}
	m5large := machine{typeInfo: typeInfo{name: "m5.large", cores: 2, memory: 8 * gibi, interfaces: 3, addresses: 10}, overhead: 0.075}
	_, usable, err := m5large.resources()
	if err != nil {
		t.Error(err)
	}
	for name, want := range map[corev1.ResourceName]string{"cpu": "1930m", "pods": "29"} {
		if q := usable[name]; q.String() != want {
			t.Errorf("%s: %s, want %s", name, q.String(), want)
		}
	}
	// 8192 MiB − 7.5 % − 255 − 11 × 29 − 100.
	if got, want := usable.Memory().Value()/mebi, int64(6903); got != want {
		t.Errorf("memory: %d Mi, want %d Mi", got, want)
	}
	if got, want := usable.StorageEphemeral().Value(), 18*gibi-gibi; got != want {
		t.Errorf("storage: %d, want %d", got, want)
	}
}

func TestCauses(t *testing.T) {
	for message, want := range map[string]string{
		"We currently do not have sufficient m5.large capacity in the Availability Zone you requested (us-east-1a). Our system will be working on provisioning additional capacity. Launching EC2 instance failed.": "InsufficientInstanceCapacity",
		"Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity due to your request configuration.":                                                                                    "UnfulfillableCapacity",
		"You have requested more vCPU capacity than your current vCPU limit of 32 allows":                                                                                                                           "VcpuLimitExceeded",
		"There are not enough free addresses in subnet 'subnet-1' to satisfy the requested number of instances.":                                                                                                    "InsufficientFreeAddressesInSubnet",
		"Something that nobody has seen yet": "LaunchFailed",
	} {
		if got := causeOf(message); got != want {
			t.Errorf("%q is %s, want %s", message, got, want)
		}
	}
}

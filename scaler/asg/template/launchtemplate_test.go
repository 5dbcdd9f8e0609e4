package template

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// A launch template may leave a type fewer cpus than it has, as where hyperthreading is off.
func TestCPUOptions(t *testing.T) {
	version := func(options *ec2types.LaunchTemplateCpuOptions) launchTemplate {
		return newTemplate(ec2types.LaunchTemplateVersion{LaunchTemplateData: &ec2types.ResponseLaunchTemplateData{CpuOptions: options}})
	}
	books := Books{types: &typeBook{known: map[string]typeInfo{"c5.12xlarge": {name: "c5.12xlarge", cores: 48}}}}
	machines, err := books.machines(t.Context(), []offer{
		{"c5.12xlarge", version(&ec2types.LaunchTemplateCpuOptions{CoreCount: aws.Int32(24), ThreadsPerCore: aws.Int32(1)})},
		{"c5.12xlarge", version(nil)},
	})
	if err != nil || len(machines) != 2 || machines[0].cores != 24 || machines[1].cores != 48 {
		t.Errorf("machines %+v, error %v", machines, err)
	}
}

// Pods share the root: a volume beside it is somebody's own, and the image has its own root where the
// template names none.
func TestStorage(t *testing.T) {
	for _, c := range []struct {
		volumes []volume
		want    int64
	}{
		{nil, defaultVolume},
		{[]volume{{"/dev/sdf", 500 << 30}}, defaultVolume},
		{[]volume{{"/dev/xvdb", 500 << 30}}, defaultVolume},
		{[]volume{{"/dev/sdf", 500 << 30}, {"/dev/sda1", 100 << 30}}, 100 << 30},
		{[]volume{{"/dev/xvda", 50 << 30}}, 50 << 30},
	} {
		if got := (launchTemplate{volumes: c.volumes}).storage(); got != c.want {
			t.Errorf("%v: %d GiB, want %d", c.volumes, got>>30, c.want>>30)
		}
	}
}

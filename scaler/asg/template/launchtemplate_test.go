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

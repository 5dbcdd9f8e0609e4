package template

import (
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// What a group requires of its types is asked of EC2 to the last field.
func TestRequirementsAreCarriedWhole(t *testing.T) {
	group := &astypes.InstanceRequirements{
		VCpuCount:                             &astypes.VCpuCountRequest{Min: aws.Int32(2), Max: aws.Int32(8)},
		MemoryMiB:                             &astypes.MemoryMiBRequest{Min: aws.Int32(8192)},
		MemoryGiBPerVCpu:                      &astypes.MemoryGiBPerVCpuRequest{Min: aws.Float64(8)},
		AcceleratorNames:                      []astypes.AcceleratorName{astypes.AcceleratorNameT4},
		AcceleratorTypes:                      []astypes.AcceleratorType{astypes.AcceleratorTypeGpu},
		AcceleratorTotalMemoryMiB:             &astypes.AcceleratorTotalMemoryMiBRequest{Min: aws.Int32(16384)},
		LocalStorage:                          astypes.LocalStorageRequired,
		LocalStorageTypes:                     []astypes.LocalStorageType{astypes.LocalStorageTypeSsd},
		BareMetal:                             astypes.BareMetalExcluded,
		NetworkBandwidthGbps:                  &astypes.NetworkBandwidthGbpsRequest{Min: aws.Float64(12.5)},
		RequireHibernateSupport:               aws.Bool(true),
		ExcludedInstanceTypes:                 []string{"t*"},
		SpotMaxPricePercentageOverLowestPrice: aws.Int32(50),
	}
	template, err := carried[ec2types.InstanceRequirements](group)
	if err != nil {
		t.Fatal(err)
	}
	got, err := asked(template)
	if err != nil {
		t.Fatal(err)
	}
	want := &ec2types.InstanceRequirementsRequest{
		VCpuCount:                             &ec2types.VCpuCountRangeRequest{Min: aws.Int32(2), Max: aws.Int32(8)},
		MemoryMiB:                             &ec2types.MemoryMiBRequest{Min: aws.Int32(8192)},
		MemoryGiBPerVCpu:                      &ec2types.MemoryGiBPerVCpuRequest{Min: aws.Float64(8)},
		AcceleratorNames:                      []ec2types.AcceleratorName{ec2types.AcceleratorNameT4},
		AcceleratorTypes:                      []ec2types.AcceleratorType{ec2types.AcceleratorTypeGpu},
		AcceleratorTotalMemoryMiB:             &ec2types.AcceleratorTotalMemoryMiBRequest{Min: aws.Int32(16384)},
		LocalStorage:                          ec2types.LocalStorageRequired,
		LocalStorageTypes:                     []ec2types.LocalStorageType{ec2types.LocalStorageTypeSsd},
		BareMetal:                             ec2types.BareMetalExcluded,
		NetworkBandwidthGbps:                  &ec2types.NetworkBandwidthGbpsRequest{Min: aws.Float64(12.5)},
		RequireHibernateSupport:               aws.Bool(true),
		ExcludedInstanceTypes:                 []string{"t*"},
		SpotMaxPricePercentageOverLowestPrice: aws.Int32(50),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("asked %+v, want %+v", got, want)
	}
}

// Fields of Auto Scaling's requirements that EC2's lack would be lost in silence.
func TestRequirementsHaveTheSameFieldsEverywhere(t *testing.T) {
	for _, pair := range [][2]reflect.Type{
		{reflect.TypeFor[astypes.InstanceRequirements](), reflect.TypeFor[ec2types.InstanceRequirements]()},
		{reflect.TypeFor[ec2types.InstanceRequirements](), reflect.TypeFor[ec2types.InstanceRequirementsRequest]()},
	} {
		for _, field := range reflect.VisibleFields(pair[0]) {
			if _, there := pair[1].FieldByName(field.Name); field.IsExported() && !there {
				t.Errorf("%v has no field %s of %v", pair[1], field.Name, pair[0])
			}
		}
	}
}

// The least that EC2 accepts.
func TestRequirementsOfNothing(t *testing.T) {
	got, err := asked(&ec2types.InstanceRequirements{})
	if err != nil {
		t.Fatal(err)
	}
	if got.VCpuCount == nil || got.MemoryMiB == nil || *got.VCpuCount.Min != 0 || *got.MemoryMiB.Min != 0 {
		t.Errorf("asked %+v", got)
	}
}

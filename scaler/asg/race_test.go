package asg

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

// crowded is an AWS where another cluster writes right after us.
type crowded struct {
	autoScaling
	tags []astypes.TagDescription
}

func (c *crowded) DescribeAutoScalingGroups(context.Context, *autoscaling.DescribeAutoScalingGroupsInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
	return &autoscaling.DescribeAutoScalingGroupsOutput{AutoScalingGroups: []astypes.AutoScalingGroup{{AutoScalingGroupName: aws.String("web"), Tags: c.tags}}}, nil
}

func (c *crowded) CreateOrUpdateTags(_ context.Context, in *autoscaling.CreateOrUpdateTagsInput, _ ...func(*autoscaling.Options)) (*autoscaling.CreateOrUpdateTagsOutput, error) {
	c.tags = []astypes.TagDescription{{Key: in.Tags[0].Key, Value: aws.String("uid-green")}}
	return &autoscaling.CreateOrUpdateTagsOutput{}, nil
}

// Two clusters that saw no owner write at the same moment. The last one wins, and the other
// one learns it from the claim itself.
func TestClaimsRace(t *testing.T) {
	v := NewVerbs(&Account{scaling: &crowded{}})
	if err := v.Claim(t.Context(), "web", "uid-blue"); !errors.Is(err, ErrChanged) {
		t.Errorf("error %v", err)
	}
	if err := v.Claim(t.Context(), "web", "uid-green"); !errors.Is(err, ErrAlready) {
		t.Errorf("the winner: %v", err)
	}
}

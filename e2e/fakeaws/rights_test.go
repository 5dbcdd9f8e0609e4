package fakeaws_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"windlass.dev/windlass/e2e/fakeaws"
)

const me = "User: arn:aws:sts::123456789012:assumed-role/windlass/windlass is not authorized to perform: "

// arnOf is how IAM knows a group.
func (b *bed) arnOf(group string) string {
	g, err := b.Group(group)
	if err != nil {
		b.t.Fatal(err)
	}
	return g.ARN
}

func (b *bed) launch(group string) error {
	_, err := b.asg.LaunchInstances(b.ctx, &autoscaling.LaunchInstancesInput{AutoScalingGroupName: &group, RequestedCapacity: ptr(int32(1)), ClientToken: ptr("t-" + group)})
	return err
}

func (b *bed) terminate(instance string) error {
	_, err := b.asg.TerminateInstanceInAutoScalingGroup(b.ctx, &autoscaling.TerminateInstanceInAutoScalingGroupInput{InstanceId: &instance, ShouldDecrementDesiredCapacity: ptr(true)})
	return err
}

// A denied action is an error of its own kind in each service, and names the action and what it was about.
func TestDeny(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Max: 9, Type: "m5.large"})
	b.Deny("autoscaling:Set*", "ec2:DescribeInstanceTypes", "eks:*", "ec2:CreateFleet")
	wantError(t, b.setDesired("web", 1), 403, "AccessDenied",
		me+"autoscaling:SetDesiredCapacity on resource: "+b.arnOf("web")+" because no identity-based policy allows the autoscaling:SetDesiredCapacity action")
	_, err := b.ec2.DescribeInstanceTypes(b.ctx, nil)
	wantError(t, err, 403, "UnauthorizedOperation",
		"You are not authorized to perform this operation. "+me+"ec2:DescribeInstanceTypes because no identity-based policy allows the ec2:DescribeInstanceTypes action")
	_, err = b.eks.DescribeNodegroup(b.ctx, &eks.DescribeNodegroupInput{ClusterName: ptr("c"), NodegroupName: ptr("n")})
	wantError(t, err, 403, "AccessDeniedException",
		me+"eks:DescribeNodegroup on resource: arn:aws:eks:eu-west-1:123456789012:nodegroup/c/n/00000000-0000-0000-0000-000000000000 because no identity-based policy allows the eks:DescribeNodegroup action")
	wantError(t, b.launch("web"), 403, "AccessDenied",
		me+"ec2:CreateFleet on resource: arn:aws:ec2:eu-west-1:123456789012:fleet/* because no identity-based policy allows the ec2:CreateFleet action")
	must(b.asg.DescribeAutoScalingGroups(b.ctx, nil))(t)
	b.Deny()
	if err := b.setDesired("web", 1); err != nil {
		t.Fatal(err)
	}
}

// restrict holds the bed's clients to statements.
func (b *bed) restrict(statements ...string) {
	b.t.Helper()
	if err := b.Restrict("AKIATEST", []byte(`{"Version": "2012-10-17", "Statement": [`+strings.Join(statements, ",")+`]}`)); err != nil {
		b.t.Fatal(err)
	}
}

// Under a policy by tag a caller changes the groups that carry the tag, by their name or by an instance of theirs, and no others.
func TestPolicyByTag(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "ours", Max: 9, Desired: ptr(1), Type: "m5.large", Tags: map[string]string{"team": "a"}},
		fakeaws.Group{Name: "theirs", Max: 9, Desired: ptr(1), Type: "m5.large", Tags: map[string]string{"team": "b"}})
	b.restrict(`{"Effect": "Allow", "Action": "autoscaling:*", "Resource": "arn:aws:autoscaling:*:*:autoScalingGroup:*", "Condition": {"StringEquals": {"aws:ResourceTag/team": "a"}}}`,
		`{"Effect": "Allow", "Action": "autoscaling:DescribeAutoScalingGroups", "Resource": "*"}`)
	const because = " because no identity-based policy allows the autoscaling:"
	must(b.asg.DescribeAutoScalingGroups(b.ctx, nil))(t)
	_, err := b.asg.DescribeWarmPool(b.ctx, &autoscaling.DescribeWarmPoolInput{AutoScalingGroupName: ptr("ours")})
	wantError(t, err, 403, "AccessDenied", me+"autoscaling:DescribeWarmPool"+because+"DescribeWarmPool action")
	if err := b.setDesired("ours", 1); err != nil {
		t.Error(err)
	}
	wantError(t, b.setDesired("theirs", 1), 403, "AccessDenied", me+"autoscaling:SetDesiredCapacity on resource: "+b.arnOf("theirs")+because+"SetDesiredCapacity action")
	lacking := b.Calls(func(c fakeaws.Call) bool { return c.Lacks != "" })
	if n := len(lacking); n != 2 || lacking[1].Lacks != "autoscaling:SetDesiredCapacity on "+b.arnOf("theirs") {
		t.Errorf("%d calls lack a right: %v", n, lacking)
	}
	first := func(group string) string {
		g, err := b.Group(group)
		if err != nil || len(g.Instances) == 0 {
			t.Fatalf("group %s: %v, %v", group, g.Instances, err)
		}
		return g.Instances[0].ID
	}
	wantError(t, b.terminate(first("theirs")), 403, "AccessDenied",
		me+"autoscaling:TerminateInstanceInAutoScalingGroup on resource: "+b.arnOf("theirs")+because+"TerminateInstanceInAutoScalingGroup action")
	if err := b.terminate(first("ours")); err != nil {
		t.Error(err)
	}
	// Whoever is not there has no tags to go by.
	wantError(t, b.terminate("i-0123456789abcdef0"), 400, "ValidationError", "Instance Id not found - No managed instance found for instance ID: i-0123456789abcdef0")
}

// To launch instances needs EC2's right to make a fleet, which may be given to Auto Scaling alone.
func TestPolicyOnBehalf(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Max: 9, Type: "m5.large"})
	const (
		launch = `{"Effect": "Allow", "Action": ["autoscaling:LaunchInstances", "ec2:DescribeLaunchTemplateVersions"], "Resource": "*"}`
		via    = `{"Effect": "Allow", "Action": "ec2:CreateFleet", "Resource": "*", "Condition": {"Bool": {"aws:ViaAWSService": "true"}}}`
		deny   = `{"Effect": "Deny", "Action": "ec2:*", "Resource": "arn:aws:ec2:*:*:fleet/*"}`
	)
	const fleet = me + "ec2:CreateFleet on resource: arn:aws:ec2:eu-west-1:123456789012:fleet/*"
	b.restrict(launch)
	wantError(t, b.launch("web"), 403, "AccessDenied", fleet+" because no identity-based policy allows the ec2:CreateFleet action")
	b.restrict(launch, via, deny)
	wantError(t, b.launch("web"), 403, "AccessDenied", fleet+" with an explicit deny in an identity-based policy")
	b.restrict(launch, via)
	if err := b.launch("web"); err != nil {
		t.Error(err)
	}
}

// A policy holds for whom it is given to.
func TestPolicyOfOneCaller(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Max: 9, Type: "m5.large"})
	if err := b.Restrict("AKIAOTHER", []byte(`{"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Action": "*", "Resource": "*"}]}`)); err != nil {
		t.Fatal(err)
	}
	if err := b.setDesired("web", 1); err != nil {
		t.Error(err)
	}
	if err := b.Restrict("AKIATEST", []byte(`{}`)); err == nil {
		t.Error("a policy of nothing was taken")
	}
}

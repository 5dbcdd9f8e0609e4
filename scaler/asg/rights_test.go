package asg

import (
	"testing"
)

// What a refusal reports of the right that is missing: which, on what, where to get it, and who lacks it.
func TestRefusalNamesTheRight(t *testing.T) {
	const (
		role  = "arn:aws:sts::1:assumed-role/windlass/w"
		group = "arn:aws:autoscaling:eu-west-1:1:autoScalingGroup:u:autoScalingGroupName/web"
	)
	for _, c := range []struct{ about, call, message, want string }{
		{"a change of a group", "autoscaling:SetDesiredCapacity",
			"User: " + role + " is not authorized to perform: autoscaling:SetDesiredCapacity on resource: " + group + " because no identity-based policy allows the autoscaling:SetDesiredCapacity action",
			"no right to call autoscaling:SetDesiredCapacity on " + group + "; statement ChangeGroupsOfThisCluster of manifests/iam/scaler-policy.json grants it for groups with the cluster's tag: " +
				role + " lacks it because no identity-based policy allows the autoscaling:SetDesiredCapacity action"},
		{"a right without a resource", "autoscaling:DescribeWarmPool",
			"User: " + role + " is not authorized to perform: autoscaling:DescribeWarmPool because no identity-based policy allows the autoscaling:DescribeWarmPool action",
			"no right to call autoscaling:DescribeWarmPool; statement SeeGroups of manifests/iam/scaler-policy.json grants it: " +
				role + " lacks it because no identity-based policy allows the autoscaling:DescribeWarmPool action"},
		{"a right that another one needs", "autoscaling:LaunchInstances",
			"User: " + role + " is not authorized to perform: ec2:CreateFleet on resource: arn:aws:ec2:eu-west-1:1:fleet/* because no identity-based policy allows the ec2:CreateFleet action",
			"no right to call ec2:CreateFleet, which autoscaling:LaunchInstances needs, on arn:aws:ec2:eu-west-1:1:fleet/*; statement LaunchForThoseGroupsInAZoneOfOurChoice of manifests/iam/scaler-policy.json grants it where Auto Scaling calls on our behalf: " +
				role + " lacks it because no identity-based policy allows the ec2:CreateFleet action"},
		{"what no statement of ours grants", "autoscaling:LaunchInstances",
			"User: " + role + " is not authorized to perform: ec2:RunInstances on resource: * because no identity-based policy allows the ec2:RunInstances action",
			"no right to call ec2:RunInstances, which autoscaling:LaunchInstances needs: " + role + " lacks it because no identity-based policy allows the ec2:RunInstances action"},
		{"a right that is opt-in", "autoscaling:CreateOrUpdateTags",
			"User: " + role + " is not authorized to perform: autoscaling:CreateOrUpdateTags on resource: " + group + " because no identity-based policy allows the autoscaling:CreateOrUpdateTags action",
			"no right to call autoscaling:CreateOrUpdateTags on " + group + "; statement ClaimThoseGroups of manifests/iam/claim-groups.json grants it for groups with the cluster's tag: " +
				role + " lacks it because no identity-based policy allows the autoscaling:CreateOrUpdateTags action"},
		{"a right of a policy that is opt-in", "autoscaling:SuspendProcesses",
			"User: " + role + " is not authorized to perform: autoscaling:SuspendProcesses on resource: " + group + " because no identity-based policy allows the autoscaling:SuspendProcesses action",
			"no right to call autoscaling:SuspendProcesses on " + group + "; statement SuspendAZRebalanceOfThoseGroups of manifests/iam/suspend-az-rebalance.json grants it for groups with the cluster's tag: " +
				role + " lacks it because no identity-based policy allows the autoscaling:SuspendProcesses action"},
		{"a policy that forbids it", "autoscaling:SuspendProcesses",
			"User: " + role + " is not authorized to perform: autoscaling:SuspendProcesses on resource: " + group + " with an explicit deny in a service control policy",
			"no right to call autoscaling:SuspendProcesses on " + group + ": " + role + " lacks it with an explicit deny in a service control policy"},
		{"a message of another shape", "eks:DescribeNodegroup", "Access denied.",
			"no right to call eks:DescribeNodegroup; statement SeeManagedNodeGroups of manifests/iam/scaler-policy.json grants it for node groups of the cluster that it names: Access denied."},
	} {
		err := &CallError{Call: c.call, Code: "AccessDenied", Message: c.message, Class: ErrDenied}
		if got := err.Error(); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.about, got, c.want)
		}
	}
	if other := (&CallError{Call: "autoscaling:SetDesiredCapacity", Code: "ValidationError", Class: ErrRefused}); other.Right() != "" || other.Lack() != "" {
		t.Errorf("another trouble lacks %q, %q", other.Right(), other.Lack())
	}
	if text := LackIn("Instance launch failed"); text != "" {
		t.Errorf("a message that names no right lacks %q", text)
	}
}

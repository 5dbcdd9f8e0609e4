package fakeaws

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"windlass.dev/windlass/e2e/fakeaws/api"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakeaws/iam"
	"windlass.dev/windlass/e2e/fakeaws/wire"
)

// rights are what callers may do. A caller without a policy may do everything; what is denied by name is denied to all.
type rights struct {
	mu       sync.Mutex
	policies map[string]iam.Policy // by access key
	denied   []string              // actions such as autoscaling:SetDesiredCapacity
}

func newRights() *rights { return &rights{policies: map[string]iam.Policy{}} }

// Restrict lets the callers with an access key do only what IAM policy documents allow, all together.
func (s *Server) Restrict(accessKey string, documents ...[]byte) error {
	var policy iam.Policy
	for _, document := range documents {
		attached, err := iam.Parse(document)
		if err != nil {
			return err
		}
		policy.Statement = append(policy.Statement, attached.Statement...)
	}
	s.rights.mu.Lock()
	defer s.rights.mu.Unlock()
	s.rights.policies[accessKey] = policy
	return nil
}

// Deny replaces the actions that the callers have no rights for, as if no policy allowed them, such as autoscaling:SetDesiredCapacity; * stands for anything.
func (s *Server) Deny(actions ...string) {
	s.rights.mu.Lock()
	defer s.rights.mu.Unlock()
	s.rights.denied = slices.Clone(actions)
}

// forbidden is the error for a caller who lacks one of the rights that a call needs, and the right if it is the caller's policy that does not grant it; nil if
// he has all.
func (s *Server) forbidden(c Call) (refusal *cloud.Error, lacks string) {
	needs, account := s.Needs(c)
	s.rights.mu.Lock()
	defer s.rights.mu.Unlock()
	policy, restricted := s.rights.policies[c.AccessKey]
	for _, need := range needs {
		if slices.ContainsFunc(s.rights.denied, func(pattern string) bool { return cloud.MatchPattern(pattern, need.Action) }) {
			return denied(c.Service, need, iam.Decision{}, account), ""
		}
		if decision := policy.Decide(need); restricted && !decision.Allowed {
			return denied(c.Service, need, decision, account), need.Action + " on " + need.Resource
		}
	}
	return nil, ""
}

// Needs are the rights that a call asks for, by what there is now, and the account of it. Whoever it is about and does not exist is left to the operation, which says so: AWS has to find the group of an
// instance before it can look at the group's tags.
func (s *Server) Needs(c Call) (needs []iam.Request, account string) {
	_ = s.With(func(cl *cloud.Cloud, _ time.Time) error { // It never fails.
		account = cl.Account()
		needs = needsOf(c, cl)
		return nil
	})
	return needs, account
}

func needsOf(c Call, cl *cloud.Cloud) []iam.Request {
	need := iam.Request{Action: c.Service + ":" + c.Operation, Resource: anyResource}
	switch {
	case api.Operations[c.Service][c.Operation] == nil:
		return nil
	case c.Operation == "AssumeRole":
		need.Resource = c.Params["RoleArn"]
	case c.Service == wire.STS.Name:
		return nil // GetCallerIdentity needs no right, https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html
	case c.Operation == "DescribeCluster":
		need.Resource = api.ClusterARN(cl, c.Params["name"])
	case c.Service == wire.EKS.Name:
		need.Resource = api.NodegroupARN(cl, c.Params["clusterName"], c.Params["nodegroupName"])
	case c.Service == wire.AutoScaling.Name && Mutating(c):
		return onGroup(need, c, cl)
	}
	return []iam.Request{need}
}

// anyResource is the resource of actions that know none, as all that describe for EC2 and Auto Scaling.
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2autoscaling.html
const anyResource = "*"

// onGroup has the group as the resource, and its tags as condition keys.
func onGroup(need iam.Request, c Call, cl *cloud.Cloud) []iam.Request {
	g, err := cl.Group(groupOf(c, cl))
	switch {
	case err == nil:
		need.Resource = g.ARN
	case c.Operation == "CreateAutoScalingGroup":
		need.Resource = fmt.Sprintf("arn:aws:autoscaling:%s:%s:autoScalingGroup:*:autoScalingGroupName/%s", cl.Region(), cl.Account(), c.Params["AutoScalingGroupName"])
	default:
		return nil
	}
	need.Context = map[string]string{}
	for key, value := range g.Spec.Tags {
		need.Context["aws:ResourceTag/"+key] = value
		need.Context["autoscaling:ResourceTag/"+key] = value
	}
	for key, value := range c.Params {
		if tag, of := strings.CutSuffix(key, ".Key"); of && strings.HasPrefix(tag, "Tags.member.") {
			need.Context["aws:RequestTag/"+value] = c.Params[tag+".Value"]
			need.Context["aws:TagKeys"] = strings.TrimPrefix(need.Context["aws:TagKeys"]+","+value, ",")
		}
	}
	if c.Operation != "LaunchInstances" {
		return []iam.Request{need}
	}
	return append([]iam.Request{need}, onBehalf(cl)...)
}

// onBehalf are the rights that LaunchInstances needs of EC2, where Auto Scaling calls in the caller's name.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/launching-instances-synchronous-provisioning.html#prerequisites-synchronous-provisioning
func onBehalf(cl *cloud.Cloud) []iam.Request {
	viaService := map[string]string{"aws:ViaAWSService": "true"}
	fleet := fmt.Sprintf("arn:aws:ec2:%s:%s:fleet/*", cl.Region(), cl.Account())
	return []iam.Request{
		{Action: "ec2:CreateFleet", Resource: fleet, Context: viaService},
		{Action: "ec2:DescribeLaunchTemplateVersions", Resource: anyResource, Context: viaService},
	}
}

// groupOf is the group that a call is about: the one that it names, or that of the instance that it names.
func groupOf(c Call, cl *cloud.Cloud) string {
	if name := c.Params["AutoScalingGroupName"]; name != "" {
		return name
	}
	if name := c.Params["Tags.member.1.ResourceId"]; name != "" {
		return name
	}
	for _, key := range slices.Sorted(maps.Keys(c.Params)) {
		if !strings.HasPrefix(key, "InstanceId") {
			continue
		}
		if i, err := cl.Instance(c.Params[key]); err == nil {
			return i.Group
		}
	}
	return ""
}

// denied is what each service answers to a caller without a right.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html
func denied(service string, need iam.Request, d iam.Decision, account string) *cloud.Error {
	text := fmt.Sprintf("User: arn:aws:sts::%s:assumed-role/windlass/windlass is not authorized to perform: %s", account, need.Action)
	if need.Resource != anyResource {
		text += " on resource: " + need.Resource
	}
	if d.Explicit {
		text += " with an explicit deny in an identity-based policy"
	} else {
		text += fmt.Sprintf(" because no identity-based policy allows the %s action", need.Action)
	}
	switch service {
	case wire.EC2Service.Name:
		return cloud.Errorf(http.StatusForbidden, "UnauthorizedOperation", "You are not authorized to perform this operation. %s", text)
	case wire.EKS.Name:
		return cloud.Errorf(http.StatusForbidden, "AccessDeniedException", "%s", text)
	}
	return cloud.Errorf(http.StatusForbidden, "AccessDenied", "%s", text)
}

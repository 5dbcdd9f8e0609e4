package asg

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// PolicyFile is the IAM policy that every scaler needs.
const PolicyFile = "manifests/iam/scaler-policy.json"

// OptIn are the statements that stand in a policy of their own, because only those need
// them who set a flag, or uninstall: the file by Sid.
var OptIn = map[string]string{
	claim:        "manifests/iam/claim-groups.json",         // --claim-groups
	seeInstances: "manifests/iam/out-of-service-taint.json", // --out-of-service-taint
	seeSpot:      "manifests/iam/spot-prices.json",          // --spot-prices=history
	suspendAZ:    "manifests/iam/suspend-az-rebalance.json", // --suspend-az-rebalance
	disclaim:     "manifests/iam/uninstall.json",            // the command uninstall, by people
	deleteHooks:  "manifests/iam/uninstall.json",
}

// Statements of PolicyFile, and of those that are opt-in.
const (
	seeGroups       = "SeeGroups"
	seeNodegroups   = "SeeManagedNodeGroups"
	changeGroups    = "ChangeGroupsOfThisCluster"
	suspendAZ       = "SuspendAZRebalanceOfThoseGroups"
	claim           = "ClaimThoseGroups"
	disclaim        = "DisclaimThoseGroups"
	deleteHooks     = "DeleteHooksOfThoseGroups"
	seeInstances    = "SeeInstances"
	seeSpot         = "SeeSpotPrices"
	launchInOneZone = "LaunchForThoseGroupsInAZoneOfOurChoice"
)

// Statements are the rights that these policies grant: the Sid of the statement by action.
var Statements = map[string]string{
	"autoscaling:DescribeAutoScalingGroups":           seeGroups,
	"autoscaling:DescribeInstanceRefreshes":           seeGroups,
	"autoscaling:DescribeLaunchConfigurations":        seeGroups,
	"autoscaling:DescribeLifecycleHooks":              seeGroups,
	"autoscaling:DescribeScalingActivities":           seeGroups,
	"autoscaling:DescribeWarmPool":                    seeGroups,
	"ec2:DescribeAvailabilityZones":                   seeGroups,
	"ec2:DescribeImages":                              seeGroups,
	"ec2:DescribeInstanceTypes":                       seeGroups,
	"ec2:DescribeLaunchTemplateVersions":              seeGroups,
	"ec2:GetInstanceTypesFromInstanceRequirements":    seeGroups,
	"eks:DescribeNodegroup":                           seeNodegroups,
	"autoscaling:CompleteLifecycleAction":             changeGroups,
	"autoscaling:LaunchInstances":                     changeGroups,
	"autoscaling:RecordLifecycleActionHeartbeat":      changeGroups,
	"autoscaling:SetDesiredCapacity":                  changeGroups,
	"autoscaling:TerminateInstanceInAutoScalingGroup": changeGroups,
	"autoscaling:SuspendProcesses":                    suspendAZ,
	"autoscaling:ResumeProcesses":                     suspendAZ,
	"autoscaling:DeleteTags":                          disclaim,
	"autoscaling:DeleteLifecycleHook":                 deleteHooks,
	"autoscaling:CreateOrUpdateTags":                  claim,
	"ec2:DescribeInstances":                           seeInstances,
	"ec2:DescribeSpotPriceHistory":                    seeSpot,
	"ec2:CreateFleet":                                 launchInOneZone,
}

// scopes are what a statement grants its rights for: whoever has it and is denied all the
// same has to look there.
var scopes = map[string]string{
	seeNodegroups:   " for node groups of the cluster that it names",
	changeGroups:    " for groups with the cluster's tag",
	suspendAZ:       " for groups with the cluster's tag",
	claim:           " for groups with the cluster's tag",
	disclaim:        " for groups with the cluster's tag",
	deleteHooks:     " for groups with the cluster's tag",
	launchInOneZone: " where Auto Scaling calls on our behalf",
}

// denial is what AWS reports of a right that is missing.
type denial struct {
	who, right string
	// resource is empty for a right that knows none.
	resource string
	// why is "because no identity-based policy allows it", or "with an explicit deny
	// in …".
	why string
}

// denials have one form in all services.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html
var denials = regexp.MustCompile(`(?:User: (\S+) is )?not authorized to perform: ([a-z0-9-]+:[A-Za-z]+)(?: on resource: (\S+))?(?: ((?:because|with) .*))?`)

// denialIn reads a message of AWS; false if it names no right.
func denialIn(message string) (denial, bool) {
	found := denials.FindStringSubmatch(message)
	if found == nil {
		return denial{}, false
	}
	return denial{who: found[1], right: found[2], resource: found[3], why: found[4]}, true
}

// lack says in words which right is missing, on what, and where to get it. call is
// what was called, empty if that is not known.
func (d denial) lack(call string) string {
	text := "no right to call " + d.right
	if call != "" && call != d.right {
		text += ", which " + call + " needs,"
	}
	if d.resource != "" && d.resource != "*" {
		text += " on " + d.resource
	}
	text = strings.TrimSuffix(text, ",")
	if strings.HasPrefix(d.why, "with an explicit deny") {
		return text // and no statement that grants it would help
	}
	if statement := Statements[d.right]; statement != "" {
		text += fmt.Sprintf("; statement %s of %s grants it%s", statement, cmp.Or(OptIn[statement], PolicyFile), scopes[statement])
	}
	return text
}

// LackIn returns which right is missing by a message of AWS, on what, and where to get it;
// empty if the message names none.
func LackIn(message string) string {
	d, found := denialIn(message)
	if !found {
		return ""
	}
	return d.lack("")
}

// Right is the right that is missing: AWS names it where it is another than the
// call's own, such as ec2:CreateFleet for LaunchInstances. It is empty for an
// error of another kind.
func (e *CallError) Right() string {
	if !e.Denied() {
		return ""
	}
	return e.denial().right
}

// Lack returns which right is missing, on what, and where to get it. It is empty for an
// error of another kind.
func (e *CallError) Lack() string {
	if !e.Denied() {
		return ""
	}
	return e.denial().lack(e.Call)
}

func (e *CallError) denial() denial {
	if d, found := denialIn(e.Message); found {
		return d
	}
	return denial{right: e.Call}
}

// refusal is the text of a call that was denied: what is missing, and to whom.
func (e *CallError) refusal() string {
	d, found := denialIn(e.Message)
	if !found || d.who == "" || d.why == "" {
		return fmt.Sprintf("%s: %s", e.Lack(), e.Message)
	}
	return fmt.Sprintf("%s: %s lacks it %s", d.lack(e.Call), d.who, d.why)
}

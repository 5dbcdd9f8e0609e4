package iam

import (
	"strings"
	"testing"
)

const group = "arn:aws:autoscaling:eu-west-1:123456789012:autoScalingGroup:0f3c:autoScalingGroupName/web"

func parse(t *testing.T, statements ...string) Policy {
	t.Helper()
	p, err := Parse([]byte(`{"Version": "2012-10-17", "Statement": [` + strings.Join(statements, ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What a statement of one condition says, told in the order of the evaluation: action, resource, condition.
func TestDecide(t *testing.T) {
	const set = "autoscaling:SetDesiredCapacity"
	tagged := map[string]string{"aws:ResourceTag/team": "a", "aws:ViaAWSService": "true"}
	for _, c := range []struct {
		about     string
		statement string
		request   Request
		allowed   bool
	}{
		{"another action", `"Action": "autoscaling:Describe*", "Resource": "*"`, Request{set, group, nil}, false},
		{"the case of actions does not matter", `"Action": "AutoScaling:setdesired*", "Resource": "*"`, Request{set, group, nil}, true},
		{"one of several actions", `"Action": ["ec2:*", "autoscaling:Set*"], "Resource": "*"`, Request{set, group, nil}, true},
		{"its resource", `"Action": "*", "Resource": "arn:aws:autoscaling:*:*:autoScalingGroup:*:autoScalingGroupName/w?b"`, Request{set, group, nil}, true},
		{"another resource", `"Action": "*", "Resource": "arn:aws:autoscaling:*:*:autoScalingGroup:*:autoScalingGroupName/db"`, Request{set, group, nil}, false},
		{"the case of resources matters", `"Action": "*", "Resource": "arn:aws:autoscaling:*:*:autoscalinggroup:*:autoScalingGroupName/web"`, Request{set, group, nil}, false},
		{"another account", `"Action": "*", "Resource": "arn:aws:autoscaling:*:999999999999:*"`, Request{set, group, nil}, false},
		{"a wildcard does not reach over a colon", `"Action": "*", "Resource": "arn:aws:*:123456789012:autoScalingGroup:x:autoScalingGroupName/web"`, Request{set, group, nil}, false},
		{"an action without a resource needs *", `"Action": "*", "Resource": "arn:aws:autoscaling:*:*:*"`, Request{"autoscaling:DescribeWarmPool", "*", nil}, false},
		{"the tag", `"Action": "*", "Resource": "*", "Condition": {"StringEquals": {"aws:ResourceTag/team": ["b", "a"]}}`, Request{set, group, tagged}, true},
		{"another value", `"Action": "*", "Resource": "*", "Condition": {"StringEquals": {"aws:ResourceTag/team": "b"}}`, Request{set, group, tagged}, false},
		{"no tag at all", `"Action": "*", "Resource": "*", "Condition": {"StringEquals": {"aws:ResourceTag/team": "a"}}`, Request{set, group, nil}, false},
		{"no tag, if it exists", `"Action": "*", "Resource": "*", "Condition": {"StringEqualsIfExists": {"aws:ResourceTag/team": "a"}}`, Request{set, group, nil}, true},
		{"not equal, and unknown", `"Action": "*", "Resource": "*", "Condition": {"StringNotEquals": {"aws:ResourceTag/team": "a"}}`, Request{set, group, nil}, true},
		{"not equal, but it is", `"Action": "*", "Resource": "*", "Condition": {"StringNotEquals": {"aws:ResourceTag/team": "a"}}`, Request{set, group, tagged}, false},
		{"like", `"Action": "*", "Resource": "*", "Condition": {"StringLike": {"aws:resourcetag/team": "?"}}`, Request{set, group, tagged}, true},
		{"not like", `"Action": "*", "Resource": "*", "Condition": {"StringNotLike": {"aws:ResourceTag/team": "a*"}}`, Request{set, group, tagged}, false},
		{"there", `"Action": "*", "Resource": "*", "Condition": {"Null": {"aws:ResourceTag/team": "false"}}`, Request{set, group, tagged}, true},
		{"wanted there, and is not", `"Action": "*", "Resource": "*", "Condition": {"Null": {"aws:ResourceTag/team": false}}`, Request{set, group, nil}, false},
		{"wanted not there, and is", `"Action": "*", "Resource": "*", "Condition": {"Null": {"aws:ResourceTag/team": true}}`, Request{set, group, tagged}, false},
		{"by a service", `"Action": "*", "Resource": "*", "Condition": {"Bool": {"aws:ViaAWSService": "true"}}`, Request{set, group, tagged}, true},
		{"not by a service", `"Action": "*", "Resource": "*", "Condition": {"Bool": {"aws:ViaAWSService": "true"}}`, Request{set, group, nil}, false},
		{"all conditions must hold", `"Action": "*", "Resource": "*", "Condition": {"Bool": {"aws:ViaAWSService": "true"}, "StringEquals": {"aws:ResourceTag/team": "b"}}`, Request{set, group, tagged}, false},
	} {
		p := parse(t, `{"Sid": "Only", "Effect": "Allow", `+c.statement+`}`)
		if got := p.Decide(c.request); got.Allowed != c.allowed || got.Explicit || (got.Sid == "Only") != c.allowed {
			t.Errorf("%s: %+v, want allowed %t", c.about, got, c.allowed)
		}
	}
}

// A Deny wins wherever it stands, and is told from a missing Allow.
func TestDenyWins(t *testing.T) {
	allow, deny := `{"Sid": "All", "Effect": "Allow", "Action": "*", "Resource": "*"}`, `{"Sid": "NotThis", "Effect": "Deny", "Action": "ec2:*", "Resource": "*"}`
	for _, p := range []Policy{parse(t, allow, deny), parse(t, deny, allow)} {
		if got, want := p.Decide(Request{Action: "ec2:CreateFleet", Resource: "*"}), (Decision{Sid: "NotThis", Explicit: true}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if got, want := p.Decide(Request{Action: "eks:DescribeNodegroup", Resource: "*"}), (Decision{Sid: "All", Allowed: true}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// What is not understood is an error and no condition that holds.
func TestParseRefuses(t *testing.T) {
	for about, document := range map[string]string{
		"old version":       `{"Version": "2008-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}`,
		"no statement":      `{"Version": "2012-10-17", "Statement": []}`,
		"unknown element":   `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "NotAction": "*", "Resource": "*"}]}`,
		"unknown effect":    `{"Version": "2012-10-17", "Statement": [{"Effect": "allow", "Action": "*", "Resource": "*"}]}`,
		"unknown operator":  `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"DateLessThan": {"aws:CurrentTime": "x"}}}]}`,
		"no value":          `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"Bool": {"aws:ViaAWSService": []}}}]}`,
		"no action":         `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Resource": "*"}]}`,
		"action of nothing": `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "DescribeInstances", "Resource": "*"}]}`,
		"no ARN":            `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "group/web"}]}`,
		"number":            `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": 1, "Resource": "*"}]}`,
	} {
		if p, err := Parse([]byte(document)); err == nil {
			t.Errorf("%s: read as %+v", about, p)
		}
	}
}

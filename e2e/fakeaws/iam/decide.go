package iam

import (
	"slices"
	"strings"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
)

// Request is what somebody wants to do to one resource.
type Request struct {
	// Action is such as autoscaling:SetDesiredCapacity.
	Action string
	// Resource is an ARN, or * for an action that knows none.
	Resource string
	// Context are condition keys such as aws:ResourceTag/team. A key that is not there is unknown, which is another thing than empty.
	Context map[string]string
}

// Decision is what a policy says of a request.
type Decision struct {
	Allowed bool
	// Sid is the statement that allowed or denied it; empty where none speaks of it, which is a denial, too.
	Sid string
	// Explicit means that a statement denied it.
	Explicit bool
}

// Decide is what the policy says of a request: a Deny wins, an Allow is needed.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic_policy-eval-denyallow.html
func (p Policy) Decide(r Request) Decision {
	var decision Decision
	for _, s := range p.Statement {
		switch {
		case !s.speaksOf(r):
		case s.Effect == Deny:
			return Decision{Sid: s.Sid, Explicit: true}
		case !decision.Allowed:
			decision = Decision{Allowed: true, Sid: s.Sid}
		}
	}
	return decision
}

// speaksOf reports whether action, resource and all conditions match.
func (s Statement) speaksOf(r Request) bool {
	return slices.ContainsFunc(s.Action, func(pattern string) bool {
		return cloud.MatchPattern(strings.ToLower(pattern), strings.ToLower(r.Action))
	}) &&
		slices.ContainsFunc(s.Resource, func(pattern string) bool { return matchesARN(pattern, r.Resource) }) &&
		s.holds(r.Context)
}

// arnParts: an ARN is arn:partition:service:region:account:resource, whose last part may hold colons of its own.
const arnParts = 6

// matchesARN matches part by part: a wildcard does not reach over a colon, except in the resource itself.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_resource.html
func matchesARN(pattern, arn string) bool {
	if pattern == "*" {
		return true
	}
	want, have := strings.SplitN(pattern, ":", arnParts), strings.SplitN(arn, ":", arnParts)
	return slices.EqualFunc(want, have, cloud.MatchPattern)
}

// Package iam decides by an IAM policy document who may do what, as far as identity-based policies go: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
//
//	policy.go     a document, read strictly
//	decide.go     does a statement speak of a request, and what does the policy say
//	condition.go  the condition operators
//
// What it does not know (NotPrincipal, dates, numbers, policy variables) is an error when the document is read, never a condition that silently holds.
package iam

package iam

import (
	"slices"
	"strings"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
)

// ifExists, at the end of an operator, has the condition hold also where the key is unknown.
const ifExists = "IfExists"

// operator compares the value of a condition key, if there is one, with the values of the policy.
type operator func(value string, there bool, wanted Words) bool

// operators are those that this package knows.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
var operators = map[string]operator{
	"StringEquals":    anyOf(func(want, value string) bool { return want == value }),
	"StringNotEquals": noneOf(func(want, value string) bool { return want == value }),
	"StringLike":      anyOf(cloud.MatchPattern),
	"StringNotLike":   noneOf(cloud.MatchPattern),
	"Bool":            anyOf(strings.EqualFold),
	// Of several values, which are joined by commas here.
	"ForAllValues:StringEquals": func(value string, there bool, wanted Words) bool {
		return !there || !slices.ContainsFunc(strings.Split(value, ","), func(v string) bool { return !slices.Contains(wanted, v) })
	},
	"Null": func(_ string, there bool, wanted Words) bool {
		return slices.ContainsFunc(wanted, func(want string) bool { return strings.EqualFold(want, "true") != there })
	},
}

func anyOf(same func(want, value string) bool) operator {
	return func(value string, there bool, wanted Words) bool {
		return there && slices.ContainsFunc(wanted, func(want string) bool { return same(want, value) })
	}
}

// noneOf holds also where the key is unknown, as IAM has it.
func noneOf(same func(want, value string) bool) operator {
	return func(value string, there bool, wanted Words) bool {
		return !there || !slices.ContainsFunc(wanted, func(want string) bool { return same(want, value) })
	}
}

// holds reports whether every key of every operator holds.
func (s Statement) holds(context map[string]string) bool {
	for name, keys := range s.Condition {
		base, optional := strings.CutSuffix(name, ifExists)
		for key, wanted := range keys {
			value, there := lookUp(context, key)
			if optional && !there {
				continue
			}
			if !operators[base](value, there, wanted) {
				return false
			}
		}
	}
	return true
}

// lookUp finds a key; IAM does not mind its case.
func lookUp(context map[string]string, key string) (value string, there bool) {
	for have, value := range context {
		if strings.EqualFold(have, key) {
			return value, true
		}
	}
	return "", false
}

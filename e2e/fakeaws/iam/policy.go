package iam

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Policy is an IAM policy document.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements.html
type Policy struct {
	Version   string
	ID        string `json:"Id"`
	Statement []Statement
}

// Statement allows or denies actions.
type Statement struct {
	Sid      string
	Effect   Effect
	Action   Words
	Resource Words
	// Condition is operator → condition key → values.
	Condition map[string]map[string]Words
}

// Effect is what a statement does with the requests that it speaks of.
type Effect string

// The effects.
const (
	Allow Effect = "Allow"
	Deny  Effect = "Deny"
)

// Words is a list that may be written as one string, or as true or false.
type Words []string

// UnmarshalJSON reads a list, or the one value that stands for a list of it.
func (w *Words) UnmarshalJSON(body []byte) error {
	if len(body) > 0 && body[0] == '[' {
		return json.Unmarshal(body, (*[]string)(w))
	}
	var one any
	if err := json.Unmarshal(body, &one); err != nil {
		return err
	}
	switch one.(type) {
	case string, bool:
		*w = Words{fmt.Sprint(one)}
		return nil
	}
	return fmt.Errorf("%s is neither text nor a list of texts", body)
}

// Parse reads a document. Elements, effects and condition operators that this package does not know are errors.
func Parse(document []byte) (Policy, error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	var p Policy
	if err := decoder.Decode(&p); err != nil {
		return Policy{}, fmt.Errorf("reading an IAM policy: %w", err)
	}
	if p.Version != "2012-10-17" {
		return Policy{}, fmt.Errorf("an IAM policy of version %q, want 2012-10-17, the language of today", p.Version)
	}
	if len(p.Statement) == 0 {
		return Policy{}, errors.New("an IAM policy without a statement")
	}
	for i, s := range p.Statement {
		if err := s.check(); err != nil {
			return Policy{}, fmt.Errorf("statement %d (%s) of an IAM policy: %w", i+1, s.Sid, err)
		}
	}
	return p, nil
}

func (s Statement) check() error {
	if s.Effect != Allow && s.Effect != Deny {
		return fmt.Errorf("effect %q", s.Effect)
	}
	if len(s.Action) == 0 || len(s.Resource) == 0 {
		return errors.New("no action, or no resource")
	}
	for _, action := range s.Action {
		if service, verb, _ := strings.Cut(action, ":"); action != "*" && (service == "" || verb == "") {
			return fmt.Errorf("%q is no action", action)
		}
	}
	for _, resource := range s.Resource {
		if resource != "*" && len(strings.SplitN(resource, ":", arnParts)) != arnParts {
			return fmt.Errorf("%q is no ARN", resource)
		}
	}
	for operator, keys := range s.Condition {
		if _, known := operators[strings.TrimSuffix(operator, ifExists)]; !known {
			return fmt.Errorf("condition operator %q", operator)
		}
		for key, values := range keys {
			if len(values) == 0 {
				return fmt.Errorf("condition %s of %s has no value", operator, key)
			}
		}
	}
	return nil
}

// Package wire speaks the protocols of AWS services: the Query form of requests, XML and JSON answers, and errors in the form of each.
//
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/Query-Requests.html, https://smithy.io/2.0/aws/protocols/aws-query-protocol.html,
// https://smithy.io/2.0/aws/protocols/aws-ec2-query-protocol.html, https://smithy.io/2.0/aws/protocols/aws-restjson1-protocol.html
package wire

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
)

// Values are the parameters of one request, or of one structure in it, with the names of the Query protocol.
type Values url.Values

// Get is a parameter, or "".
func (v Values) Get(name string) string { return url.Values(v).Get(name) }

// Has reports whether a parameter was given.
func (v Values) Has(name string) bool { return url.Values(v).Has(name) }

// Int is a whole number, or the default where it was not given.
func (v Values) Int(name string, missing int) (int, error) {
	if !v.Has(name) {
		return missing, nil
	}
	n, err := strconv.Atoi(v.Get(name))
	if err != nil {
		return 0, cloud.Errorf(400, "MalformedInput", "%s: %q is not a whole number", name, v.Get(name))
	}
	return n, nil
}

// Bool is a truth value, or the default where it was not given.
func (v Values) Bool(name string, missing bool) bool {
	if !v.Has(name) {
		return missing
	}
	return strings.EqualFold(v.Get(name), "true")
}

// List is a list of texts: name.1, name.2 and so on; a Query list has ".member" in its name.
func (v Values) List(name string) []string {
	var list []string
	for n := 1; v.Has(fmt.Sprintf("%s.%d", name, n)); n++ {
		list = append(list, v.Get(fmt.Sprintf("%s.%d", name, n)))
	}
	return list
}

// Structs is a list of structures, each with its own parameters.
func (v Values) Structs(name string) []Values {
	var list []Values
	for n := 1; ; n++ {
		sub := v.Sub(fmt.Sprintf("%s.%d", name, n))
		if len(sub) == 0 {
			return list
		}
		list = append(list, sub)
	}
}

// Sub is one structure: the parameters whose names begin with name and a dot.
func (v Values) Sub(name string) Values {
	sub := Values{}
	for key, values := range v {
		if rest, ok := strings.CutPrefix(key, name+"."); ok {
			sub[rest] = values
		}
	}
	return sub
}

// Flat are the parameters as the call log keeps them.
func (v Values) Flat() map[string]string {
	flat := make(map[string]string, len(v))
	for key := range v {
		if key != "Action" && key != "Version" {
			flat[key] = v.Get(key)
		}
	}
	return flat
}

// Filter is a filter of a Describe call.
type Filter struct {
	Name   string
	Values []string
}

// Filters reads the filters of a request; Auto Scaling and EC2 name their parts differently.
func (v Values) Filters(list, values string) []Filter {
	var filters []Filter
	for _, f := range v.Structs(list) {
		filters = append(filters, Filter{Name: f.Get("Name"), Values: f.List(values)})
	}
	return filters
}

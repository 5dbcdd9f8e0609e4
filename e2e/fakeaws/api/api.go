// Package api are the operations of the fake's services: each reads its parameters, asks or changes the cloud, and answers in the shape of the service.
package api

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakeaws/wire"
)

// Backend is the cloud behind a lock and with a clock.
type Backend interface {
	// With brings the cloud up to now and runs f while nothing else looks at it.
	With(f func(c *cloud.Cloud, now time.Time) error) error
	// Sleep waits; it fails when the caller goes away.
	Sleep(ctx context.Context, d time.Duration) error
}

// Handler carries out one operation.
type Handler func(ctx context.Context, b Backend, v wire.Values) (answer any, err error)

// Operations are the handlers by service and operation.
var Operations = map[string]map[string]Handler{
	wire.AutoScaling.Name: autoScaling,
	wire.EC2Service.Name:  ec2,
	wire.EKS.Name:         eks,
	wire.STS.Name:         sts,
}

// describing makes a handler of a function that only looks at the cloud.
func describing(look func(c *cloud.Cloud, v wire.Values) (any, error)) Handler {
	return func(_ context.Context, b Backend, v wire.Values) (answer any, err error) {
		err = b.With(func(c *cloud.Cloud, _ time.Time) error {
			answer, err = look(c, v)
			return err
		})
		return answer, err
	}
}

// changing makes a handler of a function that changes the cloud.
func changing(change func(c *cloud.Cloud, v wire.Values, now time.Time) (any, error)) Handler {
	return func(_ context.Context, b Backend, v wire.Values) (answer any, err error) {
		err = b.With(func(c *cloud.Cloud, now time.Time) error {
			answer, err = change(c, v, now)
			return err
		})
		return answer, err
	}
}

// required fails, as Auto Scaling does, where a parameter is missing.
func required(v wire.Values, names ...string) error {
	for _, name := range names {
		if v.Get(name) == "" {
			return null(name)
		}
	}
	return nil
}

func null(name string) error {
	return cloud.Errorf(400, "ValidationError", "1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", lowerFirst(name))
}

// only refuses parameters other than those named, each with all that is below it: what the fake does not do it does not accept.
func only(v wire.Values, names ...string) error {
	for _, key := range slices.Sorted(maps.Keys(v)) {
		top, _, _ := strings.Cut(key, ".")
		if top != "Action" && top != "Version" && !slices.Contains(names, top) {
			return notSimulated(top)
		}
	}
	return nil
}

func notSimulated(what string) error {
	return cloud.Errorf(400, "ValidationError", "%s is not simulated by this fake", what)
}

// within is a whole number between bounds.
func within(v wire.Values, name string, least, most int) (int, error) {
	n, err := v.Int(name, 0)
	switch {
	case err != nil:
		return 0, err
	case n < least:
		return 0, cloud.Errorf(400, "ValidationError", "1 validation error detected: Value '%d' at '%s' failed to satisfy constraint: Member must have value greater than or equal to %d", n, lowerFirst(name), least)
	case n > most:
		return 0, cloud.Errorf(400, "ValidationError", "1 validation error detected: Value '%d' at '%s' failed to satisfy constraint: Member must have value less than or equal to %d", n, lowerFirst(name), most)
	}
	return n, nil
}

// oneOf refuses a text that is given and none of those named.
func oneOf(v wire.Values, name string, texts ...string) error {
	if v.Has(name) && !slices.Contains(texts, v.Get(name)) {
		return cloud.Errorf(400, "ValidationError", "1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: Member must satisfy enum value set: [%s]",
			v.Get(name), lowerFirst(name), strings.Join(texts, ", "))
	}
	return nil
}

func lowerFirst(s string) string {
	return string(s[0]|0x20) + s[1:]
}

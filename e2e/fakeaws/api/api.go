// Package api are the operations of the fake's services: each reads its parameters, asks or changes the cloud, and answers in the shape of the service.
package api

import (
	"context"
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
			return cloud.Errorf(400, "ValidationError", "1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", lowerFirst(name))
		}
	}
	return nil
}

func lowerFirst(s string) string {
	return string(s[0]|0x20) + s[1:]
}

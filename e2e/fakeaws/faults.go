package fakeaws

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
)

// Fault makes calls slow, or fail. Empty fields of its first part match every call.
type Fault struct {
	Service   string `json:"service,omitempty"`
	Operation string `json:"operation,omitempty"`
	Group     string `json:"group,omitempty"`
	AccessKey string `json:"accessKey,omitempty"`

	// Latency is waited before the call is carried out.
	Latency Duration `json:"latency,omitempty"`
	// Code is the error that is sent in place of carrying out the call: ResourceContention, Throttling, InternalFailure, ServiceUnavailable,
	// ScalingActivityInProgress, or any other with a Status and Message of its own. "" carries it out.
	Code    string `json:"code,omitempty"`
	Status  int    `json:"status,omitempty"`
	Message string `json:"message,omitempty"`
	// Stale lets calls that describe, and only they, be answered with what was so up to so long ago, at random, for each call anew: reads of AWS lag behind its
	// writes, and go back and forth. What was before the fault was injected is not known. Seed makes the draw repeat.
	// https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html
	Stale Duration `json:"stale,omitempty"`
	Seed  uint64   `json:"seed,omitempty"`
	// LoseReply carries the call out and then breaks the connection.
	LoseReply bool `json:"loseReply,omitempty"`
	// Count is how many calls it hits; 0 means all until it is removed. Skip lets so many pass before.
	Count int `json:"count,omitempty"`
	Skip  int `json:"skip,omitempty"`
}

// Throttle is a token bucket: calls that find it empty are throttled. Empty fields match every call, all in the one bucket, as Auto Scaling has it.
type Throttle struct {
	Service   string  `json:"service,omitempty"`
	Operation string  `json:"operation,omitempty"`
	PerSecond float64 `json:"perSecond"`
	Burst     int     `json:"burst"`
}

type bucket struct {
	Throttle
	tokens float64
	filled time.Time
}

// faults are those in force.
type faults struct {
	mu      sync.Mutex
	faults  []*armed
	buckets []*bucket
	next    int
}

type armed struct {
	id int
	Fault
	hit, seen int
	dice      *rand.Rand // of Stale
}

func newFaults() *faults { return &faults{} }

// Inject arms a fault and answers its number.
func (s *Server) Inject(f Fault) int {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.next++
	before := s.faults.memory()
	s.faults.faults = append(s.faults.faults, &armed{id: s.faults.next, Fault: f, dice: rand.New(rand.NewPCG(f.Seed, 0))})
	s.remember(before)
	return s.faults.next
}

// lag lets calls that describe lag behind, as the spec has it. That is no fault: it has no id, and is not taken back with all others.
func (s *Server) lag() {
	var most time.Duration
	_ = s.With(func(c *cloud.Cloud, _ time.Time) error { most = c.Lag(); return nil }) // Reading does not fail.
	if most == 0 {
		return
	}
	s.faults.faults = append(s.faults.faults, &armed{Fault: Fault{Stale: Duration(most)}, dice: rand.New(rand.NewPCG(0, 0))})
	s.remember(0)
}

// memory is how far back the faults in force let calls look.
func (f *faults) memory() time.Duration {
	var most time.Duration
	for _, a := range f.faults {
		most = max(most, time.Duration(a.Stale))
	}
	return most
}

// remember lets the cloud keep as much of its past as faults need now.
func (s *Server) remember(before time.Duration) {
	if now := s.faults.memory(); now != before {
		s.live.Remember(now)
	}
}

// RemoveFault takes a fault back; 0 takes all back.
func (s *Server) RemoveFault(id int) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	before := s.faults.memory()
	s.faults.faults = slices.DeleteFunc(s.faults.faults, func(a *armed) bool { return a.id != 0 && (id == 0 || a.id == id) })
	s.remember(before)
}

// SetThrottles replaces the token buckets; none means no throttling.
func (s *Server) SetThrottles(throttles ...Throttle) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.buckets = nil
	for _, t := range throttles {
		s.faults.buckets = append(s.faults.buckets, &bucket{Throttle: t, tokens: float64(t.Burst), filled: time.Now()})
	}
}

// verdict is what becomes of a call.
type verdict struct {
	wait time.Duration
	err  *cloud.Error
	lose bool
	age  time.Duration // of what is answered
}

// judge decides what becomes of a call: throttled, forbidden if that says so, or hit by the faults that match it.
func (f *faults) judge(c Call, forbidden *cloud.Error, now time.Time) verdict {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.buckets {
		if matchesCall(b.Service, c.Service) && matchesCall(b.Operation, c.Operation) && !b.take(now) {
			return verdict{err: throttled(c.Service)}
		}
	}
	if forbidden != nil {
		return verdict{err: forbidden}
	}
	var v verdict
	for _, a := range f.faults {
		if !a.hits(c) {
			continue
		}
		v.wait += time.Duration(a.Latency)
		v.lose = v.lose || a.LoseReply
		if a.Stale > 0 {
			v.age = max(v.age, time.Duration(a.dice.Int64N(int64(a.Stale)+1)))
		}
		if a.Code != "" && v.err == nil {
			v.err = a.error(c.Service)
		}
	}
	return v
}

func (b *bucket) take(now time.Time) bool {
	b.tokens = min(float64(b.Burst), b.tokens+now.Sub(b.filled).Seconds()*b.PerSecond)
	b.filled = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

func matchesCall(want, have string) bool { return want == "" || want == have }

func (a *armed) hits(c Call) bool {
	if !matchesCall(a.Service, c.Service) || !matchesCall(a.Operation, c.Operation) || !matchesCall(a.AccessKey, c.AccessKey) ||
		!matchesCall(a.Group, c.Params["AutoScalingGroupName"]) {
		return false
	}
	if a.Stale > 0 && !strings.HasPrefix(c.Operation, "Describe") {
		return false
	}
	a.seen++
	if a.seen <= a.Skip || a.Count > 0 && a.hit >= a.Count {
		return false
	}
	a.hit++
	return true
}

// knownErrors are errors whose status and text the fake knows.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/CommonErrors.html
var knownErrors = map[string]cloud.Error{
	"ResourceContention": {Status: 500, Message: "You already have a pending update to an Amazon EC2 Auto Scaling resource (for example, an Auto Scaling group, instance, or load balancer)."},
	"InternalFailure":    {Status: 500, Message: "We encountered an internal error. Please try again."},
	"InternalError":      {Status: 500, Message: "An internal error has occurred"},
	"ServiceUnavailable": {Status: 503, Message: "The request has failed due to a temporary failure of the server."},
	"Unavailable":        {Status: 503, Message: "The service is unavailable. Please try again shortly."},
	"ExpiredToken":       {Status: 403, Message: "The security token included in the request is expired"},
	"InvalidClientTokenId": {
		Status: 403, Message: "The security token included in the request is invalid.",
	},
	"ScalingActivityInProgress": {Status: 400, Message: "Scaling activity 00000000-0000-0000-0000-000000000000 is in progress and blocks this action"},
	"IdempotentCallInProgress":  {Status: 500, Message: "A request with the same client token is in progress"},
}

func (a *armed) error(service string) *cloud.Error {
	if a.Code == "Throttling" && a.Message == "" {
		return throttled(service)
	}
	known := knownErrors[a.Code]
	return &cloud.Error{
		Code: a.Code, Status: cmp.Or(a.Status, known.Status, http.StatusBadRequest), Message: cmp.Or(a.Message, known.Message, fmt.Sprintf("injected %s", a.Code)),
	}
}

// throttled is what each service answers to too many calls.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/throttling.html
func throttled(service string) *cloud.Error {
	switch service {
	case "ec2":
		return cloud.Errorf(http.StatusServiceUnavailable, "RequestLimitExceeded", "Request limit exceeded.")
	case "eks":
		return cloud.Errorf(http.StatusTooManyRequests, "ThrottlingException", "Rate exceeded")
	}
	return cloud.Errorf(http.StatusBadRequest, "Throttling", "Rate exceeded")
}

package fakeaws

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"windlass.dev/windlass/e2e/fakeaws/metadata"
)

// Call is one request that was answered.
type Call struct {
	// Seq numbers the calls from 1, in the order in which they were answered.
	Seq int64 `json:"seq"`
	// Time is when the call came in, Took how long its answer took.
	Time      time.Time         `json:"time"`
	Took      time.Duration     `json:"took"` // nanoseconds in JSON
	Service   string            `json:"service"`
	Operation string            `json:"operation"` // of imds: the method and the path
	Params    map[string]string `json:"params,omitempty"`
	// Instance is whose metadata service was asked.
	Instance  string `json:"instance,omitempty"`
	AccessKey string `json:"accessKey,omitempty"`
	UserAgent string `json:"userAgent,omitempty"`
	RequestID string `json:"requestID,omitempty"`
	Status    int    `json:"status"`
	// Error is the code of the error that was answered.
	Error   string `json:"error,omitempty"`
	Message string `json:"message,omitempty"`
	// Lacks is the right that the caller's policy does not grant, with the resource.
	Lacks string `json:"lacks,omitempty"`
}

// String shows the call in one line.
func (c Call) String() string {
	var params []string
	for k, v := range c.Params {
		params = append(params, k+"="+v)
	}
	slices.Sort(params)
	text := fmt.Sprintf("%s %s.%s(%s) %d", c.Time.UTC().Format("15:04:05.000"), c.Service, c.Operation, strings.Join(params, " "), c.Status)
	if c.Error != "" {
		text += " " + c.Error
	}
	return text
}

// Match chooses calls.
type Match func(Call) bool

// Operation matches calls of an AWS operation.
func Operation(name string) Match { return func(c Call) bool { return c.Operation == name } }

// Service matches calls of a service: autoscaling, ec2, eks, sts or imds.
func Service(name string) Match { return func(c Call) bool { return c.Service == name } }

// ForGroup matches calls that name a group.
func ForGroup(name string) Match {
	return func(c Call) bool { return c.Params["AutoScalingGroupName"] == name }
}

// ForInstance matches calls that name an instance, and those to its metadata service.
func ForInstance(id string) Match {
	return func(c Call) bool {
		if c.Instance == id || c.Params["InstanceId"] == id {
			return true
		}
		for key, value := range c.Params {
			if value == id && (strings.HasPrefix(key, "InstanceIds.member.") || strings.HasPrefix(key, "InstanceId.")) {
				return true
			}
		}
		return false
	}
}

// Param matches calls with a parameter of the given value.
func Param(name, value string) Match { return func(c Call) bool { return c.Params[name] == value } }

// After matches calls answered after the one numbered seq.
func After(seq int64) Match { return func(c Call) bool { return c.Seq > seq } }

// Since matches calls that came in at or after a time.
func Since(t time.Time) Match { return func(c Call) bool { return !c.Time.Before(t) } }

// Succeeded matches calls answered without an error.
func Succeeded(c Call) bool { return c.Error == "" && c.Status < 300 }

// Failed matches calls answered with an error of the given code; "" matches every error.
func Failed(code string) Match {
	return func(c Call) bool { return c.Error != "" && (code == "" || c.Error == code) }
}

// Mutating matches calls that change something.
func Mutating(c Call) bool {
	if c.Service != "autoscaling" && c.Service != "ec2" {
		return false
	}
	return !strings.HasPrefix(c.Operation, "Describe") && !strings.HasPrefix(c.Operation, "Get")
}

// callLog keeps calls, and wakes who waits for one.
type callLog struct {
	mu      sync.Mutex
	most    int
	calls   []Call
	seq     int64
	changed chan struct{} // closed at the next call
}

func newCallLog(most int) *callLog {
	return &callLog{most: most, changed: make(chan struct{})}
}

func (l *callLog) add(c Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	c.Seq = l.seq
	if len(l.calls) == l.most {
		l.calls = slices.Delete(l.calls, 0, max(1, l.most/10))
	}
	l.calls = append(l.calls, c)
	close(l.changed)
	l.changed = make(chan struct{})
}

// find are the calls numbered above seq that meet every match, oldest first; the number of the newest call; and what is closed when there is another one.
func (l *callLog) find(seq int64, matches []Match) ([]Call, int64, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	start, _ := slices.BinarySearchFunc(l.calls, seq+1, func(c Call, n int64) int { return cmp.Compare(c.Seq, n) })
	var found []Call
	for _, c := range l.calls[start:] {
		if all(c, matches) {
			found = append(found, c)
		}
	}
	return found, l.seq, l.changed
}

func all(c Call, matches []Match) bool {
	for _, m := range matches {
		if !m(c) {
			return false
		}
	}
	return true
}

// Calls are the calls that meet every match, oldest first.
func (s *Server) Calls(matches ...Match) []Call {
	found, _, _ := s.calls.find(0, matches)
	return found
}

// LastSeq is the number of the newest call, for After.
func (s *Server) LastSeq() int64 {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	return s.calls.seq
}

// WaitCall waits for the first call that meets every match; one that is in the log already is answered at once.
func (s *Server) WaitCall(ctx context.Context, matches ...Match) (Call, error) {
	found, err := s.WaitCalls(ctx, 1, matches...)
	if err != nil {
		return Call{}, err
	}
	return found[0], nil
}

// WaitCalls waits until n calls meet every match and answers them, oldest first.
func (s *Server) WaitCalls(ctx context.Context, n int, matches ...Match) ([]Call, error) {
	var (
		found []Call
		seen  int64
	)
	for {
		more, newest, changed := s.calls.find(seen, matches)
		found, seen = append(found, more...), newest
		if len(found) >= n {
			return found, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %d calls, have %d: %w", n, len(found), ctx.Err())
		case <-s.live.Done():
			return nil, fmt.Errorf("waiting for %d calls, have %d: the server was closed", n, len(found))
		}
	}
}

// ForgetCalls empties the call log; numbers go on.
func (s *Server) ForgetCalls() {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	s.calls.calls = nil
}

func imdsCall(id string, r metadata.Request) Call {
	return Call{Time: r.At, Service: "imds", Operation: r.Method + " " + r.Path, Instance: id, Status: r.Status}
}

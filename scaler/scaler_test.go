package main

import (
	"errors"
	"testing"
	"time"
)

// A reading that grows old without a failure is trouble too: the calls hang.
func TestReadingTrouble(t *testing.T) {
	failed := errors.New("AWS is away")
	for _, tc := range []struct {
		age  time.Duration
		err  error
		want string
	}{
		{0, nil, ""}, {30 * time.Second, nil, ""}, {time.Second, failed, "AWS is away"},
		{5 * time.Minute, failed, "AWS is away"}, {5 * time.Minute, nil, "the groups were last read 5m0s ago"},
	} {
		if got := textOf(readingTrouble(tc.age, tc.err)); got != tc.want {
			t.Errorf("age %s, %v: %q, want %q", tc.age, tc.err, got, tc.want)
		}
	}
}

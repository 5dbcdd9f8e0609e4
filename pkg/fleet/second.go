package fleet

import (
	"math"
	"time"
)

// Second is a moment as Kubernetes dates its objects: to the second, in UTC. Zero is never. It takes a
// sixth of the memory of a time.Time, and there may be a million pods.
type Second uint32

// SecondOf is the second of a moment. No object is from before 1970. A deletionTimestamp may be after
// February 2106, where a pod has 80 years to end: both are taken for the first or the last second.
func SecondOf(t time.Time) Second {
	if t.IsZero() {
		return 0
	}
	return Second(min(max(t.Unix(), 1), math.MaxUint32))
}

// IsZero reports whether it is never.
func (s Second) IsZero() bool { return s == 0 }

// Time is the moment, and the zero time for never.
func (s Second) Time() time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(int64(s), 0).UTC()
}

func (s Second) String() string { return s.Time().String() }

// MarshalText writes it as Kubernetes does.
func (s Second) MarshalText() ([]byte, error) { return s.Time().MarshalText() }

// UnmarshalText reads what MarshalText writes.
func (s *Second) UnmarshalText(text []byte) error {
	var t time.Time
	if err := t.UnmarshalText(text); err != nil {
		return err
	}
	*s = SecondOf(t)
	return nil
}

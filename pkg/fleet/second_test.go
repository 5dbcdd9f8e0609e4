package fleet

import (
	"math"
	"testing"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
)

func TestSecondOf(t *testing.T) {
	east := time.FixedZone("east", 3600)
	for _, c := range []struct {
		of, want time.Time
	}{
		{},
		{time.Date(2025, 1, 1, 11, 0, 0, 999_999_999, east), time.Date(2025, 1, 1, 10, 0, 0, 0, time.UTC)},
		{time.Date(1969, 12, 31, 23, 0, 0, 0, time.UTC), time.Unix(1, 0).UTC()},
		{time.Unix(0, 0), time.Unix(1, 0).UTC()},
		{time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(math.MaxUint32, 0).UTC()},
	} {
		s := SecondOf(c.of)
		if got := s.Time(); got != c.want || s.IsZero() != c.of.IsZero() {
			t.Errorf("%s is %s, want %s", c.of, got, c.want)
		}
		text, err := s.MarshalText()
		if err != nil || string(text) != c.want.Format(time.RFC3339) {
			t.Errorf("%s is written as %s, %v", c.of, text, err)
		}
		var back Second
		if err := back.UnmarshalText(text); err != nil || back != s {
			t.Errorf("%s was %d and is read as %d, %v", text, s, back, err)
		}
	}
	var s Second
	if err := s.UnmarshalText([]byte("yesterday")); err == nil {
		t.Errorf("yesterday is read as %s", s)
	}
}

func TestPhaseOf(t *testing.T) {
	for _, p := range []corev1.PodPhase{"", corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown} {
		var back Phase
		if err := back.UnmarshalText([]byte(p)); err != nil || back.String() != string(p) {
			t.Errorf("%q is read as %q, %v", p, back, err)
		}
	}
	if got := PhaseOf("Resting"); got != PodUnknown {
		t.Errorf("a phase of the future is %s", got)
	}
}

// What few pods have is theirs alone: a copy of a pod shares it until it is changed.
func TestRare(t *testing.T) {
	a := Pod{}
	a.Nominate("n1")
	b := a
	b.Nominate("n2")
	b.Allocate(corev1.ResourceList{})
	if a.Nominated() != "n1" || a.Allocated() != nil || b.Nominated() != "n2" || b.Allocated() == nil {
		t.Errorf("%+v, %+v", a.Rare, b.Rare)
	}
	if a.Nominate(""); a.Rare != nil {
		t.Errorf("a pod with nothing rare has %+v", a.Rare)
	}
}

// A scaler holds every pod: one that takes more than 128 bytes, which is a class of Go's allocator,
// takes 144.
func TestPodIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Pod{}); size > 128 {
		t.Errorf("a Pod takes %d bytes", size)
	}
}

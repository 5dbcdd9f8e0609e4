package observe

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/pkg/fleet"
)

// An outage begins with the first that is not seen as it comes: with a list that does not come that is when it
// was asked for, though it shows later, and where nothing was heard before nobody knows.
func TestAnOutageBeginsWithTheFirst(t *testing.T) {
	start, away := time.Unix(1000, 0).UTC(), errors.New("away")
	for _, c := range []struct {
		about string
		heard []string
		want  time.Time
	}{
		{"both were heard of", []string{"nodes", "pods"}, start},
		{"the list never came before", []string{"nodes"}, start.Add(10 * time.Second)},
		{"nothing was heard of", nil, time.Time{}},
		{"what broke first was not heard of", []string{"pods"}, time.Time{}},
	} {
		now := start
		o := outage{now: func() time.Time { return now }}
		for _, what := range c.heard {
			o.heard(what, nil)
		}
		o.asks("pods")
		now = start.Add(10 * time.Second)
		o.heard("nodes", away)
		now = start.Add(listWithin + time.Second)
		if diff := cmp.Diff([]fleet.Outage{{From: c.want, Until: now}}, o.latest(now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.about, diff)
		}
	}
}

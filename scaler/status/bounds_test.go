package status

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/statuspage"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// configMapLimit is the most bytes that the API server takes.
const configMapLimit = 1 << 20

// givenUp are so many nodes that were given up, each for a cause of so many bytes.
func givenUp(nodes, bytes int) map[string]fleet.BackOff {
	list := map[string]fleet.BackOff{}
	for i := range nodes {
		list[fmt.Sprintf("i-%017d", i)] = fleet.BackOff{Until: time.Unix(1_700_000_000+int64(i), 0).UTC(), Count: 1, Cause: strings.Repeat("x", bytes)}
	}
	return list
}

// A state that is too large loses what costs least, and all of the rest is written; the
// next leader and this one go by the same.
func TestMemoryShedsWhatCostsLeast(t *testing.T) {
	client := fake.NewClientset()
	maps := client.CoreV1().ConfigMaps(ours)
	m := NewMemory(maps)
	large := state("web")
	large.GiveUps = givenUp(5_000, 256)
	got, err := m.Remember(t.Context(), large)
	if err != nil {
		t.Fatal(err)
	}
	kept := len(m.State().GiveUps)
	if diff := cmp.Diff(fleet.Shed{"giveUps": 5_000 - kept}, got.Shed); diff != "" || kept == 0 {
		t.Errorf("%d kept: %s", kept, diff)
	}
	if got.Bytes > mostState || got.Bytes < mostState*9/10 {
		t.Errorf("%d bytes are written", got.Bytes)
	}
	next := NewMemory(maps)
	if err := next.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !fleet.Equal(next.State(), m.State()) || !fleet.Equal(next.State().GrownAt, large.GrownAt) {
		t.Error("the next leader goes by something else")
	}
	// The same state again is not another one.
	before := len(client.Actions())
	if _, err := m.Remember(t.Context(), large); err != nil || len(client.Actions()) != before {
		t.Errorf("%d calls more, error %v", len(client.Actions())-before, err)
	}
}

// A state that the API server refuses is not persisted, and the error names what of it
// differs from what is written. This process may go by it all the same, and it is written as
// soon as that works.
func TestMemoryRefused(t *testing.T) {
	for _, c := range []struct {
		reason string
		err    error
	}{
		{"forbidden", apierrors.NewForbidden(corev1.Resource("configmaps"), contract.ConfigMapState, errors.New("no right"))},
		{"too large", apierrors.NewRequestEntityTooLargeError("limit is 3145728")},
		{"a webhook says no", apierrors.NewBadRequest("denied")},
		{"away", errors.New("connection refused")},
	} {
		t.Run(c.reason, func(t *testing.T) {
			client := fake.NewClientset()
			refused := false
			client.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return refused, nil, c.err })
			m := NewMemory(client.CoreV1().ConfigMaps(ours))
			if _, err := m.Remember(t.Context(), state("web")); err != nil {
				t.Fatal(err)
			}
			refused = true
			next := state("web")
			next.Heartbeats = map[string]time.Time{"i-1/h": time.Unix(1_700_000_000, 0).UTC()}
			_, err := m.Remember(t.Context(), next)
			var unwritten *UnwrittenError
			if !errors.As(err, &unwritten) || !slices.Equal(unwritten.Parts, []string{"heartbeats"}) || !errors.Is(err, c.err) || errors.Is(err, ErrOthers) {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(state("web"), m.State()); diff != "" {
				t.Error(diff)
			}
			m.Keep(next)
			refused = false
			if got, err := m.Remember(t.Context(), m.State()); err != nil || got.Bytes == 0 {
				t.Errorf("what was kept is not written when it can be: %+v, %v", got, err)
			}
		})
	}
}

// The page has room in its ConfigMap whatever agents write on their nodes, also what YAML
// has to spell out, and whatever the trouble is.
func TestPageHasRoomWhateverNodesSay(t *testing.T) {
	for _, said := range []string{"x", "\x00\x1b", "\n", "\"\\", "💥", "\ufeff"} {
		long := strings.Repeat(said, 200<<10/len(said))
		var s fleet.Snapshot
		var verdicts []*verdict.Verdict
		for i := range 500 {
			name := fmt.Sprintf("n%d", i)
			s.Nodes = append(s.Nodes, fleet.Node{Name: name})
			s.Faults = append(s.Faults, long)
			verdicts = append(verdicts, &verdict.Verdict{Of: verdict.OfNode, Name: name, Reason: verdict.Reason(fmt.Sprint("R", i%40)), Details: verdict.Quote(long)})
		}
		page := NewPage(s, plan.Plan{Verdicts: verdicts, Actions: []action.Action{action.CancelDrain{Node: action.NodeRef{Name: "n1"}, Why: long}}}, nil)
		page.Trouble = strings.Repeat(said, configMapLimit)
		text, err := page.Encode()
		if err != nil || len(text) > statuspage.MaxBytes {
			t.Errorf("%q: %d bytes, error %v", said, len(text), err)
		}
	}
}

package notice_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
)

const instance = "i-1"

var noon = time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC)

// The order of the list is the order of strength, whatever the order in which
// the notices came.
func TestStanding(t *testing.T) {
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	terminate := contract.TerminateID(instance)
	spotLate := notice.Notice{ID: "spot:a", Kind: contract.KindSpot, Deadline: at(3)}
	spotEarly := notice.Notice{ID: "spot:b", Kind: contract.KindSpot, Deadline: at(2)}
	seen := notice.Notice{ID: terminate, Kind: contract.KindASG, Source: notice.FromTargetState, Reason: "seen"}
	asked := notice.Notice{ID: terminate, Kind: contract.KindASG, Source: notice.FromRequest, Deadline: at(9), By: "scaler"}
	down := notice.Notice{ID: "down", Kind: contract.KindScaleDown}
	people := notice.Notice{ID: "people", Kind: contract.KindRequest, Deadline: at(1)}
	other := notice.Notice{ID: "other", Kind: contract.KindRequest}

	want := []notice.Notice{spotEarly, spotLate,
		{ID: terminate, Kind: contract.KindASG, Source: notice.FromRequest, Reason: "seen", By: "scaler", Deadline: at(9)},
		down, people, other}
	in := []notice.Notice{other, asked, spotLate, people, seen, spotEarly, down}
	for turn := range in {
		turned := append(append([]notice.Notice(nil), in[turn:]...), in[:turn]...)
		if diff := cmp.Diff(want, notice.Standing(turned...)); diff != "" {
			t.Errorf("turned by %d:\n%s", turn, diff)
		}
	}
	if diff := cmp.Diff(want, notice.Standing(append(in, in...)...)); diff != "" {
		t.Errorf("each twice:\n%s", diff)
	}
	if diff := cmp.Diff([]string{terminate, "down", "other", "people", "spot:a", "spot:b"}, notice.IDs(in)); diff != "" {
		t.Error(diff)
	}
}

// What the metadata and the scaler say of one termination is one notice: asked
// for, with the scaler's deadline, and it changes nothing which is seen first.
func TestStandingMergesTheScalersWord(t *testing.T) {
	for _, tc := range []struct{ id, state string }{
		{contract.TerminateID(instance), "Terminated"},
		{contract.TerminateID(instance), "Warmed:Terminated"},
		{contract.WarmID(instance), "Warmed:Stopped"},
	} {
		seen, err := notice.ParseTargetState(instance, tc.state)
		if err != nil {
			t.Fatal(err)
		}
		asked, err := notice.ParseRequest(contract.Request{
			ID: tc.id, Kind: contract.KindASG, Reason: "terminating", By: "scaler",
			At: contract.At(noon), Deadline: contract.At(noon.Add(time.Minute)),
		}.String())
		if err != nil {
			t.Fatal(err)
		}
		want := []notice.Notice{{
			ID: tc.id, Cause: seen[0].Cause, Kind: contract.KindASG, Source: notice.FromRequest,
			Reason: "terminating", By: "scaler", At: noon, Deadline: noon.Add(time.Minute),
		}}
		for _, got := range [][]notice.Notice{notice.Standing(seen[0], asked), notice.Standing(asked, seen[0])} {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s:\n%s", tc.state, diff)
			}
		}
	}
}

// An event that the machine survives is over an hour after its announced end; one
// that takes the machine is not, however late it comes.
func TestOverAt(t *testing.T) {
	over := map[notice.Cause]time.Time{
		notice.InstanceReboot: noon.Add(time.Hour), notice.SystemReboot: noon.Add(time.Hour), notice.SystemMaintenance: noon.Add(time.Hour),
	}
	for _, c := range notice.Causes() {
		if got := (notice.Notice{Cause: c, NotAfter: noon}).OverAt(); !got.Equal(over[c]) {
			t.Errorf("%s, to noon: over at %s, want %s", c, got, over[c])
		}
		if got := (notice.Notice{Cause: c}).OverAt(); !got.IsZero() {
			t.Errorf("%s, without an end: over at %s", c, got)
		}
	}
}

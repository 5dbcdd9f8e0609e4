package happening

import (
	"strconv"
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// How long things are given before they count.
const (
	// joins is for how long after its last news a burst takes in more: two growths of a group
	// within it are one happening, and so are scale-downs.
	joins = 30 * time.Second
	// overdue is how long nodes may take to be Ready, counted from the last launch; the scaler
	// itself gives an instance 15 minutes to register and 15 to be Ready.
	overdue = 35 * time.Minute
	// holds is how long what may pass has to last to be worth a word, and misses how long it has
	// to be absent to be over.
	holds, misses = time.Minute, 2 * time.Minute
	// quiet is how long after the last Event of a failure or fault it is over.
	quiet = 30 * time.Minute
	// vanishes is how long a node that has no Node any more, or no request, is given for an Event
	// that says why.
	vanishes = time.Minute
	// most is how long anything lasts that is not seen.
	most = 7 * 24 * time.Hour
)

// Fold takes a world in. It changes nothing of the state that it is given.
func Fold(s State, w World) State {
	f := &fold{State: s.clone(), world: w, seen: map[string]bool{}}
	if f.Totals.Since.IsZero() {
		f.Totals.Since = w.Now
	}
	for _, e := range f.fresh() {
		f.event(e)
	}
	f.nodes()
	f.levels()
	f.endings()
	f.bound()
	return f.State
}

// fold is one world going in.
type fold struct {
	State
	world World
	// seen are the IDs of what lasts and stands in the world.
	seen map[string]bool
}

func (f *fold) event(e Event) {
	switch e.Reason {
	case contract.EventScaledUpGroup:
		f.grown(e)
	case contract.EventScaleUpFailed, contract.EventScaleUpTimedOut, contract.EventFailedToScaleUpGroup:
		f.launchFailed(e)
	case contract.EventScaleDown:
		f.scaleDown(e, Draining)
	case contract.EventScaleDownCancelled:
		f.scaleDown(e, Cancelled)
	case contract.EventTerminated:
		f.scaleDown(e, Terminated)
	case contract.EventNoticed, contract.EventDrainWaiting:
		f.noticed(e, Noticed)
	case contract.EventDrainStarted:
		f.noticed(e, Draining)
	case contract.EventDrained:
		f.ofNode(e, Drained)
	case contract.EventDrainFailed:
		f.ofNode(e, Failed)
	case contract.EventDrainUndone, contract.EventUncordoned:
		f.ofNode(e, Cancelled)
	case contract.EventNotConfined, contract.EventMetadataUnread, contract.EventStateShed, contract.EventActionFailed, contract.EventBadRequest, contract.EventDeleteUnregistered, contract.EventOutOfService:
		f.faultEvent(e)
	}
}

// begin adds a happening, numbered so that none ever has the ID of another.
func (f *fold) begin(h Happening) *Happening {
	if len(f.Happenings) >= 2*mostHappenings {
		f.bound() // what comes with one world may be any number
	}
	f.Serial++
	h.ID = string(h.Kind) + "-" + strconv.FormatInt(f.Serial, 10) + "-" + hash(h.Subject, h.Began.UTC().Format(time.RFC3339Nano))
	h.Revision, h.Count, h.Last = 1, max(h.Count, 1), h.Began
	h.Members, h.Absent = cloned(h.Members), cloned(h.Absent)
	f.Happenings = append(f.Happenings, h)
	if !h.Hidden {
		f.begun(&h)
	}
	return &f.Happenings[len(f.Happenings)-1]
}

// begun counts what people are to see.
func (f *fold) begun(h *Happening) {
	f.Totals.Begun[h.Kind]++
	if h.Kind == Interruption {
		f.Totals.Notices[h.Notice]++
	}
}

// endings ends what is over by now.
func (f *fold) endings() {
	now := f.world.Now
	for i := range f.Happenings {
		h := &f.Happenings[i]
		if h.Over() {
			continue
		}
		switch {
		case h.Kind == ScaleUp:
			f.risen(h)
		case h.Kind == ScaleDown:
			f.fallen(h)
		case h.Kind == LaunchFailed && now.After(latest(h.Last, h.Until).Add(quiet)), h.isEventFault() && now.After(h.Last.Add(quiet)):
			h.end(Over, now)
		}
		if !h.Over() && !f.seen[h.ID] && now.After(h.Last.Add(most)) {
			h.end(Over, now)
		}
	}
}

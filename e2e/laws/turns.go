package laws

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// turn is what stands on a Node about a drain that waits for its turn.
type turn struct {
	report         contract.Report
	permit, notYet string
	// told is when the scaler last said that it is not the drain's turn.
	told time.Time
}

// Turns finds drains without hurry that began though the scaler had just said that it is
// not their turn: without a permit, with nothing new that makes them urgent, and with their
// deadline, if there is one, further away than this. It is law 17 as far as agents keep it.
func Turns(audit []Request) []string {
	const near = 15 * time.Minute
	var breaches []string
	turns := map[string]*turn{}
	for _, a := range audit {
		notes := a.RequestObject.Metadata.Annotations
		if a.ObjectRef.Resource != "nodes" || a.ObjectRef.Subresource != "" || a.ResponseStatus.Code != http.StatusOK || len(notes) == 0 {
			continue
		}
		if turns[a.ObjectRef.Name] == nil {
			turns[a.ObjectRef.Name] = &turn{}
		}
		t, at := turns[a.ObjectRef.Name], a.RequestReceivedTimestamp
		if value, written := notes[contract.AnnotationDrainReport]; written {
			report, _ := contract.ParseReport(value) // one that is taken away is no report
			was := t.report
			due := t.told.Add(time.Duration(was.PermitWait) * time.Second)
			far := report.Deadline.IsZero() || report.Deadline.Sub(at) > near
			if begins(was, report) && far && t.notYet == was.Wants && t.permit != was.Wants && at.Before(due) {
				breaches = append(breaches, fmt.Sprintf("the drain of %s began at %s without its permit, and the scaler had said at %s that it is not its turn",
					a.ObjectRef.Name, at.Format("15:04:05.000"), t.told.Format("15:04:05.000")))
			}
			t.report = report
		}
		if value, written := notes[contract.AnnotationDrainPermit]; written {
			t.permit = value
		}
		if value, written := notes[contract.AnnotationDrainNotYet]; written {
			word, _ := contract.ParseNotYet(value)
			t.notYet, t.told = word.ID, at
		}
	}
	return breaches
}

// begins reports whether a drain that waited for a permit has begun, for nothing else than what
// it waited for.
func begins(was, is contract.Report) bool {
	waited := was.Phase == contract.PhaseWaiting && was.Wants != ""
	moves := is.Phase == contract.PhaseDraining || is.Phase == contract.PhaseBlocked
	more := slices.ContainsFunc(is.Answers, func(id string) bool { return !was.AnswersTo(id) })
	return waited && moves && is.Kind == was.Kind && !more
}

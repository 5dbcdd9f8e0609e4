package drain

import (
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// correctDates makes now of every moment of ours that is to come: it was read from a
// clock that has been set right since. The Node is dated anew as soon as it can be
// written; until then Unwritten keeps what the moment was first taken for.
func (d *decision) correctDates() {
	now := contract.At(d.Now)
	if d.Unwritten != nil {
		unwritten := *d.Unwritten
		correct(&unwritten, now)
		d.Unwritten = &unwritten
	}
	if d.old != nil {
		d.misdated = correct(d.old, now)
	}
	if d.mark != nil && d.mark.At.After(d.Now) {
		d.mark.At = contract.Time{} // the report dates the drain better than now does
	}
	for i := range d.served {
		correctDate(&d.served[i].At, now)
	}
	correctNoted(d.noted, d.Now)
}

func correctNoted(list contract.NoticedList, now time.Time) {
	for i := range list {
		if at := &list[i].At; at.After(now) {
			*at = contract.Time{} // what the report says of it is the better date
		}
	}
}

// correct the dates of a report, and say whether that was needed. Its deadline is
// others' word, or reckoned from the rest.
func correct(r *contract.Report, now contract.Time) (misdated bool) {
	for _, at := range []*contract.Time{&r.Since, &r.Renewed, &r.Excluded, &r.Emptied} {
		misdated = correctDate(at, now) || misdated
	}
	return misdated
}

func correctDate(at *contract.Time, now contract.Time) (misdated bool) {
	misdated = at.After(now.Time)
	if misdated {
		*at = now
	}
	return misdated
}

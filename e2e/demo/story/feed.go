package story

import "time"

// Happening is something that happened, once or to several alike.
type Happening struct {
	At      time.Time `json:"at"`
	By      string    `json:"by"`
	Subject string    `json:"subject,omitempty"`
	// More counts the further subjects that it happened to.
	More int    `json:"more,omitempty"`
	Text string `json:"text"`
}

// feed keeps the last happenings, the oldest first.
type feed struct {
	last []Happening
	// dropped counts those that were forgotten, so that a place in the feed
	// has a number for good.
	dropped int
}

const (
	feedKept = 200
	// alike happenings this close are told as one.
	feedWindow = 3 * time.Second
)

func (f *feed) add(h Happening) {
	for i := len(f.last) - 1; i >= 0 && h.At.Sub(f.last[i].At) <= feedWindow; i-- {
		if was := &f.last[i]; was.By == h.By && was.Text == h.Text && h.Subject != "" && was.Subject != "" {
			if was.Subject != h.Subject {
				was.More++
			}
			return
		}
	}
	f.last = append(f.last, h)
	if surplus := len(f.last) - feedKept; surplus > 0 {
		f.last = f.last[surplus:]
		f.dropped += surplus
	}
}

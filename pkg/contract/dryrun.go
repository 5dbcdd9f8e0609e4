package contract

import (
	"encoding/json"
	"fmt"
)

// DryRun is the value of AnnotationDryRun: what the agent would do if it were let.
type DryRun struct {
	// Would is what it would do to the node and its pods, in words.
	Would []string `json:"would,omitempty"`
	// Report is the one that it would write; nil where no drain would be on.
	Report *Report `json:"report,omitempty"`
	// Notices and Served are the memory of notices that it would keep on the Node, where
	// another stands there, or none.
	Notices NoticedList `json:"notices,omitempty"`
	Served  ServedList  `json:"served,omitempty"`
}

// mostDryRun is the most bytes of one: as many as of all that it stands for.
const mostDryRun = 3 * mostReport

// ParseDryRun reads the annotation's value; an empty value is nothing to do.
func ParseDryRun(value string) (DryRun, error) {
	var r DryRun
	if value == "" {
		return r, nil
	}
	if err := tooLong(AnnotationDryRun, len(value), mostDryRun, "bytes"); err != nil {
		return DryRun{}, err
	}
	if err := json.Unmarshal([]byte(value), &r); err != nil {
		return DryRun{}, fmt.Errorf("%s %s is not valid JSON: %w", AnnotationDryRun, quoted(value), err)
	}
	if err := r.Notices.bound(); err != nil {
		return DryRun{}, err
	}
	if r.Report == nil {
		return r, nil
	}
	return r, r.Report.bound()
}

// String prints the annotation's value; empty where there is nothing to do.
func (r DryRun) String() string {
	if r.Report == nil && len(r.Would)+len(r.Notices)+len(r.Served) == 0 {
		return ""
	}
	if r.Report != nil {
		report := r.Report.fit()
		r.Report = &report
	}
	r.Notices = r.Notices.fit()
	return encode(r)
}

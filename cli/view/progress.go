package view

import (
	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
)

// Progress is how far the drain is that somebody asked for by a request.
type Progress struct {
	Drain
	// Ended says that there is nothing to wait for any more; Failed why that is no success.
	Ended  bool   `json:"ended"`
	Failed string `json:"failed,omitempty"`
}

// Gone is the phase of a node that is there no more.
const Gone contract.Phase = "Gone"

// ProgressOf reads a node; nil is one that is gone.
func ProgressOf(name, id string, n *corev1.Node) Progress {
	if n == nil {
		return Progress{Drain: Drain{Node: name, Phase: Gone, Uncounted: true}, Ended: true}
	}
	d, _ := drainOf(n, "")
	p := Progress{Drain: d}
	request, err := contract.ParseRequest(n.Annotations[contract.AnnotationDrainRequest])
	if err != nil || request.ID != id {
		p.Ended, p.Failed = true, "the request was removed"
		return p
	}
	report, err := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport])
	if err != nil || !report.AnswersTo(id) {
		p.Phase, p.Left, p.Uncounted, p.BlockedBy = Unanswered, 0, true, nil
		return p
	}
	switch report.Phase {
	case contract.PhaseDrained:
		p.Ended = true
	case contract.PhaseFailed:
		p.Ended, p.Failed = true, report.Message
	}
	return p
}

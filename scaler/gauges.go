package main

import (
	"maps"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// gauges is a gauge for each of some values of labels. It is set all at once, so that a
// scrape never finds it empty.
type gauges struct {
	*prometheus.GaugeVec
	shown map[string][]string // the values of labels that are there now
}

func newGauges(name, help string, labels ...string) *gauges {
	return &gauges{GaugeVec: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "windlass", Name: name, Help: help}, labels)}
}

// sample is the value for some values of labels.
type sample struct {
	labels []string
	value  float64
}

// show shows these, and nothing else. Only the loop calls it.
func (g *gauges) show(samples []sample) {
	old := maps.Clone(g.shown)
	g.shown = make(map[string][]string, len(samples))
	for _, s := range samples {
		g.WithLabelValues(s.labels...).Set(s.value)
		key := strings.Join(s.labels, "\xff")
		g.shown[key] = s.labels
		delete(old, key)
	}
	for _, gone := range old {
		g.DeleteLabelValues(gone...)
	}
}

// showCounts shows how many there are of each.
func (g *gauges) showCounts(counts map[string]int) {
	samples := make([]sample, 0, len(counts))
	for label, n := range counts {
		samples = append(samples, sample{[]string{label}, float64(n)})
	}
	g.show(samples)
}

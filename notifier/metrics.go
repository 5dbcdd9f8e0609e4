package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"windlass.dev/windlass/notifier/happening"
)

// metrics are what Prometheus reads.
type metrics struct {
	registry *prometheus.Registry
	messages *prometheus.CounterVec
	lasting  *prometheus.GaugeVec
	leader   prometheus.Gauge
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "windlass_notifier_messages_total", Help: "tries to send a message, by what became of them: sent, failed and tried again, given up"}, []string{"service", "outcome"}),
		lasting:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "windlass_notifier_happenings", Help: "what lasts that people are notified of"}, []string{"kind"}),
		leader:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "windlass_notifier_leader", Help: "1 for the replica that sends, else 0"}),
	}
	m.registry.MustRegister(m.messages, m.lasting, m.leader)
	return m
}

func (m *metrics) sent(service, outcome string) {
	m.messages.WithLabelValues(service, outcome).Inc()
}

func (m *metrics) happenings(s happening.State) {
	counts := map[happening.Kind]int{}
	for i := range s.Happenings {
		if h := &s.Happenings[i]; !h.Over() && !h.Hidden {
			counts[h.Kind]++
		}
	}
	for _, kind := range happening.Kinds {
		m.lasting.WithLabelValues(string(kind)).Set(float64(counts[kind]))
	}
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

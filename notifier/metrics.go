package main

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"windlass.dev/windlass/notifier/config"
	"windlass.dev/windlass/notifier/happening"
	"windlass.dev/windlass/pkg/telemetry"
)

// metrics are what Prometheus reads.
type metrics struct {
	registry *prometheus.Registry
	messages *prometheus.CounterVec
	failing  *prometheus.GaugeVec
	lasting  *prometheus.GaugeVec
	leader   prometheus.Gauge
}

// What becomes of a try to send a message.
const (
	sent    = "sent"
	failed  = "failed"
	givenUp = "given up"
)

func newMetrics(services []config.Service) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "windlass_notifier_messages_total", Help: "tries to send a message, by what became of them: sent, failed and tried again, given up"}, []string{"service", "outcome"}),
		failing:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "windlass_notifier_failing_since_timestamp_seconds", Help: "when a service first did not take a message that it still has not answered for, in seconds since 1970; 0 where none waits for it"}, []string{"service"}),
		lasting:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "windlass_notifier_happenings", Help: "what lasts that people are notified of"}, []string{"kind"}),
		leader:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "windlass_notifier_leader", Help: "1 for the replica that sends, else 0"}),
	}
	m.registry.MustRegister(m.messages, m.failing, m.lasting, m.leader)
	// From 0 on: of a series that begins at 1, Prometheus counts no increase.
	for _, s := range services {
		for _, outcome := range []string{sent, failed, givenUp} {
			m.messages.WithLabelValues(s.Name, outcome)
		}
		m.fails(s.Name, time.Time{})
	}
	return m
}

// tried counts a try, and shows since when the service takes nothing.
func (m *metrics) tried(service, outcome string, since time.Time) {
	m.messages.WithLabelValues(service, outcome).Inc()
	m.fails(service, since)
}

// fails shows since when a service takes nothing; zero where it does, or is owed nothing.
func (m *metrics) fails(service string, since time.Time) {
	seconds := 0.0
	if !since.IsZero() {
		seconds = float64(since.Unix())
	}
	m.failing.WithLabelValues(service).Set(seconds)
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
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: telemetry.ScrapesAtOnce})
}

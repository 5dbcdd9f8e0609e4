package telemetry

import (
	"net/http"
	"time"
)

// ScrapesAtOnce is how many may read metrics at a time: each holds all of them until it has read, and any
// pod may ask.
const ScrapesAtOnce = 8

// NewServer returns one for metrics, health and short questions, in which who does not read keeps no place.
func NewServer(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
}

package monitoring

import (
	"fmt"
	"io"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
)

// Scrapes are samples of a program that ran, as Prometheus would have stored them.
type Scrapes struct {
	series map[string]*promql.Series
	// Last is when the latest was.
	Last time.Time
}

// ScrapeEvery is how far they are apart: as the PodMonitor has it, however fast a test is.
const ScrapeEvery = 30 * time.Second

// Add takes what an instance serves.
func (s *Scrapes) Add(instance string, served io.Reader) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(served)
	if err != nil {
		return fmt.Errorf("what %s serves: %w", instance, err)
	}
	if s.series == nil {
		s.series, s.Last = map[string]*promql.Series{}, time.Unix(0, 0)
	}
	s.Last = s.Last.Add(ScrapeEvery)
	at := model.TimeFromUnixNano(s.Last.UnixNano())
	for _, family := range families {
		samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: at}, family)
		if err != nil {
			return fmt.Errorf("what %s serves: %w", instance, err)
		}
		for _, sample := range samples {
			named := labels.NewBuilder(labels.EmptyLabels()).Set("instance", instance)
			for name, value := range sample.Metric {
				named.Set(string(name), string(value))
			}
			key := named.Labels().String()
			if s.series[key] == nil {
				s.series[key] = &promql.Series{Metric: named.Labels()}
			}
			s.series[key].Floats = append(s.series[key].Floats, promql.FPoint{T: int64(at), F: float64(sample.Value)})
		}
	}
	return nil
}

// Memory is what the engine reads of them.
func (s *Scrapes) Memory() Memory {
	all := Memory{}
	for key, series := range s.series {
		all[key] = promql.NewStorageSeries(*series)
	}
	return all
}

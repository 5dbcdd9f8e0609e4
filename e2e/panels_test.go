package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"windlass.dev/windlass/manifests/monitoring"
)

// takeScrape takes what a program serves, as Prometheus would half a minute after the one before:
// scrape scaler N|leader.
func (s *session) takeScrape(_ *testscript.TestScript, neg bool, args []string) error {
	if s.w == nil {
		return errNoWorld
	}
	if neg || len(args) != 2 {
		return errors.New("usage: scrape scaler N|leader")
	}
	pod, err := s.pod(args[0], args[1])
	if err != nil {
		return err
	}
	response, err := s.w.Get(s.ctx, pod, "/metrics")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return s.scrapes.Add(pod, response.Body)
}

// panels has each query of the dashboard asked of what was scraped: each shows something.
func (s *session) panels(ts *testscript.TestScript, neg bool, args []string) error {
	if neg || len(args) > 0 {
		return errors.New("usage: panels")
	}
	panels, err := monitoring.Panels("../manifests/components/grafana/windlass.json")
	if err != nil {
		return err
	}
	var empty []error
	data := s.scrapes.Memory()
	for _, panel := range panels {
		values, err := monitoring.Ask(s.ctx, panel, data, s.scrapes.Last)
		if err != nil {
			return err
		}
		if monitoring.Shows(values) == 0 {
			empty = append(empty, fmt.Errorf("%s shows nothing: %s: %v", panel.Where, panel.Expr, values))
		}
		fmt.Fprintf(ts.Stdout(), "%s: %s\n", panel.Where, strings.ReplaceAll(values.String(), "\n", "; "))
	}
	return errors.Join(empty...)
}

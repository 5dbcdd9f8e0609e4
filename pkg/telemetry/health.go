package telemetry

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// errNotYet is the state of a part that has not reported yet.
var errNotYet = errors.New("no success yet")

// Part describes one thing that can be unhealthy by itself: the watch on the API
// server, the calls to AWS, the loop.
type Part struct {
	// Name is how reports call it, in kebab case: "api-server".
	Name string
	// Within is how old the last success may be before the part counts as
	// unhealthy although nothing failed; 0 means that a success never ages.
	Within time.Duration
	// Patience is how long failures may go on, counted from the last success
	// (or from the start), before the part counts as unhealthy.
	Patience time.Duration
	// Vital parts are those that only a restart of the process mends, such as
	// a loop that hangs. Only they make Alive false: a program that cannot
	// reach the API server is unhealthy, and restarting it would help nobody.
	Vital bool
}

// Health knows which parts of a program are well, and why the others are not.
// It is safe for concurrent use. The zero value has no parts and is well.
type Health struct {
	mu     sync.Mutex
	checks []*Check
}

// Check is how one part reports on itself.
type Check struct {
	part    Part
	started time.Time

	mu          sync.Mutex
	lastSuccess time.Time
	err         error // of the last try; nil after a success
}

// Add registers a part. It starts unhealthy ("no success yet") unless it has
// patience left.
func (h *Health) Add(part Part) *Check {
	check := &Check{part: part, started: time.Now(), err: errNotYet}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks = append(h.checks, check)
	return check
}

// OK reports a success.
func (c *Check) OK() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastSuccess, c.err = time.Now(), nil
}

// Fail reports a failure, and why.
func (c *Check) Fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// Report reports the outcome of one try: a success where err is nil.
func (c *Check) Report(err error) {
	if err == nil {
		c.OK()
		return
	}
	c.Fail(err)
}

// Diagnosis is what is known about one part at one moment.
type Diagnosis struct {
	Part
	// Well is false if the part's failures or its silence outlasted what
	// Part allows.
	Well bool
	// LastSuccess is zero if there was none.
	LastSuccess time.Time
	// Err is the failure of the last try, nil after a success. A part may
	// have one and still be well, for as long as its Patience lasts.
	Err error
	// Age is how long ago the last success was, or the start.
	Age time.Duration
}

// String is one line: the name, well or unhealthy, since when and why.
func (d Diagnosis) String() string {
	state := "ok"
	if !d.Well {
		state = "UNHEALTHY"
	}
	since := "last success " + d.Age.String() + " ago"
	if d.LastSuccess.IsZero() {
		since = "started " + d.Age.String() + " ago"
	}
	line := fmt.Sprintf("%s: %s, %s", d.Name, state, since)
	if d.Err != nil {
		return line + ": " + d.Err.Error()
	}
	if !d.Well {
		return line + fmt.Sprintf(": silent for longer than %s", d.Within)
	}
	return line
}

func (c *Check) diagnose(now time.Time) Diagnosis {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := c.started
	if !c.lastSuccess.IsZero() {
		since = c.lastSuccess
	}
	age := now.Sub(since)
	stale := c.part.Within > 0 && age > c.part.Within
	failing := c.err != nil && age >= c.part.Patience
	return Diagnosis{
		Part:        c.part,
		Well:        !stale && !failing,
		LastSuccess: c.lastSuccess,
		Err:         c.err,
		Age:         age.Round(time.Millisecond),
	}
}

// Diagnose tells about every part, by name.
func (h *Health) Diagnose() []Diagnosis {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	diagnoses := make([]Diagnosis, 0, len(h.checks))
	for _, check := range h.checks {
		diagnoses = append(diagnoses, check.diagnose(now))
	}
	slices.SortStableFunc(diagnoses, func(a, b Diagnosis) int { return strings.Compare(a.Name, b.Name) })
	return diagnoses
}

// Well reports whether every part is well.
func (h *Health) Well() bool {
	return !slices.ContainsFunc(h.Diagnose(), func(d Diagnosis) bool { return !d.Well })
}

// Alive reports whether every vital part is well; if not, only a restart helps.
func (h *Health) Alive() bool {
	return !slices.ContainsFunc(h.Diagnose(), func(d Diagnosis) bool { return d.Vital && !d.Well })
}

// The paths that Register serves.
const (
	// HealthPath answers 503 while any part is unhealthy: for people and alerts.
	HealthPath = "/healthz"
	// LivePath answers 503 while a vital part is unhealthy: for livenessProbe.
	LivePath = "/livez"
)

// Register serves HealthPath and LivePath on mux. Both answer with one line
// per part.
func (h *Health) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET "+HealthPath, h.serve(h.Well))
	mux.HandleFunc("GET "+LivePath, h.serve(h.Alive))
}

func (h *Health) serve(well func() bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if !well() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		for _, diagnosis := range h.Diagnose() {
			// A probe that hung up is not an event worth telling.
			_, _ = fmt.Fprintln(w, diagnosis)
		}
	}
}

package fakeaws

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
)

// controlPath is where the control endpoint hangs.
const controlPath = "/_fakeaws"

// order are the parameters of all commands; each reads those it needs.
type order struct {
	Group     string             `json:"group,omitempty"`
	Instance  string             `json:"instance,omitempty"`
	By        *int               `json:"by,omitempty"` // 1 if missing
	Desired   *int               `json:"desired,omitempty"`
	Min       *int               `json:"min,omitempty"`
	Max       *int               `json:"max,omitempty"`
	In        Duration           `json:"in,omitempty"`
	Action    string             `json:"action,omitempty"`
	Event     string             `json:"event,omitempty"`
	State     string             `json:"state,omitempty"`
	Health    string             `json:"health,omitempty"`
	Protected *bool              `json:"protected,omitempty"` // true if missing
	Decrement bool               `json:"decrement,omitempty"`
	Force     bool               `json:"force,omitempty"`
	Hooks     bool               `json:"hooks,omitempty"`
	Processes []string           `json:"processes,omitempty"`
	Hook      *Hook              `json:"hook,omitempty"`
	Name      string             `json:"name,omitempty"`
	Mode      IMDSMode           `json:"mode,omitempty"`
	Path      string             `json:"path,omitempty"`
	Answer    *IMDSAnswer        `json:"answer,omitempty"`
	Version   *TemplateVersion   `json:"version,omitempty"`
	NewGroup  *Group             `json:"newGroup,omitempty"`
	Fault     *Fault             `json:"fault,omitempty"`
	ID        int                `json:"id,omitempty"`
	Throttles []Throttle         `json:"throttles,omitempty"`
	Actions   []string           `json:"actions,omitempty"`
	Shortages []Shortage         `json:"shortages,omitempty"`
	Refresh   RefreshPreferences `json:"refresh,omitzero"`
	Maintain  MaintenanceEvent   `json:"maintenance,omitzero"`
}

// command carries out an order and answers something for JSON, or nil.
type command func(s *Server, o order) (any, error)

// commands are what can be posted to the control endpoint.
var commands = map[string]command{
	"desired": func(s *Server, o order) (any, error) { return nil, s.SetDesired(o.Group, number(o.Desired, 0)) },
	"resize": func(s *Server, o order) (any, error) {
		return nil, s.Resize(o.Group, number(o.Min, 0), number(o.Max, 0))
	},
	"scale-in":  func(s *Server, o order) (any, error) { return nil, s.ScaleIn(o.Group, number(o.By, 1)) },
	"scale-out": func(s *Server, o order) (any, error) { return nil, s.ScaleOut(o.Group, number(o.By, 1)) },
	"add-group": func(s *Server, o order) (any, error) {
		if o.NewGroup == nil {
			return nil, errors.New("newGroup is missing")
		}
		return nil, s.AddGroup(*o.NewGroup)
	},
	"rebalance-zones": func(s *Server, o order) (any, error) { return answered("moved")(s.RebalanceZones(o.Group, o.Force)) },
	"refresh":         func(s *Server, o order) (any, error) { return answered("id")(s.StartRefresh(o.Group, o.Refresh)) },
	"cancel-refresh": func(s *Server, o order) (any, error) {
		return answered("id")(ask(s, func(c *cloud.Cloud, now time.Time) (string, error) { return c.CancelRefresh(o.Group, now) }))
	},
	"spot": func(s *Server, o order) (any, error) {
		return nil, s.SpotAction(o.Instance, o.Action, time.Duration(o.In))
	},
	"cancel-spot": func(s *Server, o order) (any, error) { return nil, s.CancelSpotNotice(o.Instance) },
	"rebalance":   func(s *Server, o order) (any, error) { return nil, s.Rebalance(o.Instance) },
	"maintenance": func(s *Server, o order) (any, error) {
		if o.In != 0 {
			o.Maintain.NotBefore = time.Now().Add(time.Duration(o.In))
		}
		return answered("event")(s.Maintenance(o.Instance, o.Maintain))
	},
	"end-maintenance": func(s *Server, o order) (any, error) {
		return nil, s.EndMaintenance(o.Instance, o.Event, o.State)
	},
	"health": func(s *Server, o order) (any, error) { return nil, s.SetHealth(o.Instance, o.Health) },
	"protect": func(s *Server, o order) (any, error) {
		return nil, s.Protect(o.Instance, o.Protected == nil || *o.Protected)
	},
	"kill":          func(s *Server, o order) (any, error) { return nil, s.Kill(o.Instance) },
	"terminate":     func(s *Server, o order) (any, error) { return nil, s.Terminate(o.Instance, o.Decrement) },
	"reboot":        func(s *Server, o order) (any, error) { return nil, s.Reboot(o.Instance) },
	"enter-standby": func(s *Server, o order) (any, error) { return nil, s.EnterStandby(o.Instance, o.Decrement) },
	"exit-standby":  func(s *Server, o order) (any, error) { return nil, s.ExitStandby(o.Instance) },
	"detach":        func(s *Server, o order) (any, error) { return nil, s.Detach(o.Instance, o.Decrement) },
	"force": func(s *Server, o order) (any, error) {
		return nil, s.Force(o.Instance, LifecycleState(o.State), o.Hooks)
	},
	"suspend": func(s *Server, o order) (any, error) { return nil, s.Suspend(o.Group, o.Processes...) },
	"resume":  func(s *Server, o order) (any, error) { return nil, s.Resume(o.Group, o.Processes...) },
	"put-hook": func(s *Server, o order) (any, error) {
		if o.Hook == nil {
			return nil, errors.New("hook is missing")
		}
		return nil, s.PutHook(o.Group, *o.Hook)
	},
	"delete-tag":  func(s *Server, o order) (any, error) { return nil, s.DeleteTag(o.Group, o.Name) },
	"delete-hook": func(s *Server, o order) (any, error) { return nil, s.DeleteHook(o.Group, o.Name) },
	"template-version": func(s *Server, o order) (any, error) {
		if o.Version == nil {
			return nil, errors.New("version is missing")
		}
		return answered("version")(s.AddTemplateVersion(o.Name, *o.Version))
	},
	"delete-template": func(s *Server, o order) (any, error) { return nil, s.DeleteTemplate(o.Name) },
	"shortages":       func(s *Server, o order) (any, error) { return nil, s.SetShortages(o.Shortages...) },
	"fault": func(s *Server, o order) (any, error) {
		if o.Fault == nil {
			return nil, errors.New("fault is missing")
		}
		return map[string]int{"id": s.Inject(*o.Fault)}, nil
	},
	// stale-reads is the fault of that name, up to ten seconds if it does not say how much.
	"stale-reads": func(s *Server, o order) (any, error) {
		return map[string]int{"id": s.Inject(Fault{Stale: cmp.Or(o.In, Seconds(10)), Seed: uint64(o.ID)})}, nil
	},
	"remove-fault":       func(s *Server, o order) (any, error) { s.RemoveFault(o.ID); return nil, nil },
	"throttle":           func(s *Server, o order) (any, error) { s.SetThrottles(o.Throttles...); return nil, nil },
	"deny":               func(s *Server, o order) (any, error) { s.Deny(o.Actions...); return nil, nil },
	"imds-mode":          func(s *Server, o order) (any, error) { return nil, s.SetIMDSMode(o.Instance, o.Mode) },
	"imds":               func(s *Server, o order) (any, error) { return nil, s.SetIMDS(o.Instance, o.Path, o.Answer) },
	"imds-forget-tokens": func(s *Server, o order) (any, error) { return nil, s.ForgetIMDSTokens(o.Instance) },
	"forget-calls":       func(s *Server, _ order) (any, error) { s.ForgetCalls(); return nil, nil },
}

// answered names the answer of a command.
func answered(name string) func(v any, err error) (any, error) {
	return func(v any, err error) (any, error) { return map[string]any{name: v}, err }
}

func number(n *int, missing int) int {
	if n == nil {
		return missing
	}
	return *n
}

// addControl hangs the control endpoint into the server: commands by POST, what there is by GET.
func (s *Server) addControl(mux *http.ServeMux) {
	mux.HandleFunc("POST "+controlPath+"/{command}", s.serveCommand)
	mux.HandleFunc("GET "+controlPath+"/instances", func(w http.ResponseWriter, r *http.Request) {
		s.answerJSON(w, http.StatusOK, inGroup(s.Instances(), r.URL.Query().Get("group")))
	})
	mux.HandleFunc("GET "+controlPath+"/groups", func(w http.ResponseWriter, _ *http.Request) { s.answerJSON(w, http.StatusOK, s.Groups()) })
	mux.HandleFunc("GET "+controlPath+"/activities", func(w http.ResponseWriter, r *http.Request) {
		s.answerJSON(w, http.StatusOK, s.Activities(r.URL.Query().Get("group")))
	})
	mux.HandleFunc("GET "+controlPath+"/calls", s.serveCalls)
}

func inGroup(list []Instance, group string) []Instance {
	found := []Instance{}
	for _, i := range list {
		if group == "" || i.Group == group {
			found = append(found, i)
		}
	}
	return found
}

func (s *Server) serveCommand(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("command")
	do := commands[name]
	if do == nil {
		s.answerJSON(w, http.StatusNotFound, problem{fmt.Sprintf("there is no command %q", name)})
		return
	}
	var o order
	if err := readOrder(r.Body, &o); err != nil {
		s.answerJSON(w, http.StatusBadRequest, problem{fmt.Sprintf("reading the parameters of %s: %v", name, err)})
		return
	}
	answer, err := do(s, o)
	if err != nil {
		s.answerJSON(w, http.StatusUnprocessableEntity, problem{err.Error()})
		return
	}
	if answer == nil {
		answer = struct{}{}
	}
	s.answerJSON(w, http.StatusOK, answer)
}

// readOrder reads a JSON object strictly; an empty body is an empty object.
func readOrder(body io.Reader, o *order) error {
	text, err := io.ReadAll(body)
	if err != nil || len(bytes.TrimSpace(text)) == 0 {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(o)
}

type problem struct {
	Error string `json:"error"`
}

func (s *Server) answerJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		s.log.Debug("answering a command", "error", err)
	}
}

// serveCalls answers the calls that match service, operation, group, instance and after (a number); with wait, a duration, it waits until there are n, 1 if
// missing.
func (s *Server) serveCalls(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	var matches []Match
	for name, match := range map[string]func(string) Match{"service": Service, "operation": Operation, "group": ForGroup, "instance": ForInstance} {
		if q.Has(name) {
			matches = append(matches, match(q.Get(name)))
		}
	}
	if q.Has("after") {
		seq, err := strconv.ParseInt(q.Get("after"), 10, 64)
		if err != nil {
			s.answerJSON(w, http.StatusBadRequest, problem{err.Error()})
			return
		}
		matches = append(matches, After(seq))
	}
	if q.Has("wait") {
		if err := s.waitFor(r.Context(), q.Get("wait"), q.Get("n"), matches); err != nil {
			s.answerJSON(w, http.StatusRequestTimeout, problem{err.Error()})
			return
		}
	}
	calls := s.Calls(matches...)
	if calls == nil {
		calls = []Call{}
	}
	s.answerJSON(w, http.StatusOK, calls)
}

func (s *Server) waitFor(ctx context.Context, wait, n string, matches []Match) error {
	d, err := time.ParseDuration(wait)
	if err != nil {
		return err
	}
	many := 1
	if n != "" {
		if many, err = strconv.Atoi(n); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	_, err = s.WaitCalls(ctx, many, matches...)
	return err
}

package e2e

import (
	"path/filepath"
	"slices"

	"windlass.dev/windlass/e2e/confine"
	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/laws"
	"windlass.dev/windlass/e2e/world"
)

// checkLaws returns what must not have happened in any script, whatever it was
// about. Each line is a breach.
func (s *session) checkLaws() ([]string, error) {
	audit, err := laws.NewAudit(filepath.Join(s.w.Dir, "cluster", "logs", "audit.log")).Requests()
	audit = slices.DeleteFunc(slices.Clone(audit), func(r laws.Request) bool { return r.UserAgent == confine.UserAgent }) // the thief is not us
	calls := slices.DeleteFunc(s.callLog(), func(c fakeaws.Call) bool { return c.AccessKey == world.AutoscalerKey })
	var dry []string
	if s.dryRun {
		dry = laws.DryRun(audit, calls)
	}
	return slices.Concat(
		dry,
		laws.Exits(s.w.Exits()),
		s.big,
		laws.Calls(calls, nil),
		laws.Doubles(calls),
		laws.Denials(calls, s.away),
		laws.Evictions(audit),
		laws.Turns(audit),
		laws.Rights(audit, s.away),
		laws.Completions(audit, calls),
		laws.Unseen(audit, calls),
		laws.Brake{Machine: s.machine}.Breaches(audit, calls),
	), err
}

// machine finds an instance for the laws, also one that is gone.
func (s *session) machine(id string) (laws.Machine, bool) {
	i, err := s.w.AWS.Instance(id)
	if err != nil {
		return laws.Machine{}, false
	}
	g, err := s.w.AWS.Group(i.Group)
	return laws.Machine{Group: i.Group, Max: g.Max, Launched: i.LaunchedAt}, err == nil
}

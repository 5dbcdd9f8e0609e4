package e2e

import (
	"path/filepath"
	"slices"

	"windlass.dev/windlass/e2e/confine"
	"windlass.dev/windlass/e2e/laws"
)

// checkLaws returns what must not have happened in any script, whatever it was
// about. Each line is a breach.
func (s *session) checkLaws() ([]string, error) {
	audit, err := laws.NewAudit(filepath.Join(s.w.Dir, "cluster", "logs", "audit.log")).Requests()
	audit = slices.DeleteFunc(slices.Clone(audit), func(r laws.Request) bool { return r.UserAgent == confine.UserAgent }) // the thief is not us
	calls := s.callLog()
	return slices.Concat(
		laws.Exits(s.w.Exits()),
		laws.Calls(calls),
		laws.Denials(calls, s.away),
		laws.Evictions(audit),
		laws.Rights(audit, s.away),
		laws.Completions(audit, calls),
	), err
}

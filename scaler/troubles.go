package main

import (
	"log/slog"
	"slices"

	"windlass.dev/windlass/pkg/fleet"
)

// troubles logs what is wrong with groups: when it begins and when it ends, once each.
type troubles struct {
	logger *slog.Logger
	said   map[string][]string // faults, by group
	none   bool                // that there are no groups was logged
}

// tell takes all groups, and why there are none.
func (t *troubles) tell(groups []fleet.Group, whyNone string) {
	if none := len(groups) == 0; none != t.none {
		t.none = none
		if none {
			t.logger.Warn("no groups", "err", whyNone)
		}
	}
	said := make(map[string][]string, len(t.said))
	for i := range groups {
		name, faults := groups[i].Name, groups[i].Faults
		if len(faults) > 0 {
			said[name] = faults
		}
		for _, fault := range faults {
			if !slices.Contains(t.said[name], fault) {
				t.logger.Warn("group has a fault", "group", name, "fault", fault)
			}
		}
		if len(faults) == 0 && len(t.said[name]) > 0 {
			t.logger.Info("group has no faults any more", "group", name)
		}
	}
	t.said = said
}

package plan

import (
	"encoding/json"
	"fmt"
	"slices"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/policy"
)

// Judge decides with and without what is kept, and says where the plans differ first; empty where
// they do not. Where they do, the planner starts anew: what it keeps is wrong.
func (k *Planner) Judge(s fleet.Snapshot, p policy.Policy) (difference string) {
	difference = Difference(k.Decide(s, p), Decide(s, p))
	if difference != "" {
		*k = *NewPlanner()
	}
	return difference
}

// Difference is where two plans differ first; empty where they are equal to the byte.
func Difference(a, b Plan) string {
	x, y := a.lines(), b.lines()
	for i := range max(len(x), len(y)) {
		was, is := lineIn(x, i), lineIn(y, i)
		if was != is {
			return fmt.Sprintf("%s; alone: %s", was, is)
		}
	}
	return ""
}

func lineIn(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "nothing more"
}

// lines are all of a plan, in its order.
func (p Plan) lines() []string {
	lines := []string{fmt.Sprintf("%d steps, next at %s, braked %t, stopped %t, unrecognised %v", p.Steps, p.Wake, p.Braked, p.Stopped, p.Unrecognised)}
	for _, a := range p.Actions {
		lines = append(lines, fmt.Sprintf("%T %s", a, encoded(a)))
	}
	for _, d := range p.Drains {
		lines = append(lines, "drain "+encoded(d))
	}
	for _, v := range p.Verdicts {
		lines = append(lines, encoded(v))
	}
	return append(slices.Concat(lines, p.Others), "state "+encoded(p.State))
}

func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%+v", value) // a kind that JSON does not know
	}
	return string(text)
}

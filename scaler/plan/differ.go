package plan

import (
	"encoding/json"
	"fmt"
	"slices"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/policy"
)

// Judge decides with and without what is kept, and says where the plans, or what they foresee, differ
// first; empty where they do not. Where they do, the planner starts anew: what it keeps is wrong.
func (k *Planner) Judge(s fleet.Snapshot, p policy.Policy) (difference string) {
	difference = differ(k.decided(s, p), NewPlanner().decided(s, p))
	if difference != "" {
		*k = *NewPlanner()
	}
	return difference
}

// decided are all lines of an evaluation.
func (k *Planner) decided(s fleet.Snapshot, p policy.Policy) []string {
	urgent, rest := k.Begin(s, p)
	lines := urgent.with(rest()).lines()
	for _, f := range urgent.Foreseen {
		lines = append(lines, "foreseen "+encoded(f))
	}
	return lines
}

// Difference is where two plans differ first; empty where they are equal to the byte.
func Difference(a, b Plan) string { return differ(a.lines(), b.lines()) }

func differ(x, y []string) string {
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
	lines := []string{fmt.Sprintf("%d steps, next at %s, awaits an answer %t, braked %t, stopped %t, unrecognised %v", p.Steps, p.Wake, p.AwaitsAnswer, p.Braked, p.Stopped, p.Unrecognised)}
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

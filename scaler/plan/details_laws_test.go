package plan_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// What verdicts say is data: each template has a parameter for each of its placeholders and
// no other, by the names and kinds that programs are promised, and JSON loses nothing. A budget
// that keeps a node has a parameter of its own: programs count by it.
func lawDetails(_ fleet.Snapshot, _ policy.Policy, got plan.Plan) []string {
	kinds := map[string]verdict.Kind{}
	for _, w := range verdict.Vocabulary() {
		kinds[w.Name] = w.Kind
	}
	var broken []string
	for _, v := range got.Verdicts {
		for _, why := range misfits(v.Details, kinds) {
			broken = append(broken, fmt.Sprintf("details: %s: %s", v, why))
		}
		for _, d := range v.Details {
			if cause, _ := d.Param(verdict.Cause("").Name).(string); v.Reason == verdict.NodeBlocked && strings.HasPrefix(cause, "budget ") {
				broken = append(broken, fmt.Sprintf("details: %s: the budget is part of a sentence", v))
			}
		}
		text, err := json.Marshal(v)
		var again verdict.Verdict
		if err == nil {
			err = json.Unmarshal(text, &again)
		}
		if err != nil || again.String() != v.String() || again.UID != v.UID || again.Group != v.Group {
			broken = append(broken, fmt.Sprintf("details: %s becomes %s by JSON (%v):\n%s", v, again, err, text))
		}
	}
	return broken
}

func misfits(details verdict.Details, kinds map[string]verdict.Kind) (why []string) {
	for _, d := range details {
		places := verdict.Placeholders(d.Template)
		for i, p := range d.Params {
			if !slices.Contains(places, p.Name) {
				why = append(why, fmt.Sprintf("%q has no place for %s", d.Template, p.Name))
			}
			if slices.ContainsFunc(d.Params[:i], func(other verdict.Param) bool { return other.Name == p.Name }) {
				why = append(why, fmt.Sprintf("%q has %s twice", d.Template, p.Name))
			}
			if kind := kindOf(p.Value); kind != kinds[p.Name] {
				why = append(why, fmt.Sprintf("%s of %q is %q, and is promised to be %q", p.Name, d.Template, kind, kinds[p.Name]))
			}
			if inner, nested := p.Value.(verdict.Details); nested {
				why = append(why, misfits(inner, kinds)...)
				if len(inner) == 0 {
					why = append(why, fmt.Sprintf("%s of %q says nothing", p.Name, d.Template))
				}
			}
		}
		for _, name := range places {
			if d.Param(name) == nil {
				why = append(why, fmt.Sprintf("%q lacks %s", d.Template, name))
			}
		}
	}
	return why
}

func kindOf(value any) verdict.Kind {
	switch value.(type) {
	case string:
		return verdict.KindText
	case int:
		return verdict.KindNumber
	case time.Time:
		return verdict.KindMoment
	case time.Duration:
		return verdict.KindDuration
	case []string:
		return verdict.KindNames
	case verdict.Details:
		return verdict.KindDetails
	}
	return ""
}

// No verdict says that a group grows now unless the plan grows it.
func lawGrowing(_ fleet.Snapshot, _ policy.Policy, got plan.Plan) []string {
	grows := map[string]bool{}
	for a := range action.Only[action.Grow](got.Actions) {
		grows[a.Group] = true
	}
	var broken []string
	for _, v := range got.Verdicts {
		if (v.Reason == verdict.PodTriggersScaleUp || v.Reason == verdict.GroupScalingUp) && !grows[v.Group] {
			broken = append(broken, fmt.Sprintf("growing: the plan does not: %s", v))
		}
	}
	return broken
}

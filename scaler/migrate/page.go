package migrate

import "strings"

// Cells are what the page docs/reference/migrated-flags.md says of a flag: its name, its default,
// what it becomes, and why.
func (r Row) Cells() []string {
	byDefault := r.Default
	if byDefault != "" {
		byDefault = "`" + byDefault + "`"
	}
	why := r.Why
	if r.Differs != "" {
		why += " ([" + strings.ReplaceAll(r.Differs, "`", "") + "](../differences-from-cluster-autoscaler.md))"
	}
	return []string{"`--" + r.Flag + "`", byDefault, r.words(), why}
}

func (r Row) words() string {
	target, scaler, agent := r.target()
	switch {
	case r.Becomes == sameName, r.Becomes == config:
		return "the same"
	case r.Becomes == provider:
		return "the same; others than `aws` and `externalgrpc` are refused"
	case scaler && agent:
		return "`--" + target + "` of both"
	case agent:
		return "the agent's `--" + target + "`"
	case scaler:
		return "`--" + target + "`"
	case r.component() != "":
		return "the component `" + r.component() + "`"
	}
	return map[string]string{
		nothing: "–", toDecide: "a decision, unless it is the default",
		region: "`AWS_REGION`", port: "the port of metrics",
	}[r.Becomes]
}

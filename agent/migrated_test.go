package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"windlass.dev/windlass/scaler/migrate"
)

// TestMigratedFlagsAreTaken: what the flags of other programs become is taken by the agent, with every
// value that they may have.
func TestMigratedFlagsAreTaken(t *testing.T) {
	values := map[string][]string{"bool": {"true", "false"}, "log-level": {"DEBUG", "INFO", "WARN", "ERROR"}, "drain-priority-config": {"1000:30,0:60"}}
	taken := 0
	for _, row := range migrate.Rows() {
		if !strings.HasPrefix(row.Becomes, "agent ") && !strings.HasPrefix(row.Becomes, "both ") {
			continue
		}
		candidates := append(values[row.Kind], values[row.Flag]...)
		if len(candidates) == 0 {
			t.Errorf("--%s: no value to try", row.Flag)
		}
		for _, value := range candidates {
			in := migrate.Input{Arguments: []migrate.Argument{{Of: row.Of, Name: row.Flag, Value: value}}}
			report := migrate.Translate(in, nil)
			var args []string
			for _, s := range report.Settings.Agent {
				args = append(args, "--"+s.Flag+"="+s.Value)
			}
			taken += len(args)
			c := config{nodeName: "node"}
			flags := pflag.NewFlagSet("agent", pflag.ContinueOnError)
			c.register(flags)
			c.nodeName = "node"
			if err := flags.Parse(args); err != nil {
				t.Errorf("--%s=%s becomes %q: %v", row.Flag, value, args, err)
			} else if err := c.check(); err != nil {
				t.Errorf("--%s=%s becomes %q: %v", row.Flag, value, args, err)
			}
		}
	}
	if taken < 10 {
		t.Errorf("only %d flags were tried", taken)
	}
}

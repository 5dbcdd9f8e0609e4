package main

import (
	"testing"

	"github.com/spf13/pflag"

	"windlass.dev/windlass/docs/section"
	"windlass.dev/windlass/pkg/contract"
)

// TestFlagsPage: docs/reference/flags.md has all flags of the agent as they are.
func TestFlagsPage(t *testing.T) {
	for _, name := range []string{envNodeName, envNamespace, envPodName} {
		t.Setenv(name, "")
	}
	all := func(*pflag.Flag) bool { return true }
	section.Hold(t, "../docs/reference/flags.md", contract.AppAgent, section.Flags(command().Flags(), all))
}

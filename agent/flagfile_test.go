package main

import (
	"testing"

	"github.com/spf13/pflag"

	"windlass.dev/windlass/manifests/flagfile"
	"windlass.dev/windlass/pkg/contract"
)

// TestManifestsHaveEveryFlag: the one place where people set flags has all of them, with
// their defaults, but for what the pod says by itself.
func TestManifestsHaveEveryFlag(t *testing.T) {
	args, err := flagfile.Read("../manifests/flags", contract.AppAgent)
	if err != nil {
		t.Fatal(err)
	}
	newFlags := func() *pflag.FlagSet {
		var c config
		flags := pflag.NewFlagSet(contract.AppAgent, pflag.ContinueOnError)
		c.register(flags)
		return flags
	}
	for _, wrong := range args.Check(newFlags, "kubeconfig", "namespace", "node-name", "pod-name") {
		t.Error(wrong)
	}
}

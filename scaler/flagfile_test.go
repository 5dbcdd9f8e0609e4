package main

import (
	"testing"

	"github.com/spf13/pflag"

	"windlass.dev/windlass/manifests/flagfile"
	"windlass.dev/windlass/pkg/contract"
)

// TestManifestsHaveEveryFlag: the one place where people set flags has all of them, with
// their defaults, but for what the pod sets by itself.
func TestManifestsHaveEveryFlag(t *testing.T) {
	args, err := flagfile.Read("../manifests/flags", contract.AppScaler)
	if err != nil {
		t.Fatal(err)
	}
	newFlags := func() *pflag.FlagSet { return flagsOfRun(new(settings)) }
	for _, wrong := range args.Check(newFlags, "kubeconfig", "namespace", "leader-elect", "leader-elect-identity") {
		t.Error(wrong)
	}
	if args.Set[0] != "run" {
		t.Errorf("the first argument is %q, want the command run", args.Set[0])
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The flags of the cloud name what is wrong with them; those of Auto Scaling do not go with an
// external provider, and nothing is asked of it before the scaler runs.
func TestCloudFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cloud-config.yaml")
	if err := os.WriteFile(file, []byte("address: 127.0.0.1:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"--nodes=0:1:a", ""},
		{"--cloud-provider=aws --nodes=0:1:a", ""},
		{"--cloud-provider=gce --nodes=0:1:a", `--cloud-provider=gce: want aws or externalgrpc: the provider "gce" is none of Windlass's`},
		{"--cloud-config=" + file + " --nodes=0:1:a", "--cloud-config=" + file + ": it is for --cloud-provider=externalgrpc"},
		{"--cloud-provider=externalgrpc --cloud-config=" + file, ""},
		{"--cloud-provider=externalgrpc --cloud-config=" + file + " --nodes=0:1:a --node-group-auto-discovery=asg:tag=x", ""},
		{"--cloud-provider=externalgrpc", "--cloud-config is missing"},
		{"--cloud-provider=externalgrpc --cloud-config=/no/such/file", "/no/such/file"},
		{"--cloud-provider=externalgrpc --claim-groups --cloud-config=" + file, "--claim-groups is for Auto Scaling groups"},
		{"--cloud-provider=externalgrpc --suspend-az-rebalance --cloud-config=" + file, "--suspend-az-rebalance is for Auto Scaling groups"},
		{"--cloud-provider=externalgrpc --out-of-service-taint --cloud-config=" + file, "--out-of-service-taint is for Auto Scaling groups"},
		{"--cloud-provider=externalgrpc --spot-prices=history --cloud-config=" + file, "--spot-prices=history is for Auto Scaling groups"},
	} {
		var s settings
		if err := flagsOfRun(&s).Parse(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		err := s.check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.args, err, c.want)
		}
		if err != nil || s.cloudProvider != cloudExternal {
			continue
		}
		cloud, err := dialCloud(t.Context(), s, nil)
		if err != nil || cloud.name() != "provider" || cloud.where() != "127.0.0.1:1" || !strings.Contains(cloud.whyNone(s), "127.0.0.1:1 names no groups") {
			t.Errorf("%s: %v, %v", c.args, cloud, err)
		}
	}
}

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What grows a cluster has Cluster Autoscaler's defaults, where it has the flag, but for the expander.
func TestDefaultsOfGrowing(t *testing.T) {
	want := map[string]string{
		"expander":                            "price,least-waste",
		"scheduler-name":                      "[default-scheduler]",
		"expendable-pods-priority-cutoff":     "-10",
		"new-pod-scale-up-delay":              "0s",
		"balance-similar-node-groups":         "false",
		"balancing-ignore-label":              "[]",
		"enforce-node-group-min-size":         "false",
		"max-nodes-total":                     "0",
		"cores-total":                         "0:320000",
		"memory-total":                        "0:6400000",
		"max-node-provision-time":             "15m0s",
		"max-node-startup-time":               "15m0s",
		"initial-node-group-backoff-duration": "5m0s",
		"max-node-group-backoff-duration":     "30m0s",
		"node-group-backoff-reset-timeout":    "3h0m0s",
		"startup-taint":                       "[]",
		"startup-taint-prefix":                "[]",
		"status-taint":                        "[]",
		"vm-memory-overhead":                  "0.075",
		"price-file":                          "",
		"spot-price-factor":                   "0.4",
		"spot-prices":                         "factor",
	}
	expectDefaults(t, want)
}

// What shrinks it does too, but for one: delays are each group's own matter.
func TestDefaultsOfShrinking(t *testing.T) {
	want := map[string]string{
		"scale-down-enabled":                      "true",
		"scale-down-unneeded-time":                "10m0s",
		"scale-down-utilization-threshold":        "0.5",
		"scale-down-gpu-utilization-threshold":    "0.5",
		"scale-down-delay-after-add":              "10m0s",
		"scale-down-delay-after-delete":           "0s",
		"scale-down-delay-after-failure":          "3m0s",
		"scale-down-delay-type-local":             "true",
		"scale-down-unready-enabled":              "true",
		"scale-down-unready-time":                 "20m0s",
		"ignore-daemonsets-utilization":           "false",
		"ignore-mirror-pods-utilization":          "false",
		"max-unrecognised-share":                  "10",
		"ok-total-unready-count":                  "3",
		"max-total-unready-percentage":            "45",
		"skip-nodes-with-system-pods":             "true",
		"blocking-system-pod-distruption-timeout": "1h0m0s",
		"skip-nodes-with-local-storage":           "true",
		"skip-nodes-with-custom-controller-pods":  "true",
		"min-replica-count":                       "0",
		"consolidate":                             "balance",
		"disruption-cost":                         "0",
	}
	expectDefaults(t, want)
}

// Who ran a Cluster Autoscaler finds its status where its flags put it.
func TestDefaultsOfStatus(t *testing.T) {
	expectDefaults(t, map[string]string{"write-status-configmap": "true", "status-config-map-name": "cluster-autoscaler-status"})
}

// expectDefaults holds what flags of the command are unless they are given.
func expectDefaults(t *testing.T, want map[string]string) {
	t.Helper()
	flags := runCommand(io.Discard).Flags()
	got := map[string]string{}
	for name := range want {
		if f := flags.Lookup(name); f != nil {
			got[name] = f.DefValue
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

// A wrong value ends the program at once, and is named with its flag.
func TestWrongValues(t *testing.T) {
	prices := filepath.Join(t.TempDir(), "prices")
	if err := os.WriteFile(prices, []byte("eu-west-1 m5.large cheap\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ flag, value, want string }{
		{"expander", "least-waste,roulette", `"roulette": want some of least-nodes, least-waste`},
		{"scheduler-name", "", "names no scheduler"},
		{"new-pod-scale-up-delay", "-1s", "is -1s: want at least 0"},
		{"new-pod-scale-up-delay", "soon", `"soon"`},
		{"balance-similar-node-groups", "often", `"often"`},
		{"balancing-ignore-label", "", "is empty"},
		{"enforce-node-group-min-size", "most", `"most"`},
		{"max-nodes-total", "-1", "is -1: want at least 0"},
		{"max-nodes-total", "many", `"many"`},
		{"cores-total", "8", `"8"`},
		{"cores-total", "8:4", `"8:4"`},
		{"memory-total", "-1:4", `"-1:4"`},
		{"memory-total", "0:much", `"0:much"`},
		{"max-node-provision-time", "0s", "is 0s: want more than 0"},
		{"max-node-startup-time", "0s", "is 0s: want more than 0"},
		{"startup-taint", "", "is empty"},
		{"startup-taint-prefix", "", "is empty"},
		{"status-taint", "", "is empty"},
		{"vm-memory-overhead", "1", "want a share from 0 to less than 1"},
		{"vm-memory-overhead", "NaN", "want a share from 0 to less than 1"},
		{"spot-price-factor", "0", "want a share above 0"},
		{"spot-prices", "current", "want factor or history"},
		{"price-file", "/no/such/file", "no such file"},
		{"price-file", prices, "cheap"},
		{"scale-down-utilization-threshold", "NaN", "want a share between 0 and 1"},
		{"scale-down-gpu-utilization-threshold", "2", "want a share between 0 and 1"},
		{"max-total-unready-percentage", "NaN", "want 0 to 100"},
		{"min-replica-count", "-1", "is -1: want at least 0"},
		{"scale-down-unready-time", "-1s", "is -1s: want at least 0"},
		{"scale-down-delay-after-delete", "-1s", "is -1s: want at least 0"},
		{"scale-down-delay-after-failure", "soon", `"soon"`},
		{"status-config-map-name", "windlass-state", "want a name of its own"},
	} {
		t.Run(tc.flag+"="+tc.value, func(t *testing.T) {
			err := run(t.Context(), []string{"run", "--nodes=0:5:web", "--" + tc.flag + "=" + tc.value, "--kubeconfig=/no/such/file"}, io.Discard, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tc.flag) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v: want --%s and %s", err, tc.flag, tc.want)
			}
		})
	}
}

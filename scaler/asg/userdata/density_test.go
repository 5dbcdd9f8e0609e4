package userdata_test

import (
	"strings"
	"testing"

	"windlass.dev/windlass/scaler/asg/userdata"
)

// Figures of AWS's own calculator and of eni-max-pods.txt.
func TestPods(t *testing.T) {
	large := userdata.Machine{Cores: 2, Interfaces: 3, Addresses: 10, Nitro: true}   // m5.large
	giant := userdata.Machine{Cores: 96, Interfaces: 15, Addresses: 50, Nitro: true} // m5.24xlarge
	old := userdata.Machine{Cores: 2, Interfaces: 2, Addresses: 10}                  // m4.large
	prefixes := &userdata.Calculator{Prefixes: true}
	for _, tc := range []struct {
		name            string
		settings        userdata.Settings
		machine         userdata.Machine
		pods, reserving int64
	}{
		{"by interfaces", userdata.Settings{}, large, 29, 29},
		{"by many interfaces", userdata.Settings{}, giant, 737, 737},
		{"a figure does not change the reserve of Amazon Linux", userdata.Settings{Family: userdata.AmazonLinux, Density: userdata.Density{Most: 110}}, large, 110, 29},
		{"but that of Bottlerocket", userdata.Settings{Family: userdata.Bottlerocket, Density: userdata.Density{Most: 110}}, large, 110, 110},
		{"the kubelet's own", userdata.Settings{Density: userdata.Density{Unlimited: true}}, large, 110, 29},
		{"prefixes on few cores", userdata.Settings{Density: userdata.Density{Calculator: prefixes}}, large, 110, 29},
		{"prefixes on many cores", userdata.Settings{Density: userdata.Density{Calculator: prefixes}}, giant, 250, 737},
		{"prefixes without Nitro", userdata.Settings{Density: userdata.Density{Calculator: prefixes}}, old, 20, 20},
		{"all that prefixes give", userdata.Settings{Density: userdata.Density{Calculator: &userdata.Calculator{Prefixes: true, Uncapped: true}}}, large, 434, 29},
		{"custom networking", userdata.Settings{Density: userdata.Density{Calculator: &userdata.Calculator{CustomNetworking: true}}}, large, 20, 29},
		{"fewer interfaces", userdata.Settings{Density: userdata.Density{Calculator: &userdata.Calculator{MaxInterfaces: 2}}}, large, 20, 29},
		{"an expression changes both", userdata.Settings{Density: userdata.Density{Expression: "((default_enis - 1) * (ips_per_eni - 1)) + 2"}}, large, 20, 20},
		{"a figure beside an expression", userdata.Settings{Density: userdata.Density{Expression: "max_pods - 1", Most: 12}}, large, 12, 28},
		{"by cores", userdata.Settings{Density: userdata.Density{PerCore: 10}}, large, 20, 29},
		{"no interface that is known", userdata.Settings{}, userdata.Machine{Cores: 2}, 2, 2},
	} {
		pods, reserving, err := tc.settings.Pods(tc.machine)
		if err != nil || pods != tc.pods || reserving != tc.reserving {
			t.Errorf("%s: %d pods, %d for the reserve, %v; want %d, %d", tc.name, pods, reserving, err, tc.pods, tc.reserving)
		}
	}
}

// An expression that sets nothing leaves the figure of the interfaces.
func TestExpressionsThatSayNothing(t *testing.T) {
	for _, expression := range []string{"default_enis +", "enis * 2", "max_pods - 1000", `"many"`, "1/0", "[1,2,3].map(x, x)", "99999999999", strings.Repeat("(", 5000),
		"[0,1,2,3,4,5,6,7,8,9].map(a, [0,1,2,3,4,5,6,7,8,9].map(b, [0,1,2,3,4,5,6,7,8,9].map(c, [0,1,2,3,4,5,6,7,8,9].map(d, a)))).size()"} {
		s := userdata.Settings{Density: userdata.Density{Expression: expression}}
		pods, reserving, err := s.Pods(userdata.Machine{Cores: 2, Interfaces: 3, Addresses: 10})
		if err == nil || pods != 29 || reserving != 29 || len(err.Error()) > 12_000 {
			t.Errorf("%.40s: %d pods, %d for the reserve, error %.200v", expression, pods, reserving, err)
		}
	}
}

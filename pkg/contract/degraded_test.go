package contract_test

import (
	"testing"

	"windlass.dev/windlass/pkg/contract"
)

func TestDegraded(t *testing.T) {
	for id, want := range map[string]bool{
		"instance-stop:i-1:instance-event-0":       true,
		"instance-retirement:i-1:instance-event-0": true,
		"instance-reboot:i-1:instance-event-0":     false,
		"system-reboot:i-1:instance-event-0":       false,
		"system-maintenance:i-1:instance-event-0":  false,
		"rebalance:i-1:2026":                       false,
		"request:instance-stop":                    false,
		"instance-stopped":                         false,
		"":                                         false,
	} {
		if got := contract.Degraded(id); got != want {
			t.Errorf("Degraded(%q) = %v", id, got)
		}
	}
}

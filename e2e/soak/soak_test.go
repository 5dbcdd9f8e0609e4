package main

import (
	"bytes"
	"context"
	"testing"
	"time"

	"windlass.dev/windlass/e2e/world"
)

// TestSmoke lives for some seconds, without an end at which all must be at rest:
// that the soak runs, and that no law is broken so soon.
func TestSmoke(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	programs, err := world.Build(ctx, t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p := plan{duration: 12 * time.Second, round: 12 * time.Second, pause: time.Second, seed: 3, tenantPods: 60, hasty: true}
	if err := p.play(ctx, programs, &out); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	if !bytes.Contains(out.Bytes(), []byte("#5 ")) {
		t.Errorf("there was no fifth disturbance:\n%s", &out)
	}
}

package main

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// The file of the environment is written when it is other than before, and only
// then.
func TestKeepFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "world.env")
		ctx, cancel := context.WithCancel(t.Context())
		changed := make(chan struct{})
		var text atomic.Value
		text.Store("one")
		there := make(chan struct{})
		ended := make(chan error)
		go func() {
			ended <- keepFile(ctx, file, changed, func() string { return text.Load().(string) }, func() { close(there) })
		}()
		<-there
		content := func() string {
			synctest.Wait()
			got, err := os.ReadFile(file)
			if err != nil {
				t.Error(err)
			}
			return string(got)
		}
		if got := content(); got != "one" {
			t.Errorf("at first %q", got)
		}
		text.Store("two")
		changed <- struct{}{}
		if got := content(); got != "two" {
			t.Errorf("after a change %q", got)
		}
		if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		changed <- struct{}{}
		if got := content(); got != "mine" {
			t.Errorf("written again without a change: %q", got)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

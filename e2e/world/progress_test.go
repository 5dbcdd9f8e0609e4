package world

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A long build says every ten seconds how far it is and what is left.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := newProgress(&out, "windlass-agent", "windlass-scaler")
		output, command := io.Pipe()
		ended := make(chan []string)
		runs := func() { go func() { ended <- p.follow(output) }() }
		says := func(lines ...string) {
			if _, err := io.WriteString(command, strings.Join(lines, "\n")+"\n"); err != nil {
				t.Error(err)
			}
		}

		p.next()
		runs()
		says("go: downloading k8s.io/api v0.36.3", "go: downloading k8s.io/client-go v0.36.3")
		time.Sleep(11 * time.Second)
		command.Close()
		<-ended
		p.planned([]string{"a", "b", "windlass.dev/windlass/agent"})

		output, command = io.Pipe()
		runs()
		says("a")
		time.Sleep(25 * time.Second)
		says("b", "windlass.dev/windlass/agent", "# main", "agent/main.go:1: no such thing")
		time.Sleep(10 * time.Second)
		command.Close()
		if diff := cmp.Diff([]string{"# main", "agent/main.go:1: no such thing"}, <-ended); diff != "" {
			t.Error(diff)
		}
		p.done()
		p.next()
		p.planned(nil)

		want := `[1/2] windlass-agent: 2 modules downloaded, 10s so far; then windlass-scaler
[1/2] windlass-agent: packages to compile: 3; then windlass-scaler
[1/2] windlass-agent: 1 of 3 packages compiled, 21s so far; then windlass-scaler
[1/2] windlass-agent: 1 of 3 packages compiled, 31s so far; then windlass-scaler
[1/2] windlass-agent: linking, 41s so far; then windlass-scaler
[1/2] windlass-agent: built, 46s so far
[2/2] windlass-scaler: packages to compile: 0
`
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Error(diff)
		}
	})
}

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"windlass.dev/windlass/e2e/machine"
	"windlass.dev/windlass/e2e/world"
)

var realMachines = flag.Bool("e2e.machines", false, "play the scripts of testdata/machines, too, which needs root on Linux")

// machineWorlds bounds how many worlds of real machines there are at once: each boots
// two machines, more later, and all of them share two cores.
var machineWorlds = make(chan struct{}, 2)

// programsVariable hands what was built to the process inside.
const programsVariable = "WINDLASS_E2E_PROGRAMS"

var buildMachines = sync.OnceValues(func() (world.Programs, error) {
	return world.BuildMachines(context.Background(), bin, os.Stderr)
})

// TestMachines runs every script of testdata/machines in a world of real machines: each
// in a process of its own, inside a network that is its own.
func TestMachines(t *testing.T) {
	if machine.Inside() {
		playInside(t)
		return
	}
	if !*realMachines {
		t.Skip("not asked for by -e2e.machines")
	}
	if missing := machine.Missing(); len(missing) > 0 {
		t.Fatalf("this host can have no real machines:\n%s", strings.Join(missing, "\n"))
	}
	owned, err := machine.Own(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer owned.Close() // TestMain removes the folder
	programs, err := buildMachines()
	if err != nil {
		t.Fatal(err)
	}
	handed, err := json.Marshal(programs)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(programsVariable, string(handed))
	scripts, err := filepath.Glob(filepath.Join("testdata", "machines", "*.txtar"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("finding the scripts: %v, %d", err, len(scripts))
	}
	// Parallel subtests may not follow Setenv; a group of plain ones waits for all.
	var all sync.WaitGroup
	defer all.Wait()
	for _, file := range scripts {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		all.Go(func() { t.Run(name, func(t *testing.T) { playOutside(t, name) }) })
	}
}

// asked is whether somebody asked for the end, after which no script begins.
var asked atomic.Bool

// playOutside plays one script in a process inside.
func playOutside(t *testing.T, name string) {
	machineWorlds <- struct{}{}
	defer func() { <-machineWorlds }()
	if asked.Load() {
		t.Fatal("not played: ", machine.ErrAsked)
	}
	var out bytes.Buffer
	err := machine.Enter(t.Context(), argumentsInside(name), &out, &out)
	if errors.Is(err, machine.ErrAsked) {
		asked.Store(true)
	}
	passed := bytes.Contains(out.Bytes(), []byte("--- PASS: TestMachines/"+name+" "))
	if err != nil || !passed || testing.Verbose() {
		t.Logf("%s", &out)
	}
	switch {
	case err != nil:
		t.Errorf("the script failed: %v", err)
	case !passed:
		t.Error("the script was not played to its end")
	}
}

// argumentsInside are the flags of this process, for one script.
func argumentsInside(name string) []string {
	args := []string{fmt.Sprintf("-test.run=^TestMachines$/^%s$", name), "-test.v"}
	flag.Visit(func(f *flag.Flag) {
		if strings.HasPrefix(f.Name, "e2e.") || slices.Contains([]string{"test.timeout"}, f.Name) {
			args = append(args, fmt.Sprintf("-%s=%s", f.Name, f.Value))
		}
	})
	return args
}

func playInside(t *testing.T) {
	var programs world.Programs
	if err := json.Unmarshal([]byte(os.Getenv(programsVariable)), &programs); err != nil {
		t.Fatalf("reading %s: %v", programsVariable, err)
	}
	play(t, filepath.Join("testdata", "machines"), func(world.Spec) (world.Programs, error) { return programs, nil })
}

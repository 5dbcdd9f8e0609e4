package bench

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/machine"
	"windlass.dev/windlass/e2e/world"
)

var idleMachines = flag.Duration("idle", time.Minute, "how long the real machines of BenchmarkMachinesIdle idle")

// By these variables the process inside learns what was built, and where it leaves its
// figures.
const (
	programsVariable = "WINDLASS_BENCH_PROGRAMS"
	figuresVariable  = "WINDLASS_BENCH_FIGURES"
)

// BenchmarkMachinesIdle: what Windlass costs a cluster of two real machines on which there
// is nothing to do, by the kernel's own account of its pods (their cgroups), over ten
// minutes: the most memory that was seen, and the processor time, in thousandths of one
// processor. Of the two agents it is the dearer one; of the scalers one leads.
//
// The working set is what a kubelet goes by. Pages of the program's file are not in it: the
// kernel puts them down to who has read them first, which is containerd as it unpacks.
func BenchmarkMachinesIdle(b *testing.B) {
	if machine.Inside() {
		once(b, func() { idleInside(b) })
		return
	}
	if missing := machine.Missing(); len(missing) > 0 {
		b.Skipf("this host can have no real machines:\n%s", strings.Join(missing, "\n"))
	}
	figures := filepath.Join(b.TempDir(), "figures.json")
	b.Setenv(figuresVariable, figures)
	handPrograms(b)
	once(b, func() {
		args := []string{"-test.run=^$", "-test.bench=^BenchmarkMachinesIdle$", "-test.benchtime=1x", "-idle=" + idleMachines.String()}
		if err := machine.Enter(b.Context(), args, os.Stderr, os.Stderr); err != nil {
			b.Fatalf("inside: %v", err)
		}
	})
	b.ReportMetric(0, "ns/op") // says nothing here
	var found map[string]float64
	readJSON(b, figures, &found)
	for unit, figure := range found {
		b.ReportMetric(figure, unit)
	}
	b.ReportMetric(0.3, "target-agent-mCPU")
	b.ReportMetric(1, "target-leader-mCPU")
}

// handPrograms builds what a world of real machines needs, for the process inside.
func handPrograms(b *testing.B) {
	b.Helper()
	programs, err := world.BuildMachines(b.Context(), programsDir, os.Stderr)
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(b.TempDir(), "programs.json")
	writeJSON(b, file, programs)
	b.Setenv(programsVariable, file)
}

// idleInside measures, in a network that is the world's own, and leaves the figures by
// their units.
func idleInside(b *testing.B) {
	t := startMachines(b)
	pods := map[string]string{} // what they are called here, by name
	for _, pod := range t.Agents() {
		pods[pod] = "agent"
	}
	for _, pod := range t.Scalers() {
		pods[pod] = "standby"
		if strings.HasPrefix(t.holder(), pod) {
			pods[pod] = "leader"
		}
	}
	t.pause(settling)
	figures := map[string]float64{}
	for pod, used := range t.watchUsage(pods, *idleMachines) {
		used.most(figures, pods[pod])
	}
	writeJSON(b, os.Getenv(figuresVariable), figures)
}

// startMachines starts a world of two real machines and waits until all of Windlass is
// there.
func startMachines(b *testing.B) *bed {
	b.Helper()
	spec := world.Spec{Machines: world.Real}
	spec.Cloud.Groups = []fakeaws.Group{{Name: "idle", Type: "m5.large", Min: 2, Max: 4}}
	config := world.Config{Spec: spec, Progress: os.Stderr}
	readJSON(b, os.Getenv(programsVariable), &config.Programs)
	w, err := world.Start(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := w.Close(); err != nil {
			b.Error(err)
		}
	})
	t := &bed{World: w, b: b, ctx: b.Context(), pods: newPodLog()}
	t.await("two agents and two scalers, one of which leads", func() bool {
		return len(t.Agents()) == 2 && len(t.Scalers()) == 2 && t.leads()
	})
	return t
}

// used is what a pod has used over some time: of memory the most that was seen, of
// processors the average, which is a number of processors.
type used struct {
	machine.Usage
	processors float64
}

// watchUsage looks at pods until the time is over.
func (t *bed) watchUsage(pods map[string]string, idle time.Duration) map[string]used {
	t.b.Helper()
	const lookEvery = 10 * time.Second
	first, all, began := map[string]time.Duration{}, map[string]used{}, time.Now()
	for looks := 0; ; looks++ {
		passed := time.Since(began)
		for pod := range pods {
			now, err := t.Usage(pod)
			if err != nil {
				t.b.Fatal(err)
			}
			if looks == 0 {
				first[pod] = now.CPU
			}
			before := all[pod]
			all[pod] = used{
				Usage: machine.Usage{
					MemoryBytes: max(before.MemoryBytes, now.MemoryBytes),
					WorkingSet:  max(before.WorkingSet, now.WorkingSet),
					RSS:         max(before.RSS, now.RSS),
				},
				processors: (now.CPU - first[pod]).Seconds() / passed.Seconds(),
			}
		}
		if passed >= idle || t.ctx.Err() != nil {
			return all
		}
		t.pause(min(lookEvery, idle-passed))
	}
}

// most keeps the figures of the dearest of those that are called so.
func (u used) most(figures map[string]float64, called string) {
	const mebibyte = 1 << 20
	for unit, figure := range map[string]float64{
		"MiB":      float64(u.WorkingSet) / mebibyte,
		"anon-MiB": float64(u.RSS) / mebibyte,
		"mCPU":     u.processors * 1000,
	} {
		figures[called+"-"+unit] = max(figures[called+"-"+unit], figure)
	}
}

func writeJSON(b *testing.B, file string, content any) {
	b.Helper()
	text, err := json.Marshal(content)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
}

func readJSON(b *testing.B, file string, into any) {
	b.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		b.Fatal(err)
	}
}

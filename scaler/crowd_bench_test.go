package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/act"
	"windlass.dev/windlass/scaler/observe"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
)

// BenchmarkIdleEvaluation: the cost of an evaluation where nothing has changed since the last one,
// with 5,000 nodes and 150,000 pods, watched over HTTP. Nothing is decided: a multiple of a loop over
// pods would say nothing.
func BenchmarkIdleEvaluation(b *testing.B) {
	const nodes, podsPerNode = 5_000, 30
	config, err := kube.Config(kubeconfig(b, crowd{nodes: nodes, podsPerNode: podsPerNode}.start(b).URL), program, "bench")
	if err != nil {
		b.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	observer := observe.New(observe.Config{Client: client, Groups: oneGroup{}, Namespace: defaultNamespace, Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithTimeout(b.Context(), 4*time.Minute)
	done := make(chan struct{})
	go func() { observer.Run(ctx); close(done) }()
	defer func() { cancel(); <-done }()

	decided, policy, state := 0, policy.DefaultPolicy(), fleet.State{}
	planner := plan.NewPlanner()
	l := &loop{
		observe: func(now time.Time) (fleet.Snapshot, uint64, error) { return observer.Snapshot(now, state) },
		decide: func(s fleet.Snapshot) (plan.Urgent, func() plan.Plan) {
			decided++
			if len(s.Nodes) != nodes || len(s.Pods) != nodes*podsPerNode {
				b.Fatalf("%d nodes, %d pods", len(s.Nodes), len(s.Pods))
			}
			return planner.Begin(s, policy)
		},
		remember: func(_ context.Context, s fleet.State) error { state = s; return nil },
		awaits:   func(bool) {},
		paused:   func(action.Action) (act.Result, bool) { return act.Result{}, false },
		act:      func(context.Context, []action.Action) []act.Result { return nil },
		reread:   func(context.Context, []act.Result) {},
		tell:     func(evaluation) {},
		policy:   policy,
	}
	for atRest := false; !atRest; {
		_, err := l.turn(ctx)
		if err != nil && !errors.Is(err, observe.ErrNotYet) {
			b.Fatal(err)
		}
		select {
		case <-observer.Changed():
		case <-time.After(time.Second): // of so many pods a list is known before it counts as a change
			atRest = l.last != nil && fleet.Equal(l.last.state, state)
		case <-ctx.Done():
			b.Fatalf("the cluster does not come to rest: %v", err)
		}
	}
	measureIdle(ctx, b, l, &decided)
}

// measureIdle measures turns of a loop at rest, none of which may decide anything. decided counts decisions.
func measureIdle(ctx context.Context, b *testing.B, l *loop, decided *int) {
	b.Helper()
	before := *decided
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.turn(ctx); err != nil {
			b.Fatal(err)
		}
	}
	if *decided != before {
		b.Errorf("decided %d times although nothing changed", *decided-before)
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(time.Millisecond), "ms")
	b.ReportMetric(1, "target-ms")
}

// oneGroup is a reading of one group without instances.
type oneGroup struct{}

var readOnce = time.Now()

func (oneGroup) Groups(map[string]resource.Quantity) ([]fleet.Group, time.Time, error) {
	return []fleet.Group{{Name: "web", Max: 10}}, readOnce, nil
}
func (oneGroup) Look(string, bool) {}

// BenchmarkScalerMemory: the real program's resident memory half a minute after it became
// leader, had seen everything and made its first evaluation; the program's file apart, since
// the kernel drops the file's pages where memory is short; and the peak.
func BenchmarkScalerMemory(b *testing.B) {
	for _, c := range []struct {
		nodes  int
		target float64
	}{{1_000, 60}, {5_000, 130}, {15_000, 350}} {
		b.Run(fmt.Sprintf("%dx30", c.nodes), func(b *testing.B) {
			for range b.N { // once: a run takes longer than what -benchtime asks for
				memory := residentOf(b, crowd{nodes: c.nodes, podsPerNode: 30})
				b.ReportMetric(memory["VmRSS"], "MiB")
				b.ReportMetric(memory["RssAnon"], "anon-MiB")
				b.ReportMetric(memory["RssFile"], "file-MiB")
				b.ReportMetric(memory["VmHWM"], "peak-MiB")
			}
			b.ReportMetric(c.target, "target-MiB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// residentOf runs the program until it has settled and reads its memory, in MiB
// by the kernel's names.
func residentOf(b *testing.B, c crowd) map[string]float64 {
	r := runBeside(b, c)
	defer r.end()
	select {
	case <-r.said.ended:
		b.Fatalf("the program ended:\n%s", r.said.text.String())
	case <-time.After(30 * time.Second): // what garbage is left by then stays
	}
	return memoryOf(b, r.pid)
}

// running is the real program beside a crowd.
type running struct {
	pid  int
	said *output
	end  func()
}

// runBeside starts the program and waits for its first evaluation. The nodes of a crowd that is grouped are
// the instances of the group.
func runBeside(b *testing.B, c crowd) running {
	binary := filepath.Join(b.TempDir(), program)
	// Without -trimpath, whose packages are not those that the tests are built of:
	// all of Kubernetes would be compiled once more.
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	group := fakeaws.Group{Name: "web", Max: c.nodes, Type: "m5.2xlarge", Zones: []string{"eu-west-1a", "eu-west-1b", "eu-west-1c"}}
	if c.grouped {
		group.Desired = &c.nodes
	}
	cloud, err := fakeaws.Start(fakeaws.Config{NoIMDS: true, Spec: fakeaws.Spec{Groups: []fakeaws.Group{group}}})
	if err != nil {
		b.Fatal(err)
	}
	c.machines = cloud.Instances()
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Hour)
	command := exec.CommandContext(ctx, binary, "run", fmt.Sprintf("--nodes=0:%d:web", c.nodes), "--leader-elect-identity=bench", "--metrics-address=", "--kubeconfig="+kubeconfig(b, c.start(b).URL))
	command.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+cloud.URL(), "AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x", "AWS_EC2_METADATA_DISABLED=true", "GOGC=", "GOMEMLIMIT=")
	log, err := command.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	r := running{pid: command.Process.Pid, said: follow(log)}
	r.end = func() {
		cancel()
		_ = command.Wait() // killed
		_ = cloud.Close()
	}
	r.said.await(b, `msg="evaluation works"`)
	return r
}

// output is what a program prints, line by line.
type output struct {
	lines chan string
	ended chan struct{}   // closed when it prints no more
	text  strings.Builder // of all lines, once it has ended
}

func follow(r io.Reader) *output {
	o := &output{lines: make(chan string, 1000), ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		for lines := bufio.NewScanner(r); lines.Scan(); {
			o.text.WriteString(lines.Text() + "\n")
			select {
			case o.lines <- lines.Text():
			default: // no reader waits for a line any more
			}
		}
	}()
	return o
}

// await returns when a line was printed that contains some words.
func (o *output) await(b *testing.B, words string) {
	for {
		select {
		case line := <-o.lines:
			if strings.Contains(line, words) {
				return
			}
		case <-o.ended:
			b.Fatalf("the program ended before it said %s:\n%s", words, o.text.String())
		}
	}
}

func memoryOf(b testing.TB, pid int) map[string]float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skip(err) // not Linux
	}
	memory := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if kib, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB")); err == nil {
			memory[name] = float64(kib) / 1024
		}
	}
	return memory
}

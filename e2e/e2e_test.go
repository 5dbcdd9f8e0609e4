// Package e2e runs the scripts of testdata against a real control plane, a fake
// AWS and the two programs as processes: each script is a promise.
//
//	go test ./e2e -run 'TestScripts/five_pods' -v
//
// The scripts' language is that of testscript; testdata/README.md lists what is
// added to it.
package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"windlass.dev/windlass/e2e/laws"
	"windlass.dev/windlass/e2e/script"
	"windlass.dev/windlass/e2e/world"
	"windlass.dev/windlass/manifests/monitoring"
)

var (
	scriptTime = flag.Duration("e2e.time", 15*time.Minute, "how long a script may take before what it waits for counts as missing")
	keepLogs   = flag.String("e2e.logs", "", "folder that gets every world's logs, in a folder per script")
)

// What the tests run is built once, into a folder that ends with them.
var (
	bin        string
	buildPlane = sync.OnceValues(func() (world.Programs, error) {
		return world.BuildControlPlane(context.Background(), bin, os.Stderr)
	})
	buildAll = sync.OnceValues(func() (world.Programs, error) {
		return world.Build(context.Background(), bin, os.Stderr)
	})
	buildAutoscaler = sync.OnceValues(func() (string, error) {
		return world.BuildAutoscaler(context.Background(), bin, os.Stderr)
	})
	buildPlugin = sync.OnceValues(func() (string, error) {
		return world.BuildPlugin(context.Background(), bin, os.Stderr)
	})
)

func TestMain(m *testing.M) {
	var err error
	if bin, err = os.MkdirTemp("", "windlass-e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	flag.Parse()
	if err := playAtOnce(worldsAtOnce); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(bin); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// playAtOnce lets so many scripts be played at once, unless -parallel says otherwise. Its
// own default is the number of cores, and nearly all that a script does is wait.
func playAtOnce(scripts int) error {
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if asked {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(scripts))
}

// TestScripts runs every script of testdata.
func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts control planes")
	}
	if _, err := buildPlane(); err != nil {
		t.Fatal(err)
	}
	build := func(spec world.Spec) (world.Programs, error) {
		if spec.NoPrograms {
			return buildPlane()
		}
		programs, err := buildAll()
		if err == nil && len(spec.Autoscaler) > 0 {
			programs.Autoscaler, err = buildAutoscaler()
		}
		return programs, err
	}
	play(t, "testdata", build)
}

// play runs the scripts of a folder.
func play(t *testing.T, dir string, build func(world.Spec) (world.Programs, error)) {
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			s := &session{build: build}
			env.Values[sessionKey{}] = s
			env.Defer(func() { s.judge(env.T()) }) // after the world's own end
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"world":    command((*session).world),
			"apply":    command((*session).apply),
			"kubectl":  command((*session).kubectl),
			"windlass": command((*session).windlass),
			"await":    command((*session).await),
			"ask":      command((*session).ask),
			"get":      command((*session).get),
			"aws":      command((*session).aws),
			"provider": command((*session).provider),
			"imds":     command((*session).aws), // the notices among aws's words
			"calls":    command((*session).calls),
			"crash":    command((*session).crash),
			"start":    command((*session).start),
			"exhaust":  command((*session).exhaust),
			"logs":     command((*session).logs),
			"metric":   command((*session).metric),
			"scrape":   command((*session).takeScrape),
			"panels":   command((*session).panels),
			"health":   command((*session).health),
			"pause":    command((*session).pause),
			"page":     command((*session).page),
			"confine":  command((*session).confine),
			"objects":  command((*session).objects),

			scalerProgram: command((*session).scaler),

			"notifier": command((*session).notifier),

			"iam":       command((*session).iam),
			"rightless": command((*session).rightless),
		},
	})
}

// worldsAtOnce bounds how many worlds there are at once, and startsAtOnce how many of
// them are being started: each has a control plane of its own, whose start takes all of
// two cores for some seconds. Afterwards it takes a tenth of one, and 700 MB.
const worldsAtOnce, startsAtOnce = 4, 2

var (
	worlds   = make(chan struct{}, worldsAtOnce)
	starting = make(chan struct{}, startsAtOnce)
)

type sessionKey struct{}

// session is one script's world and what its commands share.
type session struct {
	build  func(world.Spec) (world.Programs, error)
	w      *world.World
	asker  *script.Asker
	ctx    context.Context
	failed bool
	dryRun bool  // the programs are to change nothing
	closed error // how the world ended
	// scrapes are what was scraped for panels.
	scrapes monitoring.Scrapes
	// away are the times in which the API server was killed or not ready again.
	away []laws.Span
	// big are the programs that were above their limits of memory when the world ended.
	big []string
	// saved are the objects of the cluster, as the script saved them by a name.
	saved map[string]script.Objects
	// tells is the notifier, if the script has one.
	tells *notifierOf
}

// command makes a testscript command of a method. neg is the command's "!".
func command(do func(s *session, ts *testscript.TestScript, neg bool, args []string) error) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		s := ts.Value(sessionKey{}).(*session)
		if err := do(s, ts, neg, args); err != nil {
			s.failed = true
			s.explain(ts)
			ts.Fatalf("%v", err)
		}
	}
}

var errNoWorld = errors.New("there is no world yet; begin with the command world")

// world starts the script's world: world [FILE], YAML as in world.ParseSpec. What AWS does is quick.
func (s *session) world(ts *testscript.TestScript, neg bool, args []string) error {
	if neg || len(args) > 1 || s.w != nil {
		return errors.New("usage: world [FILE], once")
	}
	var content []byte
	if len(args) == 1 {
		port, err := world.TakePort()
		if err != nil {
			return err
		}
		ts.Defer(port.Release)
		number := strconv.Itoa(port.Number)
		ts.Setenv("FREE_PORT", number)
		content = []byte(strings.ReplaceAll(ts.ReadFile(args[0]), "$FREE_PORT", number))
	}
	spec, err := world.ParseSpec(content)
	if err != nil {
		return err
	}
	s.dryRun = slices.Contains(spec.Scaler, "--dry-run")
	spec.Cloud.Timing.Quick = true
	programs, err := s.build(spec)
	if err != nil {
		return err
	}
	spec.ControlPlane = append(spec.ControlPlane, "--audit", "--ready-timeout="+scriptTime.String())
	worlds <- struct{}{}
	starting <- struct{}{}
	ctx, cancel := context.WithTimeoutCause(context.Background(), *scriptTime, fmt.Errorf("not within the script's %s", *scriptTime))
	ts.Defer(func() {
		cancel()
		<-worlds
	})
	s.w, err = world.Start(ctx, world.Config{Spec: spec, Programs: programs, Dir: s.dir(ts), Log: slog.New(slog.NewTextHandler(ts.Stderr(), nil))})
	<-starting
	if err != nil {
		return err
	}
	ts.Defer(func() {
		s.big = laws.Memory(s.w.Processes())
		s.closed = s.w.Close()
	})
	s.ctx = ctx
	if s.asker, err = script.NewAsker(s.w.Admin); err != nil {
		return err
	}
	root, err := world.Root(ctx)
	if err != nil {
		return err
	}
	ts.Setenv("MANIFESTS", filepath.Join(root, "manifests"))
	beside, err := filepath.Rel(ts.MkAbs("overlay"), filepath.Join(root, "manifests"))
	if err != nil {
		return err
	}
	ts.Setenv("MANIFESTS_BESIDE", beside)
	ts.Setenv("KUBECONFIG", s.w.Plane.Kubeconfig)
	ts.Setenv("NEXT", world.NextVersion)
	ts.Logf("control plane ready after %.1fs", s.w.Plane.Seconds)
	return nil
}

// dir is where the world's files go.
func (s *session) dir(ts *testscript.TestScript) string {
	if *keepLogs != "" {
		return filepath.Join(*keepLogs, ts.Name())
	}
	return ts.MkAbs(".world")
}

// judge holds a script that went well against the laws.
func (s *session) judge(t testscript.T) {
	if s.w == nil || s.failed {
		return
	}
	breaches, err := s.checkLaws()
	if err := errors.Join(err, s.closed); err != nil {
		breaches = append(breaches, err.Error())
	}
	if len(breaches) == 0 {
		return
	}
	t.Log("the script broke laws:\n" + strings.Join(breaches, "\n"))
	t.FailNow()
}

// explain shows, when a script fails, what the programs said last.
func (s *session) explain(ts *testscript.TestScript) {
	if s.w == nil {
		return
	}
	for _, pattern := range []string{"logs/*.log", "machines/*/pods/" + world.Namespace + "_*/*/*.log"} {
		files, err := filepath.Glob(filepath.Join(s.w.Dir, pattern))
		if err != nil {
			return
		}
		for _, f := range files {
			ts.Logf("--- the end of %s\n%s", strings.TrimPrefix(f, s.w.Dir+"/"), world.Tail(f, 15))
		}
	}
}

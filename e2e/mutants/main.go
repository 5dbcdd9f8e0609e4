// Mutants edits the code in random places, one edit at a time, and counts how many of these
// mutants the tests notice:
//
//	go run ./e2e/mutants                              # a sample of each package in targets
//	go run ./e2e/mutants -seed 7 -count 50 agent/imds # the sample that 7 gives, again
//	go run ./e2e/mutants -at agent/drain/dates.go:12    # every edit of one line, or of a,b,…
//
// It prints the mutants that survive: what they break no test would notice. Some break
// nothing: a reader has to judge. So it is a report and fails only below -goal.
//
// No file of the checkout is changed: the compiler is given the mutants as an overlay.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// target is a package and the tests that judge it, the quickest first.
type target struct {
	folder string
	// rooms means that the packages below it are edited, too; one's own tests judge it first.
	rooms  bool
	judges []judge
}

// judge is a package whose tests are run, with arguments for its test binary.
type judge struct {
	folder string
	args   []string
	// own means that it judges the edits of its package alone.
	own bool
}

// judgesOf are the rooms' own tests, then the target's.
func (t target) judgesOf(files []string) ([]judge, error) {
	var own []judge
	for _, file := range files {
		folder := filepath.Dir(file)
		named := func(j judge) bool { return j.folder == folder }
		tests, err := filepath.Glob(folder + "/*_test.go")
		if err != nil {
			return nil, fmt.Errorf("looking for tests of %s: %w", folder, err)
		}
		if len(tests) > 0 && !slices.ContainsFunc(own, named) && !slices.ContainsFunc(t.judges, named) {
			own = append(own, judge{folder: folder, own: true})
		}
	}
	return append(own, t.judges...), nil
}

// few random worlds: a mutant that only a rare one shows is left to the full run. One that
// fails is enough; a smaller one that fails as well is not sought.
func few(checks int, more ...string) []string {
	return append([]string{"-rapid.nofailfile", "-rapid.shrinktime=1ns", fmt.Sprintf("-rapid.checks=%d", checks)}, more...)
}

const (
	// wantMany are tests that fail where few random worlds do not show what they ask for.
	wantMany = "^TestTenantChangesNothing$"
	// slow are tests of which one world costs as much as twenty of another.
	slow = "^TestHeadRoomNeverFlaps$"
	// written are the tests that notice most, at once.
	written = "^TestScenarios$"
)

var targets = []target{
	{folder: "pkg/drainable", judges: []judge{{folder: "pkg/drainable"}, {folder: "agent/drain", args: few(20)}}},
	{folder: "agent/imds", judges: []judge{{folder: "agent/imds"}}},
	{folder: "agent/evict", judges: []judge{{folder: "agent/evict"}, {folder: "agent"}}},
	{folder: "agent/drain", judges: []judge{{folder: "agent/drain", args: few(50)}, {folder: "agent"}}},
	{folder: "scaler/plan", rooms: true, judges: []judge{
		{folder: "scaler/plan", args: []string{"-test.run=" + written}},
		{folder: "scaler/plan", args: few(30, "-test.skip="+strings.Join([]string{written, wantMany, slow}, "|"))},
		{folder: "scaler/act"}, // which obeys the traits of actions
		{folder: "scaler/plan", args: few(5, "-test.run="+slow)},
	}},
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	seed := flags.Uint64("seed", uint64(time.Now().Unix()), "chooses the mutants of the sample")
	count := flags.Int("count", 30, "how many mutants of each package")
	at := flags.String("at", "", "every mutant of FILE:LINE,… instead of a sample")
	goal := flags.Int("goal", 0, "fail if less than this percentage of the mutants is noticed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(flags.Args(), *at)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return fmt.Errorf("making a folder for mutants: %w", err)
	}
	defer os.RemoveAll(dir)
	if *at == "" {
		fmt.Fprintf(out, "seed %d, %d mutants of each package\n", *seed, *count)
	}
	var total score
	for _, t := range chosen {
		s, err := examine(ctx, lab{dir: dir, out: out, least: 20 * time.Second}, t, sample{*seed, *count, *at})
		fmt.Fprintf(out, "%s: %s\n", t.folder, s)
		if err != nil { // an interrupt, too: what was found until then is said
			return fmt.Errorf("%s: %w", t.folder, err)
		}
		total.add(s)
	}
	fmt.Fprintf(out, "all: %s\n", total)
	if total.share() < *goal {
		return fmt.Errorf("%d %% of the mutants were noticed, and %d %% was the goal", total.share(), *goal)
	}
	return nil
}

// choose finds the targets of that name; none of a name is all.
func choose(folders []string, at string) ([]target, error) {
	if at != "" {
		folders = nil
		for _, one := range strings.Split(at, ",") {
			file, line, ok := strings.Cut(one, ":")
			if _, err := strconv.Atoi(line); !ok || err != nil {
				return nil, fmt.Errorf("-at %q is not FILE:LINE", one)
			}
			folders = append(folders, file[:max(0, strings.LastIndexByte(file, '/'))])
		}
	}
	if len(folders) == 0 {
		return targets, nil
	}
	var chosen []target
	for _, f := range folders {
		i := slices.IndexFunc(targets, func(t target) bool { return t.folder == f || t.rooms && strings.HasPrefix(f, t.folder+"/") })
		if i < 0 {
			return nil, fmt.Errorf("nobody says which tests judge %q: want one of the targets in e2e/mutants/main.go", f)
		}
		if !slices.ContainsFunc(chosen, func(t target) bool { return t.folder == targets[i].folder }) {
			chosen = append(chosen, targets[i])
		}
	}
	return chosen, nil
}

// score counts the mutants that compiled.
type score struct{ noticed, late, all int }

func (s *score) add(o score) {
	s.noticed, s.late, s.all = s.noticed+o.noticed, s.late+o.late, s.all+o.all
}

// share is that of the mutants that were noticed, in percent.
func (s score) share() int {
	if s.all == 0 {
		return 100
	}
	return 100 * s.noticed / s.all
}

func (s score) String() string {
	text := fmt.Sprintf("noticed %d of %d, %d %%", s.noticed, s.all, s.share())
	if s.late > 0 {
		text += fmt.Sprintf(" (%d because the tests took too long)", s.late)
	}
	return text
}

// sample is which edits are tried.
type sample struct {
	seed  uint64
	count int
	at    string
}

// of puts the edits that are to be tried in their order. An edit may turn out not to
// compile, so a sample has all of them, and ends by its count.
func (s sample) of(folder string, edits []edit) ([]edit, int) {
	if s.at != "" {
		lines := strings.Split(s.at, ",")
		edits = slices.DeleteFunc(edits, func(e edit) bool { return !slices.Contains(lines, fmt.Sprintf("%s:%d", e.file, e.line)) })
		return edits, len(edits)
	}
	hash := fnv.New64()
	_, _ = io.WriteString(hash, folder) // which never fails
	dice := rand.New(rand.NewPCG(s.seed, hash.Sum64()))
	dice.Shuffle(len(edits), func(i, j int) { edits[i], edits[j] = edits[j], edits[i] })
	return edits, s.count
}

// examine tries mutants of one package and prints those that survive.
func examine(ctx context.Context, l lab, t target, s sample) (score, error) {
	files, err := sources(ctx, t)
	if err != nil {
		return score{}, err
	}
	edits, err := editsOf(files)
	if err != nil {
		return score{}, err
	}
	edits, count := s.of(t.folder, edits)
	judges, err := t.judgesOf(files)
	if err != nil {
		return score{}, err
	}
	builds, err := l.builds(ctx, t.folder, edits, count)
	if err != nil {
		return score{}, err
	}
	patience, err := l.calibrate(ctx, builds[0], judges)
	if err != nil {
		return score{}, err
	}
	var total score
	for _, b := range builds {
		for i, e := range b.edits {
			switch err := l.try(ctx, b, i+1, judges, patience); {
			case errors.Is(err, errTooLong):
				total.late++
				total.noticed++
			case errors.Is(err, errNoticed):
				total.noticed++
			case err != nil:
				return total, err
			default:
				fmt.Fprintf(l.out, "survives %s\n", e)
			}
			total.all++
		}
	}
	return total, nil
}

package world

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"
)

// progressEvery bounds the silence of a long build.
const progressEvery = 10 * time.Second

// progress tells what is built and what is left, in whole lines that read the
// same in a terminal and in a log: one when a program's turn comes, one when it
// is done, and one every ten seconds in between.
type progress struct {
	out   io.Writer
	began time.Time
	steps []string // what is built, in this order
	step  int      // the one under way
	stage
}

// stage is how far the program under way is.
type stage struct {
	// packages are to be compiled, compiled are.
	packages, compiled int
	// downloads are modules that were fetched.
	downloads int
	// main is the last package; once it is compiled all are linked.
	main    string
	linking bool
}

func newProgress(out io.Writer, steps ...string) *progress {
	return &progress{out: out, began: time.Now(), steps: steps, step: -1}
}

// next begins the next step.
func (p *progress) next() {
	p.step++
	p.stage = stage{}
}

// planned notes what the step has to compile, and says so.
func (p *progress) planned(packages []string) {
	p.packages = len(packages)
	if p.packages > 0 {
		p.main = packages[len(packages)-1]
	}
	p.say(fmt.Sprintf("packages to compile: %d%s", p.packages, p.left()))
}

func (p *progress) done() {
	p.say(fmt.Sprintf("built, %s so far", p.elapsed()))
}

func (p *progress) still() {
	what := fmt.Sprintf("%d of %d packages compiled", p.compiled, p.packages)
	switch {
	case p.linking:
		what = "linking"
	case p.packages == 0 && p.downloads > 0:
		what = fmt.Sprintf("%d modules downloaded", p.downloads)
	}
	p.say(fmt.Sprintf("%s, %s so far%s", what, p.elapsed(), p.left()))
}

func (p *progress) say(what string) {
	fmt.Fprintf(p.out, "[%d/%d] %s: %s\n", p.step+1, len(p.steps), p.steps[p.step], what)
}

// left names the steps that follow.
func (p *progress) left() string {
	if p.step+1 >= len(p.steps) {
		return ""
	}
	return "; then " + strings.Join(p.steps[p.step+1:], ", ")
}

func (p *progress) elapsed() time.Duration { return time.Since(p.began).Round(time.Second) }

// follow reads what the go command says until its end: with -v a line for each
// package that it compiles, and one for each module that it fetches. It returns
// the lines that are neither.
func (p *progress) follow(r io.Reader) (problems []string) {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(r); s.Scan(); {
			lines <- s.Text()
		}
	}()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case line, open := <-lines:
			switch {
			case !open:
				return problems
			case strings.HasPrefix(line, "go: downloading "):
				p.downloads++
			case strings.ContainsAny(line, " \t"):
				problems = append(problems, line)
			default:
				p.compiled++
				p.linking = line == p.main
			}
		case <-tick.C:
			p.still()
		}
	}
}

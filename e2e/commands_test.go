package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"windlass.dev/windlass/e2e/laws"
	"windlass.dev/windlass/e2e/script"
	"windlass.dev/windlass/e2e/world"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/telemetry"
)

// apply applies YAML files as an administrator: apply FILE...
func (s *session) apply(ts *testscript.TestScript, neg bool, args []string) error {
	if s.w == nil {
		return errNoWorld
	}
	if neg || len(args) == 0 {
		return errors.New("usage: apply FILE...")
	}
	for _, file := range args {
		// $VARIABLES of the script stand in its files, too.
		if err := s.w.Apply(s.ctx, []byte(os.Expand(ts.ReadFile(file), ts.Getenv))); err != nil {
			return err
		}
	}
	return nil
}

// kubectl runs kubectl as an administrator; stdout can be matched afterwards:
// [!] kubectl ARGUMENT...
func (s *session) kubectl(ts *testscript.TestScript, neg bool, args []string) error {
	if s.w == nil {
		return errNoWorld
	}
	out, err := s.w.Kubectl(s.ctx, nil, args...)
	fmt.Fprint(ts.Stdout(), out)
	if neg && err == nil {
		return errors.New("unexpected success")
	}
	if neg {
		fmt.Fprint(ts.Stderr(), err)
		return nil
	}
	return err
}

// await waits until a query holds: await QUERY, as script.Usage says.
func (s *session) await(ts *testscript.TestScript, neg bool, args []string) error {
	q, err := s.query(neg, args)
	if err != nil {
		return err
	}
	began := time.Now()
	answer, err := s.asker.Wait(s.ctx, q)
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", strings.Join(args, " "), err)
	}
	ts.Logf("after %s", time.Since(began).Round(time.Millisecond))
	s.note(ts, q, answer)
	return nil
}

// ask looks once: [!] ask QUERY.
func (s *session) ask(ts *testscript.TestScript, neg bool, args []string) error {
	q, err := s.query(false, args)
	if err != nil {
		return err
	}
	answer, err := s.asker.Ask(s.ctx, q)
	if err != nil {
		return err
	}
	if answer.Holds == neg {
		return fmt.Errorf("%s holds: %v; %d of %d match:\n%s", strings.Join(args, " "), answer.Holds, len(answer.Matched), len(answer.Seen), strings.Join(answer.Seen, "\n"))
	}
	s.note(ts, q, answer)
	return nil
}

func (s *session) query(neg bool, args []string) (script.Query, error) {
	if s.w == nil {
		return script.Query{}, errNoWorld
	}
	if neg {
		return script.Query{}, errors.New("this command has no negation; turn a comparison round, or use gone")
	}
	return script.Parse(args)
}

// namesShown bounds how many names are put on stdout: of 2,500 pods they would hide all else that a
// script that fails has to say.
const namesShown = 50

// note puts the names of the matching objects on stdout, and all of them into a variable.
func (s *session) note(ts *testscript.TestScript, q script.Query, answer script.Answer) {
	names := answer.Names()
	shown := names
	if rest := len(names) - namesShown; rest > 0 {
		shown = append(slices.Clone(names[:namesShown]), fmt.Sprintf("and %d more", rest))
	}
	fmt.Fprintln(ts.Stdout(), strings.Join(shown, " "))
	if q.As != "" {
		ts.Setenv(q.As, strings.Join(names, " "))
	}
}

// get puts a value of the first object that matches, by name, into a variable, or
// what a regular expression captures of it: get VARIABLE PATH [=~REGEXP] QUERY.
func (s *session) get(ts *testscript.TestScript, neg bool, args []string) error {
	pick := regexp.MustCompile(`(?s)^(.*)$`)
	if len(args) > 3 && strings.HasPrefix(args[2], "=~") {
		var err error
		if pick, err = regexp.Compile(args[2][len("=~"):]); err != nil {
			return err
		}
		args = slices.Delete(slices.Clone(args), 2, 3)
	}
	if neg || len(args) < 3 || pick.NumSubexp() != 1 {
		return errors.New("usage: get VARIABLE PATH [=~REGEXP with one group] QUERY")
	}
	q, err := s.query(false, args[2:])
	if err != nil {
		return err
	}
	answer, err := s.asker.Ask(s.ctx, q)
	if err != nil {
		return err
	}
	if len(answer.Matched) == 0 {
		return fmt.Errorf("no object matches %s", strings.Join(args[2:], " "))
	}
	value, err := script.Read(answer.Matched[0], args[1])
	if err != nil {
		return err
	}
	found := pick.FindStringSubmatch(value)
	if found == nil {
		return fmt.Errorf("%s is %q, which does not match", args[1], value)
	}
	ts.Setenv(args[0], found[1])
	fmt.Fprintln(ts.Stdout(), found[1])
	return nil
}

// crash ends something with SIGKILL: crash scaler N | autoscaler | agent NODE | kubelet NODE | COMPONENT.
func (s *session) crash(ts *testscript.TestScript, neg bool, args []string) error {
	if node, is := kubeletOf(neg, args); is && s.w != nil {
		return s.w.StopKubelet(s.ctx, node)
	}
	pod, component, err := s.target(neg, args)
	if err != nil {
		return err
	}
	if component == world.APIServer {
		s.away = append(s.away, laws.Span{From: time.Now(), To: forever})
	}
	if component != "" {
		return s.w.Plane.Kill(s.ctx, component)
	}
	return s.w.KillProgram(s.ctx, pod)
}

// exhaust has the kernel kill a program on a real machine for its memory limit:
// exhaust scaler N|leader, or exhaust agent NODE.
func (s *session) exhaust(_ *testscript.TestScript, neg bool, args []string) error {
	pod, component, err := s.target(neg, args)
	if err != nil || component != "" {
		return errors.Join(err, errors.New("usage: exhaust scaler N|leader, or exhaust agent NODE"))
	}
	return s.w.ExhaustProgram(s.ctx, pod)
}

// start starts again what has crashed: start scaler N | autoscaler | agent NODE | kubelet NODE | COMPONENT.
func (s *session) start(ts *testscript.TestScript, neg bool, args []string) error {
	if node, is := kubeletOf(neg, args); is && s.w != nil {
		return s.w.StartKubelet(s.ctx, node)
	}
	pod, component, err := s.target(neg, args)
	if err != nil {
		return err
	}
	if component == "" {
		return s.w.StartProgram(s.ctx, pod)
	}
	if err := s.w.Plane.Start(s.ctx, component); err != nil {
		return err
	}
	if component == world.APIServer && len(s.away) > 0 {
		s.away[len(s.away)-1].To = time.Now()
	}
	return nil
}

// rightless begins or ends a time in which a right of the programs is taken away,
// so that to be forbidden is no breach of a law: rightless begin|end.
func (s *session) rightless(ts *testscript.TestScript, neg bool, args []string) error {
	switch {
	case neg || len(args) != 1:
	case args[0] == "begin":
		s.away = append(s.away, laws.Span{From: time.Now(), To: forever})
		return nil
	case args[0] == "end" && len(s.away) > 0:
		s.away[len(s.away)-1].To = time.Now()
		return nil
	}
	return errors.New("usage: rightless begin, and later rightless end")
}

// iam attaches policies to the scaler's role: iam [NAME...] gives it the one of manifests/iam
// that every scaler needs, and those opt-in ones.
func (s *session) iam(ts *testscript.TestScript, neg bool, args []string) error {
	if s.w == nil {
		return errNoWorld
	}
	if neg {
		return errors.New("usage: iam [NAME...]")
	}
	return s.w.Restrict(s.ctx, args...)
}

// forever is the end of what nobody has ended.
var forever = time.Unix(1<<40, 0)

func (s *session) target(neg bool, args []string) (pod, component string, err error) {
	if s.w == nil {
		return "", "", errNoWorld
	}
	switch {
	case !neg && len(args) == 2 && (args[0] == "scaler" || args[0] == "agent"):
		pod, err = s.pod(args[0], args[1])
		return pod, "", err
	case !neg && len(args) == 1 && args[0] == "autoscaler":
		pods := s.w.Autoscalers()
		if len(pods) == 0 {
			return "", "", errors.New("no stand-in for Cluster Autoscaler runs")
		}
		return pods[0], "", nil
	case !neg && len(args) == 1:
		return "", args[0], nil
	}
	return "", "", errors.New("usage: crash|start scaler N | autoscaler | agent NODE | kubelet NODE | COMPONENT of the control plane")
}

// kubeletOf is the node whose kubelet is meant, if one is.
func kubeletOf(neg bool, args []string) (node string, is bool) {
	if neg || len(args) != 2 || args[0] != "kubelet" {
		return "", false
	}
	return args[1], true
}

// pod finds the pod of "scaler N" or "agent NODE".
func (s *session) pod(program, which string) (string, error) {
	if program == "agent" {
		return s.agent(which)
	}
	if which == "leader" {
		return s.leader()
	}
	return s.numbered(which)
}

// numbered finds a scaler by its number. It may have its node, and not run yet.
func (s *session) numbered(which string) (pod string, err error) {
	n, err := strconv.Atoi(which)
	if err != nil || n < 0 {
		return "", fmt.Errorf("scaler %q: want a number from 0, or leader", which)
	}
	return pod, s.until("scaler "+which, func() (bool, string) {
		scalers := s.w.Scalers()
		if n >= len(scalers) {
			return false, fmt.Sprintf("there are %d, from 0", len(scalers))
		}
		pod = scalers[n]
		return true, pod
	})
}

// agent finds the agent of a node. What a query has seen of a pod the world may hear a
// moment later, by a watch of its own.
func (s *session) agent(node string) (pod string, err error) {
	return pod, s.until("the agent of node "+node, func() (bool, string) {
		if pod, err = s.w.AgentOf(node); err != nil {
			return false, err.Error()
		}
		return true, pod
	})
}

// leader finds the scaler that holds the Lease, whose holder begins with the
// name of its pod.
func (s *session) leader() (string, error) {
	q := script.Query{Kind: "leases", Name: contract.LeaseScaler, Namespace: world.Namespace}
	answer, err := s.asker.Wait(s.ctx, q)
	if err != nil {
		return "", err
	}
	holder, err := script.Read(answer.Matched[0], ".spec.holderIdentity")
	if err != nil {
		return "", err
	}
	for _, pod := range s.w.Scalers() {
		if strings.HasPrefix(holder, pod) {
			return pod, nil
		}
	}
	return "", fmt.Errorf("the Lease is held by %q, which is none of %q", holder, s.w.Scalers())
}

// logs waits until a program has logged a line, or with ! looks that it has not:
// [!] logs scaler N|leader|agent NODE REGEXP.
func (s *session) logs(ts *testscript.TestScript, neg bool, args []string) error {
	if s.w == nil {
		return errNoWorld
	}
	if len(args) != 3 {
		return errors.New("usage: [!] logs scaler N|leader REGEXP, or agent NODE REGEXP")
	}
	pod, err := s.pod(args[0], args[1])
	if err != nil {
		return err
	}
	line, err := regexp.Compile("(?m)^.*" + args[2] + ".*$")
	if err != nil {
		return err
	}
	found := func() (bool, string) {
		content, err := s.w.Log(pod)
		if err != nil {
			return false, err.Error()
		}
		match := line.Find(content)
		return match != nil, string(match)
	}
	if neg {
		if ok, match := found(); ok {
			return fmt.Errorf("%s has logged %s", pod, match)
		}
		return nil
	}
	return s.until("a line "+args[2]+" in the log of "+pod, func() (bool, string) { return found() })
}

// metric waits until the sum of a metric's samples compares well:
// metric scaler N|leader NAME[{LABEL="VALUE"}]>=VALUE. There must be some with such labels.
func (s *session) metric(ts *testscript.TestScript, neg bool, args []string) error {
	if s.w == nil {
		return errNoWorld
	}
	if neg || len(args) != 3 {
		return errors.New("usage: metric scaler N|leader NAME[{LABELS}]OP VALUE, as one word")
	}
	want, err := parseMetric(args[2])
	if err != nil {
		return err
	}
	return s.until("metric "+args[2], func() (bool, string) {
		pod, err := s.pod(args[0], args[1])
		if err != nil {
			return false, err.Error()
		}
		sum, err := s.scrape(pod, want)
		if err != nil {
			return false, err.Error()
		}
		return want.Holds(strconv.FormatFloat(sum, 'f', -1, 64)), fmt.Sprint(sum)
	})
}

// health waits until a line of what a program says of its health matches:
// health scaler N|leader REGEXP.
func (s *session) health(ts *testscript.TestScript, neg bool, args []string) error {
	if s.w == nil {
		return errNoWorld
	}
	if neg || len(args) != 3 {
		return errors.New("usage: health scaler N|leader REGEXP")
	}
	line, err := regexp.Compile("(?m)" + args[2])
	if err != nil {
		return err
	}
	return s.until("health "+args[2], func() (bool, string) {
		pod, err := s.pod(args[0], args[1])
		if err != nil {
			return false, err.Error()
		}
		response, err := s.w.Get(s.ctx, pod, telemetry.HealthPath)
		if err != nil {
			return false, err.Error()
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return false, err.Error()
		}
		return line.Match(body), string(body)
	})
}

type metricQuery struct {
	name   string
	labels []string // each must be there, as LABEL="VALUE"
	script.Comparison
}

func parseMetric(word string) (metricQuery, error) {
	m := regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?(==|!=|>=|<=)([0-9.]+)$`).FindStringSubmatch(word)
	if m == nil {
		return metricQuery{}, fmt.Errorf("%q: want NAME{LABELS}>=VALUE", word)
	}
	q := metricQuery{name: m[1], Comparison: script.Comparison{Op: m[3], Value: m[4]}}
	if m[2] != "" {
		q.labels = strings.Split(m[2], ",")
	}
	return q, nil
}

// scrape adds up the samples of a metric that have the labels. That there is none with such labels,
// whatever their values, is an error: a sum of nothing would pass for 0.
func (s *session) scrape(pod string, want metricQuery) (sum float64, err error) {
	response, err := s.w.Get(s.ctx, pod, "/metrics")
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, err := io.ReadAll(response.Body)
		return 0, errors.Join(fmt.Errorf("%s: %s", response.Status, body), err)
	}
	exists := false
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		at := strings.LastIndexByte(lines.Text(), ' ') // labels may hold spaces, too
		if at < 0 {
			continue
		}
		series, value := lines.Text()[:at], lines.Text()[at+1:]
		name, labels, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		if name != want.name {
			continue
		}
		named, matches := true, true
		for _, l := range want.labels {
			label, _, _ := strings.Cut(l, "=")
			named = named && strings.Contains(","+labels, ","+label+"=")
			matches = matches && strings.Contains(","+labels+",", ","+l+",")
		}
		exists = exists || named
		if !matches {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return 0, fmt.Errorf("sample %q: %w", lines.Text(), err)
		}
		sum += v
	}
	if err := lines.Err(); err != nil {
		return 0, err
	}
	if !exists {
		return 0, fmt.Errorf("%s has no sample of %s with such labels as %v", pod, want.name, want.labels)
	}
	return sum, nil
}

// pause lets time pass where time itself is the matter, such as an API server
// that is away for 20 s: pause DURATION. Never to wait for something.
func (s *session) pause(ts *testscript.TestScript, neg bool, args []string) error {
	if s.w == nil {
		return errNoWorld
	}
	if neg || len(args) != 1 {
		return errors.New("usage: pause DURATION")
	}
	d, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	select {
	case <-time.After(d):
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// until asks, every few milliseconds, what has no watch: logs, metrics and the
// fake AWS.
func (s *session) until(what string, holds func() (ok bool, seen string)) error {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, seen := holds()
		if ok {
			return nil
		}
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			return fmt.Errorf("waiting for %s: seen last: %s", what, seen)
		}
	}
}

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/script"
)

// aws gives the fake AWS a command of its control endpoint, or waits for a state
// of it:
//
//	aws COMMAND [INSTANCE|NODE|GROUP] [KEY=VALUE...]
//	aws group NAME desired==2 in-service>=1 ...             waits
//	aws instance INSTANCE|NODE state==Terminating:Wait ...  waits
func (s *session) aws(ts *testscript.TestScript, neg bool, args []string) error {
	if s.w == nil {
		return errNoWorld
	}
	if neg || len(args) == 0 {
		return errors.New("usage: aws COMMAND [INSTANCE|NODE|GROUP] [KEY=VALUE...]")
	}
	if len(args) > 2 && args[0] == "group" {
		return s.awaitGroup(args[1], args[2:])
	}
	if len(args) > 2 && args[0] == "instance" {
		return s.awaitInstance(args[1], args[2:])
	}
	order, err := s.order(args[1:])
	if err != nil {
		return err
	}
	answer, err := s.post(args[0], order)
	fmt.Fprintln(ts.Stdout(), answer)
	return err
}

// order makes the parameters of a command. A first word without a = is whom it
// is about; values are JSON where they can be, and text where not.
func (s *session) order(words []string) (map[string]any, error) {
	order := map[string]any{}
	for i, word := range words {
		key, value, found := strings.Cut(word, "=")
		if !found && i == 0 {
			s.address(order, word)
			continue
		}
		if !found {
			return nil, fmt.Errorf("%q: want KEY=VALUE", word)
		}
		var v any
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			v = value
		}
		order[key] = v
	}
	return order, nil
}

// address says whom a command is about: a group, or an instance by its id or by
// its node's name.
func (s *session) address(order map[string]any, target string) {
	if _, err := s.w.AWS.Group(target); err == nil {
		order["group"] = target
		return
	}
	order["instance"] = s.instanceID(target)
}

func (s *session) post(command string, order map[string]any) (answer string, err error) {
	body, err := json.Marshal(order)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.w.AWS.ControlURL()+"/"+command, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("aws %s: %s", command, text)
	}
	return strings.TrimSpace(string(text)), nil
}

// instanceID takes the name of a node for its instance.
func (s *session) instanceID(target string) string {
	if i, ok := s.w.Instance(target); ok {
		return i.ID
	}
	return target
}

func (s *session) awaitGroup(name string, conditions []string) error {
	return s.awaitValues("group "+name, conditions, func(c *cloud.Cloud) (map[string]string, error) {
		g, err := c.Group(name)
		if err != nil {
			return nil, err
		}
		leaving := 0
		serving := 0
		launched := 0
		for _, i := range g.Instances {
			if i.LifecycleState.Leaving() {
				leaving++
			}
			if i.LifecycleState == cloud.InService {
				serving++
			}
		}
		for _, i := range c.Instances() { // those that are gone among them
			if i.Group == name {
				launched++
			}
		}
		return map[string]string{
			"min": strconv.Itoa(g.Min), "max": strconv.Itoa(g.Max), "desired": strconv.Itoa(g.Desired),
			"instances": strconv.Itoa(len(g.Instances)), "in-service": strconv.Itoa(serving),
			"leaving": strconv.Itoa(leaving), "launched": strconv.Itoa(launched), "warm": strconv.Itoa(len(g.Warm)),
		}, nil
	})
}

func (s *session) awaitInstance(target string, conditions []string) error {
	id := s.instanceID(target)
	return s.awaitValues("instance "+id, conditions, func(c *cloud.Cloud) (map[string]string, error) {
		i, err := c.Instance(id)
		if err != nil {
			return nil, err
		}
		return map[string]string{"state": string(i.LifecycleState), "ec2": i.EC2State, "os": string(i.OS), "health": i.Health, "hooks": strconv.Itoa(len(i.Waiting))}, nil
	})
}

// awaitValues waits until all conditions hold of what look finds.
func (s *session) awaitValues(what string, conditions []string, look func(*cloud.Cloud) (map[string]string, error)) error {
	type condition struct {
		name string
		script.Comparison
	}
	var all []condition
	for _, word := range conditions {
		name, c, err := script.ParseComparison(word)
		if err != nil {
			return err
		}
		all = append(all, condition{name, c})
	}
	return s.until(what+" "+strings.Join(conditions, " "), func() (ok bool, seen string) {
		var values map[string]string
		err := s.w.AWS.With(func(c *cloud.Cloud, now time.Time) (err error) {
			c.Advance(now)
			values, err = look(c)
			return err
		})
		if err != nil {
			return false, err.Error()
		}
		ok = true
		for _, c := range all {
			ok = ok && c.Holds(values[c.name])
		}
		return ok, fmt.Sprint(values)
	})
}

// calls looks at the log of AWS calls, or waits until it shows something:
//
//	calls [await] OPERATION [count==N] [span<=MS] [PARAMETER==VALUE...] [error==CODE]
//
// Without a count there must be one at least. Span is the time from the first of
// the calls found to the last, in milliseconds. OPERATION is a regular expression
// for the whole name. With ! there must be none.
func (s *session) calls(ts *testscript.TestScript, neg bool, args []string) error {
	if s.w == nil {
		return errNoWorld
	}
	waits := len(args) > 0 && args[0] == "await"
	if waits {
		args = args[1:]
	}
	if len(args) == 0 || (neg && waits) {
		return errors.New("usage: [!] calls [await] OPERATION [count==N] [span<=MS] [PARAMETER==VALUE...] [error==CODE]")
	}
	q, err := parseCalls(args)
	if err != nil {
		return err
	}
	if neg {
		q.count = script.Comparison{Op: "==", Value: "0"}
	}
	holds := func() (bool, string) {
		found := q.find(s.callLog())
		return q.holds(found), fmt.Sprintf("%d calls match\n%s\nof\n%s", len(found), showCalls(found), showCalls(s.callLog()))
	}
	if waits {
		return s.until("calls "+strings.Join(args, " "), holds)
	}
	ok, seen := holds()
	if !ok {
		return fmt.Errorf("calls %s: %s", strings.Join(args, " "), seen)
	}
	return nil
}

type callQuery struct {
	operation  *regexp.Regexp
	count      script.Comparison
	span       *script.Comparison // nil asks nothing
	conditions map[string]script.Comparison
}

func parseCalls(words []string) (callQuery, error) {
	q := callQuery{count: script.Comparison{Op: ">=", Value: "1"}, conditions: map[string]script.Comparison{}}
	var err error
	if q.operation, err = regexp.Compile("^(" + words[0] + ")$"); err != nil {
		return q, err
	}
	for _, word := range words[1:] {
		name, c, err := script.ParseComparison(word)
		if err != nil {
			return q, err
		}
		switch name {
		case "count":
			q.count = c
		case "span":
			q.span = &c
		default:
			q.conditions[name] = c
		}
	}
	return q, nil
}

// holds reports whether the calls that were found are as many, and as close
// together, as they should be.
func (q callQuery) holds(found []fakeaws.Call) bool {
	if !q.count.Holds(strconv.Itoa(len(found))) {
		return false
	}
	if q.span == nil {
		return true
	}
	if len(found) == 0 {
		return false
	}
	first := slices.MinFunc(found, earlier).Time
	last := slices.MaxFunc(found, earlier).Time
	return q.span.Holds(strconv.FormatInt(last.Sub(first).Milliseconds(), 10))
}

func earlier(a, b fakeaws.Call) int { return a.Time.Compare(b.Time) }

func (q callQuery) find(all []fakeaws.Call) []fakeaws.Call {
	return slices.DeleteFunc(slices.Clone(all), func(c fakeaws.Call) bool { return !q.matches(c) })
}

func (q callQuery) matches(c fakeaws.Call) bool {
	if !q.operation.MatchString(c.Operation) {
		return false
	}
	for name, want := range q.conditions {
		value := c.Params[name]
		if name == "error" {
			value = c.Error
		}
		if !want.Holds(value) {
			return false
		}
	}
	return true
}

// showCalls leaves out what only looks, unless there is nothing else.
func showCalls(calls []fakeaws.Call) string {
	var lines []string
	for _, c := range calls {
		if strings.HasPrefix(c.Operation, "Describe") {
			continue
		}
		lines = append(lines, "  "+c.String())
	}
	return strings.Join(lines, "\n")
}

// callLog is what AWS has been asked so far; the metadata services are not AWS.
func (s *session) callLog() []fakeaws.Call {
	return s.w.AWS.Calls(func(c fakeaws.Call) bool { return c.Service != "imds" })
}

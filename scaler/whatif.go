package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/statuspage"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/policy"
)

const (
	// mostQuery is the most bytes that a question has.
	mostQuery = 4 << 10
	// lookTime is how long the loop is waited for: it takes the snapshot between two
	// evaluations, and one may act for a while.
	lookTime = 30 * time.Second
)

// ask answers GET /plan?set=flag=value&set=...: what the scaler would do now, by its own policy
// or one that differs by these flags. It decides on a snapshot that the loop takes, holds nothing
// that the loop waits for, and does nothing.
type ask struct {
	// policy is the process's own, and leads says who leads, if that is known, and whether it is
	// this process.
	policy policy.Policy
	leads  func() (leader string, us bool)
	// look takes a snapshot.
	look func(context.Context) seen
	now  func() time.Time

	// one is held while one plan is made, and rests is until when none is begun: the leader has
	// half of the time for itself, whoever asks how often.
	one   sync.Mutex
	rests time.Time
}

func (a *ask) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if leader, us := a.leads(); !us {
		if leader == "" {
			leader = "not known yet"
		}
		http.Error(w, "this replica does not lead; who leads: "+leader, http.StatusServiceUnavailable)
		return
	}
	asked, err := a.read(r.URL)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text, refused := a.plan(r.Context(), asked)
	if refused != nil {
		refused.write(w)
		return
	}
	w.Header().Set(statuspage.HeaderAsked, "true")
	answer(w, text)
}

// plan makes a plan. A place to read it in is another matter: who reads slowly keeps no other from
// asking.
func (a *ask) plan(ctx context.Context, asked policy.Policy) ([]byte, *refusal) {
	if !a.one.TryLock() {
		return nil, tooMany(time.Second)
	}
	defer a.one.Unlock()
	if wait := a.rests.Sub(a.now()); wait > 0 {
		return nil, tooMany(wait)
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	s := a.look(ctx)
	began := a.now()
	defer func() {
		ended := a.now()
		a.rests = ended.Add(s.took + ended.Sub(began)) // also for who has hung up
	}()
	if err := cmp.Or(s.err, ctx.Err()); err != nil {
		return nil, &refusal{status: http.StatusServiceUnavailable, text: fmt.Sprintf("no snapshot: %v", err)}
	}
	if err := tooMuchHeadroom(s.snapshot, a.policy.Headroom, asked.Headroom); err != nil {
		return nil, &refusal{status: http.StatusBadRequest, text: err.Error()}
	}
	text, err := json.Marshal(newPrintout(s.snapshot, plan.Decide(s.snapshot, asked)))
	if err != nil {
		return nil, &refusal{status: http.StatusInternalServerError, text: err.Error()}
	}
	return text, nil
}

// read is the policy that a question asks for.
func (a *ask) read(u *url.URL) (policy.Policy, error) {
	if len(u.RawQuery) > mostQuery {
		return policy.Policy{}, fmt.Errorf("the question has %d bytes: want %d at the most", len(u.RawQuery), mostQuery)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return policy.Policy{}, fmt.Errorf("reading the question: %w", err)
	}
	for key := range query {
		if key != "set" {
			return policy.Policy{}, fmt.Errorf("%q is no part of a question: want set=flag=value", key)
		}
	}
	return withFlags(a.policy, query["set"])
}

// withFlags changes a policy by flags, as name=value, read as those of a command line are.
func withFlags(is policy.Policy, set []string) (policy.Policy, error) {
	var s settings
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	s.registerPolicy(flags)
	s.policy = is // what flags replace is replaced as a whole, so nothing is shared that changes
	var wrong []error
	for _, one := range set {
		name, value, valued := strings.Cut(strings.TrimPrefix(one, "--"), "=")
		flag := flags.Lookup(name)
		switch {
		case flag == nil && knownFlag(name):
			wrong = append(wrong, fmt.Errorf("--%s says how the program runs and reads the cluster, and cannot be asked about: want a flag of the policy, such as --consolidate", name))
			continue
		case flag == nil:
			wrong = append(wrong, fmt.Errorf("there is no flag --%s", name))
			continue
		case !valued && flag.NoOptDefVal == "":
			wrong = append(wrong, fmt.Errorf("--%s wants a value, as %s=value", name, name))
			continue
		case !valued:
			value = flag.NoOptDefVal
		}
		if err := flags.Set(flag.Name, value); err != nil {
			wrong = append(wrong, err)
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return policy.Policy{}, err
	}
	return s.policy, errors.Join(s.checkPolicy(), unseen(is, s.policy), tooDear(is, s.policy))
}

// knownFlag reports whether run has such a flag.
func knownFlag(name string) bool {
	return flagsOfRun(new(settings)).Lookup(name) != nil
}

// unseen refuses policies that go by what the process does not read.
func unseen(is, asked policy.Policy) error {
	var wrong []error
	for _, c := range []struct {
		reads, wants bool
		flag         string
	}{
		{is.AsksForPriorities(), asked.AsksForPriorities(), "--expander=priority"},
		{is.AsksForOwners(), asked.AsksForOwners(), "--min-replica-count"},
		{is.OutOfService, asked.OutOfService, "--out-of-service-taint"},
	} {
		if c.wants && !c.reads {
			wrong = append(wrong, fmt.Errorf("%s cannot be asked about: the scaler reads what it goes by only if it runs with it", c.flag))
		}
	}
	return errors.Join(wrong...)
}

// tooDear refuses policies that make more pods than the leader has memory for, but as many as its
// own policy makes.
func tooDear(is, asked policy.Policy) error {
	var wrong []error
	most := max(is.BufferPods, policy.DefaultPolicy().BufferPods)
	for _, c := range []struct {
		flag string
		pods int
	}{{"--max-capacity-buffer-pods", asked.BufferPods}, {"--max-capacity-buffer-pods-per-namespace", asked.BufferPodsPerNamespace}} {
		if c.pods > most {
			wrong = append(wrong, fmt.Errorf("%s=%d cannot be asked about: want %d at the most", c.flag, c.pods, most))
		}
	}
	return errors.Join(wrong...)
}

// tooMuchHeadroom refuses a percentage by the pods that it makes of what this cluster's pods
// request; as many are allowed as by number, or as the scaler's own policy makes.
func tooMuchHeadroom(s fleet.Snapshot, is, asked fleet.Headroom) error {
	if asked.Percent <= is.Percent {
		return nil
	}
	whole := pieces(s.Pods)
	most := max(fleet.MostHeadroom, int(math.Ceil(whole*is.Percent/100)))
	if n := int(math.Ceil(whole * asked.Percent / 100)); n > most {
		each := roomOf(fleet.HeadroomPiece)
		return fmt.Errorf("--headroom=%s cannot be asked about: it makes %d pods of %.0fm cpu and %.0fGi memory, want %d at the most", asked, n, each.cpu*1000, each.memory/(1<<30), most)
	}
	return nil
}

// pieces is how many pieces of headroom are as much as the pods on nodes request.
func pieces(pods []*fleet.Pod) float64 {
	var sum room
	for _, p := range pods {
		if p.Node != "" && !p.Ended() && p.Spec != nil {
			asks := roomOf(resource.PodRequests(&corev1.Pod{Spec: *p.Spec}, resource.PodResourcesOptions{}))
			sum = room{sum.cpu + asks.cpu, sum.memory + asks.memory}
		}
	}
	each := roomOf(fleet.HeadroomPiece)
	return max(sum.cpu/each.cpu, sum.memory/each.memory)
}

// seen is what the loop sees, and how long it took to look.
type seen struct {
	snapshot fleet.Snapshot
	took     time.Duration
	err      error
}

// lookBetween has the loop take a snapshot between two evaluations. Once the loop has heard, it is
// waited for even by who has hung up: that is a moment, and what it cost is known then.
func lookBetween(asked chan<- chan<- seen) func(context.Context) seen {
	return func(ctx context.Context) seen {
		answer := make(chan seen, 1)
		select {
		case asked <- answer:
		case <-ctx.Done():
			return seen{err: fmt.Errorf("the loop is busy: %w", ctx.Err())}
		}
		began := time.Now()
		s := <-answer
		s.took = time.Since(began)
		return s
	}
}

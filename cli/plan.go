package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
)

const (
	// mostAnswer is more bytes than any plan has, and mostRefusal than any refusal.
	mostAnswer, mostRefusal = 256 << 20, 4 << 10
	// usualPort is where a scaler answers unless its --verdicts-port says otherwise.
	usualPort = 8086
)

// planOptions are the flags of plan.
type planOptions struct {
	output  output
	set     []string
	leader  string
	timeout time.Duration
}

func (c *cli) planCommand() *cobra.Command {
	o := &planOptions{}
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Ask the leader what it would do now, and show what differs from its last evaluation.",
		Long: `Ask the leader what it would do now, and show what differs from its last evaluation. Nothing is
done. --set asks what it would do with other flags.

The leader is reached as kubectl port-forward reaches it.`,
		Example: `  kubectl windlass plan
  kubectl windlass plan --set=consolidate=unneeded --set=scale-down-unneeded-time=2m`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.timeout <= 0 {
				return fmt.Errorf("--timeout=%s: want a time such as 1m", o.timeout)
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), o.timeout, fmt.Errorf("no answer within --timeout=%s", o.timeout))
			defer cancel()
			return c.plan(ctx, o)
		},
	}
	o.output.register(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&o.set, "set", nil, "a flag of the scaler's policy, as flag=value, to plan with; may be given several times")
	f.StringVar(&o.leader, "leader-url", "", "where the leader serves its verdicts, such as http://127.0.0.1:8086, where it is reached in another way than by port-forward")
	f.DurationVar(&o.timeout, "timeout", time.Minute, "for how long at the most")
	return cmd
}

func (c *cli) plan(ctx context.Context, o *planOptions) error {
	base := o.leader
	if base == "" {
		forwarded, stop, err := c.toLeader(ctx)
		if err != nil {
			return err
		}
		defer stop()
		base = forwarded
	}
	at, err := url.Parse(base)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return fmt.Errorf("--leader-url=%q: want an address such as http://127.0.0.1:%d", base, usualPort)
	}
	query := url.Values{}
	for _, one := range o.set {
		query.Add("set", one)
	}
	var last, now view.Plan
	if _, err := askLeader(ctx, at.JoinPath("/").String(), &last); err != nil {
		return fmt.Errorf("asking the leader for its last plan: %w", err)
	}
	header, err := askLeader(ctx, at.JoinPath("/plan").String()+"?"+query.Encode(), &now)
	if err != nil {
		return fmt.Errorf("asking the leader: %w", err)
	}
	if header.Get(statuspage.HeaderAsked) == "" {
		return errors.New("the scaler is of an older version, which answers no questions: upgrade it")
	}
	return o.output.print(c.Out, view.NewPlanned(last, now, o.set))
}

// askLeader reads an answer. A leader that is busy is asked again when it says.
func askLeader(ctx context.Context, at string, into *view.Plan) (http.Header, error) {
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
		if err != nil {
			return nil, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return nil, err
		}
		wait, err := readAnswer(response, into)
		if err == nil || wait == 0 {
			return response.Header, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, context.Cause(ctx))
		case <-time.After(wait):
		}
	}
}

// readAnswer returns how long to wait where one may ask again.
func readAnswer(response *http.Response, into *view.Plan) (wait time.Duration, err error) {
	defer func() { _ = response.Body.Close() }() // it was only read
	if response.StatusCode == http.StatusOK {
		if err := json.NewDecoder(io.LimitReader(response.Body, mostAnswer)).Decode(into); err != nil {
			return 0, fmt.Errorf("reading its answer: %w", err)
		}
		return 0, nil
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, mostRefusal))
	if err != nil {
		return 0, fmt.Errorf("reading its answer: %w", err)
	}
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")) // none is 0
	if response.StatusCode == http.StatusTooManyRequests {
		wait = time.Duration(min(max(seconds, 1), 60)) * time.Second
	}
	return wait, fmt.Errorf("%s: %s", response.Status, contract.OneLine(strings.TrimSpace(string(text))))
}

// toLeader forwards a port to the leader's pod.
func (c *cli) toLeader(ctx context.Context) (base string, stop func(), err error) {
	r, err := c.reader()
	if err != nil {
		return "", nil, err
	}
	pod, err := r.leadersPod(ctx)
	if err != nil {
		return "", nil, err
	}
	port, err := verdictsPort(pod)
	if err != nil {
		return "", nil, err
	}
	base, stop, err = c.forward(ctx, pod, port)
	if err != nil {
		return "", nil, fmt.Errorf("reaching pod %s: %w; the Role windlass-planner of manifests/components/viewers gives the right, and --leader-url is for leaders that are reached in another way", pod.Name, err)
	}
	return base, stop, nil
}

// leadersPod is that of the scaler that leads.
func (r reader) leadersPod(ctx context.Context) (*corev1.Pod, error) {
	w := view.World{}
	if err := r.lease(ctx, &w); err != nil {
		return nil, err
	}
	holder := w.Leader.Holder
	switch {
	case *w.Leader == view.Leader{}:
		return nil, fmt.Errorf("namespace %s has no Lease %s: windlass-scaler is not installed there, or has not led yet; --windlass-namespace names another", r.system, contract.LeaseScaler)
	case holder == "":
		return nil, errors.New("no scaler leads at the moment: see kubectl windlass check")
	}
	pod, err := r.client.CoreV1().Pods(r.system).Get(ctx, holder, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("%s leads, but is no pod that can be read: %w; --leader-url is for leaders that are reached in another way", holder, err)
	}
	return pod, nil
}

// verdictsPort reads the scaler's flag of that name off its pod.
func verdictsPort(pod *corev1.Pod) (port int, err error) {
	port = usualPort
	for _, container := range pod.Spec.Containers {
		words := append(container.Command[:len(container.Command):len(container.Command)], container.Args...)
		for i, word := range words {
			value, is := strings.CutPrefix(word, "--verdicts-port=")
			if word == "--verdicts-port" && i+1 < len(words) {
				value, is = words[i+1], true
			}
			if !is {
				continue
			}
			if port, err = strconv.Atoi(value); err != nil || port < 1 || port > 65535 {
				return 0, fmt.Errorf("pod %s has --verdicts-port=%s, so it answers no questions: give it a port", pod.Name, contract.Shorten(value, 40))
			}
		}
	}
	return port, nil
}

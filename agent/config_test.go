package main

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/agent/imds"
	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/telemetry"
)

// execute runs the program with arguments, and returns what it says.
func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var out bytes.Buffer
	c := command()
	c.SetArgs(append([]string{}, args...)) // of nil it would take the ones of this test
	c.SetOut(&out)
	c.SetErr(&out)
	err := c.ExecuteContext(ctx)
	return out.String(), err
}

func TestBadConfiguration(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		env  map[string]string
		want []string
	}{
		{"no node name", nil, nil, []string{"is not known", "--node-name", "NODE_NAME"}},
		{"a name that no node has", []string{"--node-name=Web_1"}, nil, []string{`"Web_1"`, "NODE_NAME"}},
		{"unknown flag", []string{"--node", "n"}, nil, []string{"unknown flag: --node", "windlass-agent --help"}},
		{"arguments", []string{"n"}, nil, []string{`unknown command "n"`}},
		{"no duration", []string{"--imds-poll-interval=5"}, nil, []string{"--imds-poll-interval", `"5"`}},
		{"too late", []string{"--imds-poll-interval=5m"}, map[string]string{"NODE_NAME": "n"}, []string{"--imds-poll-interval is 5m0s, more than 30s"}},
		{"a flood", []string{"--imds-poll-interval=1ns"}, map[string]string{"NODE_NAME": "n"}, []string{"--imds-poll-interval is 1ns"}},
		{"no time to drain", []string{"--termination-drain-time=-1s"}, map[string]string{"NODE_NAME": "n"}, []string{"--termination-drain-time is -1s"}},
		{"a last chance without time", []string{"--last-chance-time=0"}, map[string]string{"NODE_NAME": "n"}, []string{"--last-chance-time is 0s", "positive"}},
		{"a negative longest wait for it", []string{"--max-permit-wait=-1s"}, map[string]string{"NODE_NAME": "n"}, []string{"--max-permit-wait is -1s"}},
		{"a negative wait for the permit", []string{"--permit-wait=-1s"}, map[string]string{"NODE_NAME": "n"}, []string{"--permit-wait is -1s"}},
		{"a negative wait for load balancers", []string{"--load-balancer-wait=-1s"}, map[string]string{"NODE_NAME": "n"}, []string{"--load-balancer-wait is -1s"}},
		{"a negative wait for volumes", []string{"--volume-detach-wait=-1s"}, map[string]string{"NODE_NAME": "n"}, []string{"--volume-detach-wait is -1s"}},
		{"a policy for what there is not", []string{"--notice-policy=rebalance=drain,sport=ignore"}, nil, []string{"--notice-policy", `"sport"`, "spot-terminate", "maintenance"}},
		{"a policy that is none", []string{"--notice-policy=spot=run"}, nil, []string{"--notice-policy", "spot=run", "ignore", "cordon", "drain"}},
		{"a policy without a value", []string{"--notice-policy=spot"}, nil, []string{"--notice-policy", `"spot"`}},
		{"two policies for one notice", []string{"--notice-policy=spot=drain,spot=ignore"}, nil, []string{"--notice-policy", `"spot"`, "drain", "ignore"}},
		{"a policy for requests", []string{"--notice-policy=scale-down=ignore"}, nil, []string{"--notice-policy", "scale-down=ignore"}},
		{"a last chance that is none", []string{"--last-chance=spot=kill"}, nil, []string{"--last-chance", "spot=kill", "leave", "delete"}},
		{"steps without a grace", []string{"--drain-steps=1000"}, nil, []string{"--drain-steps", `"1000"`, "PRIORITY:GRACE"}},
		{"steps of one priority", []string{"--drain-steps=0:0s,0:5s"}, nil, []string{"--drain-steps", "priority 0 stands twice"}},
		{"two at once", []string{"--termination-drain-time=0"}, nil, []string{"--termination-drain-time", "NODE_NAME"}},
		{"log format", []string{"--log-format=xml"}, map[string]string{"NODE_NAME": "n"}, []string{`"xml"`}},
		{"no cluster", nil, map[string]string{"NODE_NAME": "n"}, []string{"--kubeconfig"}},
		{"no such kubeconfig", []string{"--kubeconfig=/nonexistent"}, map[string]string{"NODE_NAME": "n"}, []string{"/nonexistent"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, key := range []string{"NODE_NAME", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"} {
				t.Setenv(key, tc.env[key])
			}
			_, err := execute(t, tc.args...)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

// The environment fills in for flags, and flags win.
// Without metadata nothing is asked of any address, and the agent goes on until it is told to stop.
func TestNoMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watch, identify := noticesOf(config{metadata: metadataNone}, nil, slog.New(slog.DiscardHandler))
		identify("lab://a")
		ctx, cancel := context.WithCancel(t.Context())
		ended := false
		go func() {
			watch(ctx, func(s imds.Sighting) { t.Errorf("saw %+v", s) })
			ended = true
		}()
		time.Sleep(time.Hour)
		if synctest.Wait(); ended {
			t.Error("it ended by itself")
		}
		cancel()
		if synctest.Wait(); !ended {
			t.Error("it goes on")
		}
	})
	c := config{nodeName: "n", metadata: "gce"}
	if err := c.check(); err == nil || !strings.Contains(err.Error(), "--metadata=gce: want ec2 or none") {
		t.Errorf("got %v", err)
	}
}

func TestConfig(t *testing.T) {
	t.Setenv("NODE_NAME", "from-env")
	t.Setenv("POD_NAMESPACE", "ns")
	t.Setenv("POD_NAME", "pod")
	parse := func(args ...string) config {
		var c config
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		c.register(flags)
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := parse(); c.nodeName != "from-env" || c.identity() != "ns/pod" || c.check() != nil {
		t.Errorf("%+v: %v", c, c.check())
	}
	usual := drain.DefaultPolicy()
	usual.Version = telemetry.Version()
	if diff := cmp.Diff(usual, parse().policy); diff != "" {
		t.Errorf("without flags (-want +got):\n%s", diff)
	}

	want := drain.DefaultPolicy()
	want.Version = telemetry.Version()
	want.Responses[notice.Rebalance] = notice.Response{Do: notice.Drain, Permit: true, LastChance: notice.Leave}
	for cause, response := range want.Responses {
		if cause.Kind() == contract.KindSpot {
			response.LastChance = notice.Delete
			want.Responses[cause] = response
		}
	}
	want.LastChanceTime = 20 * time.Second
	want.Steps = drainable.Steps{{Priority: 0, Grace: 0}, {Priority: 1000, Grace: 10 * time.Second}}
	want.EvictDaemonSets = true
	want.WaitForJobs = true
	want.KeepLocalStorage, want.DryRun = true, true
	want.TerminationDrainTime = 3 * time.Minute
	want.PermitWait = 0
	want.LoadBalancerWait = 15 * time.Second
	want.VolumeWait = time.Minute
	c := parse("--node-name=n", "--last-chance=spot=leave,rebalance=leave", "--last-chance=spot=delete", "--notice-policy=rebalance=drain", "--notice-policy=spot-stop=drain",
		"--last-chance-time=20s", "--drain-steps=1000:10s,0:0s", "--evict-daemonset-pods", "--wait-for-jobs", "--keep-local-storage", "--dry-run",
		"--termination-drain-time=3m",
		"--permit-wait=0", "--load-balancer-wait=15s", "--volume-detach-wait=1m")
	if c.nodeName != "n" || c.check() != nil {
		t.Errorf("%+v: %v", c, c.check())
	}
	if diff := cmp.Diff(want, c.policy); diff != "" {
		t.Errorf("with every flag (-want +got):\n%s", diff)
	}
}

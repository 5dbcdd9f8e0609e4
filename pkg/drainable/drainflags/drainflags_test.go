package drainflags_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/drainable/drainflags"
)

func parse(args ...string) (drainable.Manner, error) {
	m := drainable.DefaultManner()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	drainflags.Register(flags, &m)
	if err := flags.Parse(args); err != nil {
		return m, err
	}
	return m, drainflags.Check(m)
}

func TestFlags(t *testing.T) {
	got, err := parse()
	if diff := cmp.Diff(drainable.DefaultManner(), got); diff != "" || err != nil {
		t.Errorf("without flags: %v (-want +got):\n%s", err, diff)
	}
	got, err = parse("--drain-steps=1000:10s,0:0s", "--evict-daemonset-pods", "--wait-for-jobs", "--keep-local-storage", "--load-balancer-wait=15s", "--volume-detach-wait=0", "--kube-proxy-drain-taint")
	want := drainable.Manner{
		Steps:           drainable.Steps{{Priority: 0}, {Priority: 1000, Grace: 10 * time.Second}},
		EvictDaemonSets: true, WaitForJobs: true, KeepLocalStorage: true, LoadBalancerWait: 15 * time.Second, KubeProxyTaint: true,
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("with every flag: %v (-want +got):\n%s", err, diff)
	}
}

func TestWrongFlags(t *testing.T) {
	for _, arg := range []string{"--drain-steps=high:10s", "--load-balancer-wait=-1s", "--volume-detach-wait=-1s"} {
		name, _, _ := strings.Cut(arg, "=")
		if _, err := parse(arg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want an error that names the flag", arg, err)
		}
	}
}

package notice_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
)

// Each row is what the flags say, and how that differs from the defaults.
func TestParseResponses(t *testing.T) {
	type change map[notice.Cause]notice.Response
	for _, tc := range []struct {
		reason                string
		policies, lastChances []string
		want                  change
	}{
		{reason: "nothing said is the defaults"},
		{reason: "a cause keeps what nobody spoke of",
			policies: []string{"rebalance=drain"},
			want:     change{notice.Rebalance: {Do: notice.Drain, Permit: true, LastChance: notice.Leave}}},
		{reason: "a drain without a lead begins at once",
			policies: []string{"instance-reboot=drain"},
			want:     change{notice.InstanceReboot: {Do: notice.Drain, Permit: true, LastChance: notice.Leave}}},
		{reason: "and one with a lead that long before",
			policies: []string{"instance-retirement=drain@2h"},
			want:     change{notice.InstanceRetirement: {Do: notice.Drain, Lead: 2 * time.Hour, Permit: true, LastChance: notice.Leave}}},
		{reason: "a kind stands for its causes, and a cause wins over its kind whatever the order",
			policies: []string{"spot-stop=cordon", "spot=ignore", "spot-hibernate=drain@90s"},
			want: change{
				notice.SpotTerminate: {Do: notice.Ignore, LastChance: notice.Leave},
				notice.SpotStop:      {Do: notice.Cordon, LastChance: notice.Leave},
				notice.SpotHibernate: {Do: notice.Drain, Lead: 90 * time.Second, LastChance: notice.Leave},
			}},
		{reason: "every cause of maintenance",
			policies: []string{"maintenance=ignore"},
			want: change{
				notice.InstanceReboot:     {Do: notice.Ignore, Permit: true, LastChance: notice.Leave},
				notice.SystemReboot:       {Do: notice.Ignore, Permit: true, LastChance: notice.Leave},
				notice.SystemMaintenance:  {Do: notice.Ignore, Permit: true, LastChance: notice.Leave},
				notice.InstanceStop:       {Do: notice.Ignore, Permit: true, LastChance: notice.Leave},
				notice.InstanceRetirement: {Do: notice.Ignore, Permit: true, LastChance: notice.Leave},
			}},
		{reason: "every cause of asg",
			policies: []string{"asg=cordon"},
			want: change{
				notice.ASGTerminate: {Do: notice.Cordon, LastChance: notice.Leave},
				notice.ASGWarm:      {Do: notice.Cordon, LastChance: notice.Leave},
				notice.ASGDetach:    {Do: notice.Cordon, LastChance: notice.Leave},
			}},
		{reason: "a last chance, also of requests",
			lastChances: []string{"spot=delete", "spot-hibernate=leave", "request=delete", "scale-down=delete"},
			want: change{
				notice.SpotTerminate: {Do: notice.Drain, LastChance: notice.Delete},
				notice.SpotStop:      {Do: notice.Drain, LastChance: notice.Delete},
				notice.Request:       {Do: notice.Drain, LastChance: notice.Delete},
				notice.ScaleDown:     {Do: notice.Drain, Permit: true, LastChance: notice.Delete},
			}},
		{reason: "both flags, spaces, and a word said twice alike",
			policies: []string{" rebalance=ignore", "rebalance=ignore"}, lastChances: []string{"rebalance=delete "},
			want: change{notice.Rebalance: {Do: notice.Ignore, Permit: true, LastChance: notice.Delete}}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := notice.ParseResponses(tc.policies, tc.lastChances)
			if err != nil {
				t.Fatal(err)
			}
			want := notice.DefaultResponses()
			for c, r := range tc.want {
				want[c] = r
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Each row is a flag, and what its error must say.
func TestParseResponsesRefuses(t *testing.T) {
	for _, tc := range []struct{ policy, lastChance, want string }{
		{policy: "rebalance", want: `notice policy "rebalance" has no value`},
		{policy: "", want: `notice policy "" has no value`},
		{policy: "comet=drain", want: `nothing is called "comet": want one of asg, asg-detach, asg-standby, asg-terminate, asg-warm, instance-reboot, instance-retirement, instance-stop, maintenance, rebalance, request, scale-down, spot, spot-hibernate, spot-stop, spot-terminate, system-maintenance, system-reboot`},
		{policy: "=drain", want: `nothing is called ""`},
		{policy: "spot=", want: `notice policy "spot=": "" is nothing that can be done: want ignore, cordon, drain or drain@LEAD`},
		{policy: "spot=Drain", want: `"Drain" is nothing that can be done`},
		{policy: "spot=drain@", want: `the lead "" is not a duration such as 30m`},
		{policy: "spot=drain@soon", want: `the lead "soon" is not a duration such as 30m`},
		{policy: "spot=drain@0s", want: `the lead "0s" is not a duration`},
		{policy: "spot=drain@-5m", want: `the lead "-5m" is not a duration`},
		{policy: "spot=cordon@5m", want: `only a drain is done by a time: want cordon, or drain@LEAD`},
		{policy: "spot=ignore@5m", want: `only a drain is done by a time`},
		{policy: "rebalance=drain@5m", want: `a notice of rebalance has no deadline to be ahead of`},
		{policy: "asg=drain@5m", want: `has no deadline to be ahead of`},
		{policy: "spot=drain,spot=cordon", want: `"spot" is both "drain" and "cordon"`},
		{policy: "scale-down=ignore", want: `notice policy "scale-down=ignore": a drain request is a wish to drain and takes no policy; to keep a node, write ` + contract.AnnotationHold + ` on it`},
		{policy: "scale-down=cordon", want: `takes no policy`},
		{policy: "request=ignore", want: `takes no policy`},
		{policy: "request=drain", want: `takes no policy`},
		{lastChance: "spot", want: `last chance "spot" has no value`},
		{lastChance: "spot=evict", want: `last chance "spot=evict": "evict" is no last chance: want leave or delete`},
		{lastChance: "comet=delete", want: `nothing is called "comet"`},
	} {
		t.Run(tc.policy+tc.lastChance, func(t *testing.T) {
			var policies, lastChances []string
			if tc.lastChance == "" {
				policies = strings.Split(tc.policy, ",")
			} else {
				lastChances = []string{tc.lastChance}
			}
			_, err := notice.ParseResponses(policies, lastChances)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v\nwant one with %s", err, tc.want)
			}
		})
	}
}

func TestParseResponsesNamesAllThatIsWrong(t *testing.T) {
	_, err := notice.ParseResponses([]string{"comet=drain", "spot=evaporate"}, []string{"asg=maybe"})
	for _, want := range []string{"comet", "evaporate", "maybe"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %q", err, want)
		}
	}
}

// A response to each cause is written down, and no flag makes a request, or what
// the metadata and a request both say, anything but a drain at once.
func TestResponsesTo(t *testing.T) {
	ignoring, err := notice.ParseResponses([]string{"spot=ignore", "rebalance=ignore", "maintenance=ignore", "asg=ignore"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range notice.Causes() {
		if _, ok := notice.DefaultResponses()[c]; !ok {
			t.Errorf("%s has no default", c)
		}
		seen := notice.Notice{ID: string(c) + ":i-1", Cause: c, Kind: c.Kind(), Source: notice.FromTargetState}
		asked := seen
		asked.Source = notice.FromRequest
		both := notice.Standing(seen, asked)[0]
		for _, n := range []notice.Notice{asked, both} {
			if got := ignoring.To(n); got.Do != notice.Drain || got.Lead != 0 {
				t.Errorf("%s, asked for: %+v, want a drain at once", c, got)
			}
		}
		if c == notice.ScaleDown || c == notice.Request {
			continue
		}
		if got := ignoring.To(seen); got.Do != notice.Ignore {
			t.Errorf("%s, seen in the metadata only: %+v, want what the flags say", c, got)
		}
		if got, want := (notice.Responses{}).To(seen), notice.DefaultResponses()[c]; got != want {
			t.Errorf("%s without a response: %+v, want the default %+v", c, got, want)
		}
	}
	asked := notice.Notice{ID: contract.TerminateID(instance), Cause: notice.ASGTerminate, Source: notice.FromRequest}
	if ignoring.To(asked).Permit {
		t.Error("a termination by Auto Scaling waits for a permit")
	}
}

package config

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/notifier/delivery"
	"windlass.dev/windlass/notifier/happening"
)

// The example of the page, and what stands in the component, can be read.
func TestExamples(t *testing.T) {
	text, err := os.ReadFile("../../docs/operate/notifications.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, found := strings.Cut(string(text), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	if _, err := Parse([]byte(example)); err != nil || !found {
		t.Errorf("the page's example: %v", err)
	}
	shipped, err := os.ReadFile("../../manifests/components/notifications/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(shipped); err != nil {
		t.Errorf("the component's: %v", err)
	}
}

// Each mistake is named, with where it is; and all at once.
func TestMistakes(t *testing.T) {
	const ok = "services: [{name: ops, webhook: {secret: url}}]\n"
	for _, c := range []struct{ text, want string }{
		{"", "services: there are 0"},
		{"services: [", "this is no configuration"},
		{ok + "rotes: []", `unknown field "rotes"`},
		{"services: [{name: Ops!, webhook: {secret: url}}]", `services[0].name: "Ops!"`},
		{"services: [{name: ops}]", "service ops: it has 0 types"},
		{"services: [{name: ops, webhook: {secret: u}, shoutrrr: {secret: u}}]", "service ops: it has 2 types"},
		{"services: [{name: ops, webhook: {secret: ../x}}]", `service ops: webhook.secret is "../x"`},
		{"services: [{name: ops, slack: {secret: t}}]", "service ops: slack.channel is empty"},
		{"services: [{name: ops, sns: {topic: ops}}]", `sns.topic is "ops": want an ARN`},
		{"services: [{name: ops, cloudEvents: {}}]", "cloudEvents wants a url or a secret"},
		{"services: [{name: ops, cloudEvents: {url: /x}}]", "cloudEvents.url is no URL"},
		{"services: [{name: ops, webhook: {secret: u}, template: '{{.Nmae}}'}]", "can't evaluate field Nmae"},
		{"services: [{name: ops, webhook: {secret: u}, template: '{{'}]", "service ops: template:"},
		{"services: [{name: ops, webhook: {secret: u}, digest: {at: 9am}}]", `digest.at: "9am" is no time of day`},
		{"services: [{name: ops, webhook: {secret: u}}, {name: ops, webhook: {secret: u}}]", "there are two of this name"},
		{ok + "routes: [{to: [opps]}]", `routes[0]: to names "opps", which is no service: there are ops`},
		{ok + "routes: [{}]", "routes[0]: to is empty"},
		{ok + "routes: [{to: [ops], kinds: [scaleup]}]", `kinds has "scaleup": want some of [scale-up`},
		{ok + "routes: [{to: [ops], groups: ['[']}]", `"[" is no pattern`},
		{ok + "routes: [{to: [ops], severity: bad}]", `severity is "bad": want one of info, warning, critical`},
		{ok + "routes: [{to: [ops], quietHours: {from: '22', to: '07:00'}}]", `"22" is no time of day`},
		{ok + "routes: [{to: [ops], quietHours: {from: '22:00', to: '22:00'}}]", "quietHours begin as they end"},
		{ok + "routes: [{to: [ops], quietHours: {from: '22:00', to: '07:00', zone: Mars}}]", `"Mars" is no time zone`},
	} {
		_, err := Parse([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n got %v\nwant %s", c.text, err, c.want)
		}
	}
	_, err := Parse([]byte("services: [{name: a}, {name: b}]\nroutes: [{}]"))
	if n := strings.Count(err.Error(), "\n"); n != 2 {
		t.Errorf("%d lines: %v", n+1, err)
	}
}

func TestWants(t *testing.T) {
	f, err := Parse([]byte(`
services:
- {name: ops, slack: {channel: c, secret: t}, digest: {at: "09:30"}}
- {name: oncall, webhook: {secret: u}}
routes:
- {to: [ops, oncall], kinds: [fault], severity: critical, quietHours: {from: "22:00", to: "07:00"}}
- {to: [ops], groups: [web-*], namespaces: [shop]}
`))
	if err != nil {
		t.Fatal(err)
	}
	fault := delivery.Route{Kinds: []happening.Kind{happening.Fault}, Severity: happening.Critical, Quiet: &delivery.Hours{From: 22 * time.Hour, To: 7 * time.Hour, Zone: time.UTC}}
	want := map[string]delivery.Want{
		"ops":    {Updates: true, Digest: &delivery.Daily{At: 9*time.Hour + 30*time.Minute, Zone: time.UTC}, Routes: []delivery.Route{fault, {Groups: []string{"web-*"}, Namespaces: []string{"shop"}}}},
		"oncall": {Routes: []delivery.Route{fault}},
	}
	if diff := cmp.Diff(want, f.Wants(), cmp.Comparer(func(a, b *time.Location) bool { return a.String() == b.String() })); diff != "" {
		t.Error(diff)
	}
	f.Routes = nil
	if len(f.Wants()["oncall"].Routes) != 1 {
		t.Error("without routes a service is sent nothing")
	}
}

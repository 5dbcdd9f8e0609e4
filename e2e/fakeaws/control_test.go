package fakeaws_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
)

// order posts a command and answers its JSON.
func (b *bed) order(command, parameters string) (int, string) {
	b.t.Helper()
	status, body := b.send(b.ctx, http.MethodPost, b.ControlURL()+"/"+command, parameters)
	return status, strings.TrimSpace(body)
}

func (b *bed) mustOrder(command, parameters string) string {
	b.t.Helper()
	status, body := b.order(command, parameters)
	if status != 200 {
		b.t.Fatalf("%s %s: %d %s", command, parameters, status, body)
	}
	return body
}

// A day by the control endpoint: every command does what its Go method does.
func TestControl(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Max: 9, Desired: desired(2), Type: "m5.large", Zones: []string{"eu-west-1a", "eu-west-1b"}},
		fakeaws.Group{Name: "still", Max: 1, Desired: desired(1), Type: "m5.large", ProtectNewInstances: true})
	b.waitStates("still", counts{fakeaws.InService: 1})
	id := b.waitStates("web", counts{fakeaws.InService: 2})[0].ID
	on := `{"instance":"` + id + `"}`

	b.mustOrder("scale-out", `{"group":"web","by":2}`)
	b.waitStates("web", counts{fakeaws.InService: 4})
	b.mustOrder("protect", on)
	b.mustOrder("scale-in", `{"group":"web"}`)
	b.waitStates("web", counts{fakeaws.InService: 3})
	b.mustOrder("desired", `{"group":"web","desired":2}`)
	b.waitStates("web", counts{fakeaws.InService: 2})
	b.mustOrder("rebalance-zones", `{"group":"web","force":true}`)
	b.waitStates("web", counts{fakeaws.InService: 2})
	b.mustOrder("rebalance", on)
	b.mustOrder("maintenance", `{"instance":"`+id+`","maintenance":{"code":"instance-stop","id":"event-1"}}`)
	b.mustOrder("end-maintenance", `{"instance":"`+id+`","event":"event-1","state":"canceled"}`)
	b.mustOrder("force", `{"instance":"`+id+`","state":"Quarantined"}`)
	b.waitStates("web", counts{cloud.Quarantined: 1, fakeaws.InService: 1})
	b.mustOrder("force", `{"instance":"`+id+`","state":"InService"}`)
	b.mustOrder("enter-standby", on)
	b.waitStates("web", counts{fakeaws.Standby: 1, fakeaws.InService: 2})
	b.mustOrder("exit-standby", on)
	b.waitStates("web", counts{fakeaws.InService: 3})
	b.mustOrder("reboot", on)
	b.mustOrder("put-hook", `{"group":"web","hook":{"name":"down","transition":"terminate"}}`)
	b.mustOrder("terminate", `{"instance":"`+id+`","decrement":true}`)
	b.waitStates("web", counts{fakeaws.TerminatingWait: 1, fakeaws.InService: 2})
	b.mustOrder("delete-hook", `{"group":"web","name":"down"}`)
	b.waitStates("web", counts{fakeaws.InService: 2})

	g, _ := b.Group("web")
	id = g.Instances[0].ID
	on = `{"instance":"` + id + `"}`
	b.mustOrder("spot", `{"instance":"`+id+`","in":"1h","action":"stop"}`)
	b.mustOrder("cancel-spot", on)
	b.mustOrder("imds-mode", `{"instance":"`+id+`","mode":"off"}`)
	b.mustOrder("imds", `{"instance":"`+id+`","path":"meta-data/x","answer":{"body":"y"}}`)
	b.mustOrder("imds-forget-tokens", on)
	b.mustOrder("health", `{"instance":"`+id+`","health":"Unhealthy"}`)
	b.mustOrder("suspend", `{"group":"web","processes":["AZRebalance"]}`)
	b.mustOrder("resume", `{"group":"web"}`)
	b.mustOrder("template-version", `{"name":"web","version":{"type":"m6i.large"}}`)
	b.mustOrder("refresh", `{"group":"still","refresh":{"minHealthyPercentage":0}}`)
	b.mustOrder("cancel-refresh", `{"group":"still"}`)
	b.mustOrder("resize", `{"group":"web","min":1,"max":5}`)
	b.mustOrder("add-group", `{"newGroup":{"name":"more","max":2,"type":"t3.micro","boot":"10ms"}}`)
	b.mustOrder("shortages", `{"shortages":[{"zone":"eu-west-1a","code":"UnfulfillableCapacity"}]}`)
	b.mustOrder("shortages", "{}")
	b.mustOrder("throttle", `{"throttles":[{"service":"eks","perSecond":1,"burst":1}]}`)
	b.mustOrder("deny", `{"actions":["ec2:Get*"]}`)
	if got := b.mustOrder("fault", `{"fault":{"operation":"SetDesiredCapacity","code":"Throttling"}}`); got != `{"id":1}` {
		t.Errorf("fault: %s", got)
	}
	wantError(t, b.setDesired("web", 1), 400, "Throttling", "Rate exceeded")
	b.mustOrder("remove-fault", `{"id":1}`)
	if err := b.setDesired("web", 1); err != nil {
		t.Fatal(err)
	}
	b.mustOrder("detach", `{"instance":"`+b.inServiceOf("web")+`"}`)
	b.mustOrder("kill", `{"instance":"`+b.inServiceOf("more", "scale-out")+`"}`)
	b.mustOrder("delete-template", `{"name":"web"}`)
	b.mustOrder("forget-calls", "")
}

// inServiceOf is an instance of the group that serves; commands bring it there.
func (b *bed) inServiceOf(group string, commands ...string) string {
	b.t.Helper()
	for _, c := range commands {
		b.mustOrder(c, `{"group":"`+group+`"}`)
	}
	found := make(chan string, 1)
	b.OnInstance(func(i fakeaws.Instance) {
		if i.Group == group && i.LifecycleState == fakeaws.InService {
			select {
			case found <- i.ID:
			default:
			}
		}
	})
	select {
	case id := <-found:
		return id
	case <-b.ctx.Done():
		b.t.Fatalf("nothing of %s serves", group)
		return ""
	}
}

func TestControlAnswers(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Max: 9, Desired: desired(1), Type: "m5.large"}, fakeaws.Group{Name: "other", Max: 9, Desired: desired(1), Type: "m5.large"})
	i := b.waitStates("web", counts{fakeaws.InService: 1})[0]
	get := func(path string, into any) {
		t.Helper()
		status, body := b.get(b.ctx, b.ControlURL()+path)
		if status != 200 {
			t.Fatalf("%s: %d %s", path, status, body)
		}
		if err := json.Unmarshal([]byte(body), into); err != nil {
			t.Fatal(err)
		}
	}
	var instances []fakeaws.Instance
	get("/instances?group=web", &instances)
	if len(instances) != 1 || instances[0].ID != i.ID || instances[0].IMDSAddr != i.IMDSAddr {
		t.Errorf("%+v", instances)
	}
	var groups []fakeaws.GroupStatus
	get("/groups", &groups)
	if len(groups) != 2 || groups[0].Spec.Name != "web" || groups[0].Desired != 1 {
		t.Errorf("%+v", groups)
	}
	var activities []fakeaws.Activity
	get("/activities?group=web", &activities)
	if len(activities) != 1 || activities[0].Group != "web" {
		t.Errorf("%+v", activities)
	}
	if err := b.setDesired("web", 2); err != nil {
		t.Fatal(err)
	}
	var calls []fakeaws.Call
	get("/calls?wait=10s&service=autoscaling&operation=SetDesiredCapacity&group=web&after=0", &calls)
	if len(calls) != 1 || calls[0].Params["DesiredCapacity"] != "2" {
		t.Errorf("%+v", calls)
	}
	get("/calls?operation=None", &calls)
	if len(calls) != 0 {
		t.Errorf("%+v", calls)
	}
	for path, want := range map[string]int{"/calls?wait=1ms&n=9": 408, "/calls?wait=long": 408, "/calls?after=x": 400} {
		if status, _ := b.get(b.ctx, b.ControlURL()+path); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
	for command, c := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"fly":      {"", 404, `{"error":"there is no command \"fly\""}`},
		"kill":     {`{"instance":"i-none"}`, 422, `{"error":"InvalidInstanceID.NotFound: The instance ID 'i-none' does not exist"}`},
		"desired":  {`{"grp":"web"}`, 400, `{"error":"reading the parameters of desired: json: unknown field \"grp\""}`},
		"put-hook": {`{"group":"web"}`, 422, `{"error":"hook is missing"}`},
	} {
		if status, body := b.order(command, c.body); status != c.status || body != c.want {
			t.Errorf("%s %s: %d %s, want %d %s", command, c.body, status, body, c.status, c.want)
		}
	}
}

// A spec in YAML is strict, and its mistakes are told with the name of the group.
func TestParseSpec(t *testing.T) {
	spec, err := fakeaws.ParseSpec([]byte(`
region: us-east-1
timeScale: 10
timing: {boot: 2s}
groups:
- name: web
  max: 10
  zones: [us-east-1a, us-east-1b]
  types: [m5.large, m5a.large]
  spot: true
  boot: 500ms
  volumeGiB: 40
  userData: "#!/bin/sh"
  tags: {k8s.io/cluster-autoscaler/node-template/label/tier: web}
  hooks: [{name: windlass, transition: terminate, heartbeatSeconds: 300, default: CONTINUE}]
  warmPool: {minSize: 1}
  suspended: [AZRebalance]
  eks: {cluster: c, name: n, labels: {a: b}, taints: [{key: k, effect: NO_SCHEDULE}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	b := startSpec(t, spec)
	g, err := b.Group("web")
	if err != nil {
		t.Fatal(err)
	}
	if g.Spec.Hooks[0].Transition != cloud.OnTerminate || g.Spec.MixedInstances == nil || *g.Spec.MixedInstances.OnDemandPercentAbove != 0 || g.Spec.Boot != fakeaws.Seconds(.5) {
		t.Errorf("%+v", g.Spec)
	}
	for text, want := range map[string]string{
		"groups: [{name: web, max: 1, colour: red}]":                   `reading the spec of the fake AWS: error unmarshaling JSON: while decoding JSON: json: unknown field "colour"`,
		"groups: [{name: web, max: 1, type: x9.huge}]":                 `making the cloud: group "web": InvalidInstanceType: The following supplied instance types do not exist: [x9.huge]`,
		"groups: [{name: web, min: 2, max: 1, type: m5.large}]":        `making the cloud: group "web": ValidationError: Max bound, 1, must be greater than or equal to min bound, 2`,
		"groups: [{name: web, max: 1, type: m5.large, zones: [mars]}]": `making the cloud: group "web": zone "mars" is not one of region eu-west-1`,
		"groups: [{name: web, max: 1, boot: fast, type: m5.large}]":    `reading the spec of the fake AWS: error unmarshaling JSON: while decoding JSON: time: invalid duration "fast"`,
		"groups: [{name: web, max: 1, launchTemplate: {name: none}}]":  `making the cloud: group "web": InvalidLaunchTemplateName.NotFoundException: At least one of the launch templates specified in the request does not exist.`,
	} {
		spec, err := fakeaws.ParseSpec([]byte(text))
		if err == nil {
			var s *fakeaws.Server
			if s, err = fakeaws.Start(fakeaws.Config{Spec: spec}); err == nil {
				_ = s.Close()
			}
		}
		if err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// The aws command line works against the server with the standard variables.
func TestCommandLine(t *testing.T) {
	path, err := exec.LookPath("aws")
	if err != nil {
		t.Skip("the aws command line is not installed")
	}
	b := start(t, fakeaws.Group{Name: "web", Max: 9, Type: "m5.large"})
	aws := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(b.ctx, path, append(args, "--output", "text")...)
		cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+b.URL(), "AWS_REGION=eu-west-1", "AWS_DEFAULT_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=AKIATEST", "AWS_SECRET_ACCESS_KEY=secret", "AWS_PAGER=")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("aws %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	aws("autoscaling", "set-desired-capacity", "--auto-scaling-group-name", "web", "--desired-capacity", "2")
	b.waitStates("web", counts{fakeaws.InService: 2})
	if diff := cmp.Diff("2", aws("autoscaling", "describe-auto-scaling-groups", "--query", "length(AutoScalingGroups[0].Instances)")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("8192", aws("ec2", "describe-instance-types", "--instance-types", "m5.large", "--query", "InstanceTypes[0].MemoryInfo.SizeInMiB")); diff != "" {
		t.Error(diff)
	}
}

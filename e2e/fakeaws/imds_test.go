package fakeaws_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/e2e/fakeaws"
)

// metadata is the SDK's client of one instance's service, as an agent would use it.
func metadata(i fakeaws.Instance) *imds.Client {
	return imds.New(imds.Options{Endpoint: "http://" + i.IMDSAddr, EnableFallback: aws.FalseTernary, Retryer: aws.NopRetryer{}})
}

// read gets a path below meta-data/; status is 0 where there was no answer.
func (b *bed) read(i fakeaws.Instance, path string) (body string, status int) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, unanswered)
	defer cancel()
	out, err := metadata(i).GetMetadata(ctx, &imds.GetMetadataInput{Path: path})
	if err != nil {
		var resp *smithyhttp.ResponseError
		if errors.As(err, &resp) {
			return "", resp.HTTPStatusCode()
		}
		return "", 0
	}
	text, err := io.ReadAll(out.Content)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text), 200
}

func (b *bed) wantIMDS(i fakeaws.Instance, path string, status int, body string) {
	b.t.Helper()
	got, code := b.read(i, path)
	if code != status || got != body {
		b.t.Errorf("%s: got %d %q, want %d %q", path, code, got, status, body)
	}
}

// inService starts a group of one and gives its instance, which has booted.
func inService(t *testing.T, g fakeaws.Group) (*bed, fakeaws.Instance) {
	t.Helper()
	g.Name, g.Max, g.Desired = "web", 3, desired(1)
	if g.Type == "" && g.LaunchTemplate == nil {
		g.Type = "m5.large"
	}
	b := start(t, g)
	return b, b.waitStates("web", counts{fakeaws.InService: 1})[0]
}

// The plain facts of an instance.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-categories.html
func TestMetadata(t *testing.T) {
	b := startSpec(t, fakeaws.Spec{
		LaunchTemplates: []fakeaws.LaunchTemplate{{Name: "base", Versions: []fakeaws.TemplateVersion{{Type: "m5.large", UserData: "#!/bin/sh", MetadataTags: true, Tags: map[string]string{"team": "a"}, Profile: "node"}}}},
		Groups:          []fakeaws.Group{{Name: "web", Max: 3, Desired: desired(2), LaunchTemplate: &fakeaws.TemplateRef{Name: "base"}}},
	})
	two := b.waitStates("web", counts{fakeaws.InService: 2})
	i := two[0]
	if two[0].IMDSAddr == two[1].IMDSAddr || !strings.HasPrefix(i.IMDSAddr, "127.") {
		t.Errorf("addresses %s and %s", two[0].IMDSAddr, two[1].IMDSAddr)
	}
	for path, want := range map[string]string{
		"instance-id": i.ID, "instance-type": "m5.large", "instance-life-cycle": "on-demand", "local-hostname": i.PrivateDNSName, "local-ipv4": i.PrivateIP,
		"placement/availability-zone": "eu-west-1a", "placement/availability-zone-id": "euw1-az1", "placement/region": "eu-west-1",
		"services/domain": "amazonaws.com", "services/partition": "aws", "tags/instance/team": "a", "autoscaling/target-lifecycle-state": "InService",
		"events/maintenance/scheduled": "[]", "events/maintenance/history": "[]",
		"autoscaling": "target-lifecycle-state", "placement/": "availability-zone\navailability-zone-id\nregion", "events": "maintenance/",
	} {
		b.wantIMDS(i, path, 200, want)
	}
	for _, path := range []string{"spot/instance-action", "spot/termination-time", "events/recommendations/rebalance", "public-hostname", "public-ipv4", "placement/group-name", "nothing"} {
		b.wantIMDS(i, path, 404, "")
	}
	doc := must(metadata(i).GetInstanceIdentityDocument(b.ctx, nil))(t)
	if doc.InstanceID != i.ID || doc.Region != "eu-west-1" || doc.AccountID != "123456789012" || doc.AvailabilityZone != "eu-west-1a" || doc.InstanceType != "m5.large" {
		t.Errorf("%+v", doc)
	}
	data := must(metadata(i).GetUserData(b.ctx, nil))(t)
	if text, err := io.ReadAll(data.Content); err != nil || string(text) != "#!/bin/sh" {
		t.Errorf("user data %q, %v", text, err)
	}
	if info := must(metadata(i).GetIAMInfo(b.ctx, nil))(t); info.InstanceProfileArn == "" {
		t.Errorf("%+v", info)
	}
	if n := len(b.Calls(fakeaws.Service("imds"), fakeaws.ForInstance(i.ID))); n == 0 {
		t.Error("the requests are not in the call log")
	}
}

// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html
func TestSpotNotices(t *testing.T) {
	b, i := inService(t, fakeaws.Group{Spot: true})
	b.wantIMDS(i, "instance-life-cycle", 200, "spot")
	if err := b.Rebalance(i.ID); err != nil {
		t.Fatal(err)
	}
	body, _ := b.read(i, "events/recommendations/rebalance")
	var recommended struct{ NoticeTime time.Time }
	if err := json.Unmarshal([]byte(body), &recommended); err != nil || time.Since(recommended.NoticeTime) > time.Minute {
		t.Errorf("%q, %v", body, err)
	}
	if err := b.SpotNotice(i.ID, 2*time.Second); err != nil {
		t.Fatal(err)
	}
	body, _ = b.read(i, "spot/instance-action")
	var notice struct {
		Action string
		Time   time.Time
	}
	if err := json.Unmarshal([]byte(body), &notice); err != nil || notice.Action != "terminate" || time.Until(notice.Time) > 2*time.Second || time.Until(notice.Time) < -time.Second {
		t.Errorf("%q, %v", body, err)
	}
	at, _ := b.read(i, "spot/termination-time")
	if _, err := time.Parse(time.RFC3339, at); err != nil {
		t.Errorf("termination time %q: %v", at, err)
	}
	gone := make(chan struct{})
	b.OnInstance(func(now fakeaws.Instance) {
		if now.ID == i.ID && now.Gone {
			close(gone)
		}
	})
	select {
	case <-gone:
	case <-b.ctx.Done():
		t.Fatal("not reclaimed")
	}
	b.wantIMDS(i, "instance-id", 0, "") // Nobody listens there any more.
}

// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/viewing_scheduled_events.html
func TestMaintenanceEvents(t *testing.T) {
	b, i := inService(t, fakeaws.Group{})
	from := time.Date(2026, 9, 1, 8, 0, 0, 0, time.UTC)
	id := must(b.Maintenance(i.ID, fakeaws.MaintenanceEvent{Code: "system-reboot", NotBefore: from, NotAfter: from.Add(time.Hour)}))(t)
	b.wantIMDS(i, "events/maintenance/scheduled", 200,
		`[{"NotBefore":"1 Sep 2026 08:00:00 GMT","Code":"system-reboot","Description":"scheduled reboot","EventId":"`+id+`","NotAfter":"1 Sep 2026 09:00:00 GMT","State":"active"}]`)
	if err := b.EndMaintenance(i.ID, id, "completed"); err != nil {
		t.Fatal(err)
	}
	b.wantIMDS(i, "events/maintenance/scheduled", 200, "[]")
	b.wantIMDS(i, "events/maintenance/history", 200,
		`[{"NotBefore":"1 Sep 2026 08:00:00 GMT","Code":"system-reboot","Description":"[Completed] scheduled reboot","EventId":"`+id+`","NotAfter":"1 Sep 2026 09:00:00 GMT","State":"completed"}]`)
}

// https://docs.aws.amazon.com/autoscaling/ec2/userguide/retrieving-target-lifecycle-state-through-imds.html
func TestTargetLifecycleState(t *testing.T) {
	b, i := inService(t, fakeaws.Group{Hooks: []fakeaws.Hook{{Name: "down", Transition: "terminate"}}})
	if err := b.Suspend("web", "Launch", "Terminate"); err != nil { // or the group would replace what is not in service
		t.Fatal(err)
	}
	for state, want := range map[fakeaws.LifecycleState]string{
		"Terminating": "Terminated", "Terminating:Wait": "Terminated", "Standby": "Standby", "Detaching": "Detached", "Warmed:Pending:Wait": "Warmed:Stopped",
		"Warmed:Running": "Warmed:Running", "Warmed:Hibernated": "Warmed:Hibernated", "Warmed:Terminating:Wait": "Warmed:Terminated", "Pending:Wait": "InService", "InService": "InService",
	} {
		if err := b.Force(i.ID, state, false); err != nil {
			t.Fatal(err)
		}
		b.wantIMDS(i, "autoscaling/target-lifecycle-state", 200, want)
	}
}

// The rules of version 2: tokens, their time to live, and each refusal.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-metadata-v2-how-it-works.html
func TestTokens(t *testing.T) {
	b, i := inService(t, fakeaws.Group{})
	const ttl, tokenHeader = "X-aws-ec2-metadata-token-ttl-seconds", "X-aws-ec2-metadata-token"
	url := "http://" + i.IMDSAddr
	for name, c := range map[string]struct {
		path    string
		headers []string
		want    int
	}{
		"no time to live": {"/latest/api/token", nil, 400},
		"zero":            {"/latest/api/token", []string{ttl, "0"}, 400},
		"too long":        {"/latest/api/token", []string{ttl, "21601"}, 400},
		"not a number":    {"/latest/api/token", []string{ttl, "long"}, 400},
		"forwarded":       {"/latest/api/token", []string{ttl, "60", "X-Forwarded-For", "10.0.0.1"}, 403},
		"versioned path":  {"/2021-03-23/api/token", []string{ttl, "60"}, 403},
		"longest":         {"/latest/api/token", []string{ttl, "21600"}, 200},
	} {
		if got, _ := b.send(b.ctx, http.MethodPut, url+c.path, "", c.headers...); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	_, token := b.send(b.ctx, http.MethodPut, url+"/latest/api/token", "", ttl, "1")
	expired := time.Now().Add(time.Second)
	get := func(token string) int {
		status, _ := b.send(b.ctx, http.MethodGet, url+"/latest/meta-data/instance-id", "", tokenHeader, token)
		return status
	}
	if got := get(token); got != 200 {
		t.Errorf("with a token: %d", got)
	}
	if status, body := b.send(b.ctx, http.MethodGet, url+"/2021-03-23/meta-data/instance-id", "", tokenHeader, token); status != 200 || body != i.ID {
		t.Errorf("versioned path: %d %q", status, body)
	}
	if got, _ := b.get(b.ctx, url+"/latest/meta-data/instance-id"); got != 401 {
		t.Errorf("without a token: %d, want 401", got)
	}
	if got := get("wrong"); got != 401 {
		t.Errorf("with a wrong token: %d, want 401", got)
	}
	<-time.After(time.Until(expired)) // A token lives a second at least.
	if got := get(token); got != 401 {
		t.Errorf("with an expired token: %d, want 401", got)
	}
	_, token = b.send(b.ctx, http.MethodPut, url+"/latest/api/token", "", ttl, "60")
	if err := b.ForgetIMDSTokens(i.ID); err != nil {
		t.Fatal(err)
	}
	if got := get(token); got != 401 {
		t.Errorf("with a forgotten token: %d, want 401", got)
	}
	ctx, cancel := context.WithTimeout(b.ctx, 50*time.Millisecond)
	defer cancel()
	far, err := http.NewRequestWithContext(ctx, http.MethodPut, url+"/latest/api/token", nil)
	if err != nil {
		t.Fatal(err)
	}
	far.Header.Set(ttl, "60")
	far.Header.Set("X-Fakeaws-Hops", "3") // The limit is two.
	if resp, err := http.DefaultClient.Do(far); err == nil {
		t.Errorf("beyond the hop limit: %d", resp.StatusCode)
		_ = resp.Body.Close()
	}
}

// A service can be off, fail, hang or refuse, and come back; single paths can be given other answers.
func TestIMDSModes(t *testing.T) {
	b, i := inService(t, fakeaws.Group{})
	for _, c := range []struct {
		mode   fakeaws.IMDSMode
		status int
	}{{fakeaws.IMDSOff, 403}, {fakeaws.IMDSOn, 200}, {fakeaws.IMDSFailing, 500}, {fakeaws.IMDSHung, 0}, {fakeaws.IMDSRefused, 0}, {fakeaws.IMDSOn, 200}} {
		if err := b.SetIMDSMode(i.ID, c.mode); err != nil {
			t.Fatal(err)
		}
		if got := b.tokenStatus(i); got != c.status {
			t.Errorf("%s: %d, want %d", c.mode, got, c.status)
		}
		if _, got := b.read(i, "instance-id"); (got == 200) != (c.status == 200) {
			t.Errorf("%s: the SDK's client got %d", c.mode, got)
		}
	}
	if err := b.SetIMDSMode(i.ID, "sleepy"); err == nil {
		t.Error("an unknown mode was taken")
	}
	set := func(path string, a *fakeaws.IMDSAnswer) {
		t.Helper()
		if err := b.SetIMDS(i.ID, path, a); err != nil {
			t.Fatal(err)
		}
	}
	set("meta-data/spot/instance-action", &fakeaws.IMDSAnswer{Body: "not JSON"})
	b.wantIMDS(i, "spot/instance-action", 200, "not JSON")
	set("meta-data/spot/instance-action", &fakeaws.IMDSAnswer{Body: "at NOW", Ahead: 120})
	body, _ := b.read(i, "spot/instance-action")
	if at, err := time.Parse("at "+time.RFC3339, body); err != nil || time.Until(at) < 110*time.Second || time.Until(at) > 2*time.Minute {
		t.Errorf("%q, want a moment in two minutes", body)
	}
	set("meta-data/autoscaling", &fakeaws.IMDSAnswer{Status: 404})
	b.wantIMDS(i, "autoscaling/target-lifecycle-state", 404, "")
	set("meta-data/autoscaling", nil)
	b.wantIMDS(i, "autoscaling/target-lifecycle-state", 200, "InService")
	if err := b.SetIMDSMode("i-none", fakeaws.IMDSOff); err == nil {
		t.Error("no error for an instance without a service")
	}
}

// A group whose instances have the service switched off answers 403, and EC2 tells so.
func TestNoIMDS(t *testing.T) {
	b, i := inService(t, fakeaws.Group{NoIMDS: true})
	if got := b.tokenStatus(i); got != 403 {
		t.Errorf("%d, want 403", got)
	}
}

// tokenStatus is the status of asking for a token, 0 where there is no answer.
func (b *bed) tokenStatus(i fakeaws.Instance) int {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, unanswered)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+i.IMDSAddr+"/latest/api/token", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("X-aws-ec2-metadata-token-ttl-seconds", "60")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// What an operating system reports is less than the nominal size.
func TestMemory(t *testing.T) {
	_, i := inService(t, fakeaws.Group{})
	typ, ok := fakeaws.LookupType(i.Type)
	if !ok || i.MemoryMiB != 7783 || typ.OSMemoryMiB(0.05) != 7783 {
		t.Errorf("%d MiB of %d", i.MemoryMiB, typ.MemoryMiB)
	}
	if diff := cmp.Diff("aws:///eu-west-1a/"+i.ID, i.ProviderID()); diff != "" {
		t.Error(diff)
	}
}

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/e2e/world"
)

const awsProgram = "aws"

// shown runs a command of a page at the root of the checkout, as a person would.
func (s *session) shown(words []string, root string) (string, error) {
	if words[0] == awsProgram {
		return callAWS(s.ctx, s.w.AWS.URL(), words[1:])
	}
	cmd, err := s.person(words[0], words[1:])
	if err == nil && words[0] == kubectlProgram && len(words) > 1 && words[1] == "windlass" {
		var plugin string
		if plugin, err = buildPlugin(); err == nil {
			cmd = s.w.KubectlCommand(s.ctx, filepath.Dir(plugin), words[1:]...)
		}
	}
	if err != nil {
		return "", err
	}
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// callAWS does what the command line of AWS does for an operation of Auto Scaling with these parameters:
// aws autoscaling OPERATION --PARAMETER VALUE..., where a value k=v,k=v is a member of a list.
// https://docs.aws.amazon.com/cli/latest/reference/autoscaling/
func callAWS(ctx context.Context, at string, words []string) (string, error) {
	form, err := queryOf(words)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+world.PersonKey+"/20260101/eu-west-1/autoscaling/aws4_request, SignedHeaders=host, Signature=00")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return string(text), err
}

func queryOf(words []string) (url.Values, error) {
	if len(words) < 2 || words[0] != "autoscaling" {
		return nil, fmt.Errorf("aws %s: want aws autoscaling OPERATION --PARAMETER VALUE...", strings.Join(words, " "))
	}
	form := url.Values{"Action": {camel(words[1])}, "Version": {"2011-01-01"}}
	for i := 2; i < len(words); i += 2 {
		name := camel(strings.TrimPrefix(words[i], "--"))
		if i+1 == len(words) || strings.HasPrefix(words[i+1], "--") { // a switch
			form.Set(name, "true")
			i--
			continue
		}
		members := 0
		for ; i+1 < len(words) && strings.Contains(words[i+1], "=") && !strings.HasPrefix(words[i+1], "--"); i++ {
			members++
			for pair := range strings.SplitSeq(words[i+1], ",") {
				key, value, _ := strings.Cut(pair, "=")
				form.Set(name+".member."+strconv.Itoa(members)+"."+key, value)
			}
		}
		if members > 0 {
			i--
			continue
		}
		form.Set(name, words[i+1])
	}
	return form, nil
}

// camel is the name of a parameter in the API: auto-scaling-group-name is AutoScalingGroupName.
func camel(name string) string {
	var all strings.Builder
	for part := range strings.SplitSeq(name, "-") {
		all.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return all.String()
}

func TestQueryOf(t *testing.T) {
	for line, want := range map[string]string{
		"autoscaling put-lifecycle-hook --auto-scaling-group-name web --heartbeat-timeout 900":                        "Action=PutLifecycleHook&AutoScalingGroupName=web&HeartbeatTimeout=900",
		"autoscaling delete-tags --tags ResourceId=web,Key=a ResourceId=api,Key=a":                                    "Action=DeleteTags&Tags.member.1.Key=a&Tags.member.1.ResourceId=web&Tags.member.2.Key=a&Tags.member.2.ResourceId=api",
		"autoscaling update-auto-scaling-group --auto-scaling-group-name web --new-instances-protected-from-scale-in": "Action=UpdateAutoScalingGroup&AutoScalingGroupName=web&NewInstancesProtectedFromScaleIn=true",
	} {
		form, err := queryOf(strings.Fields(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		form.Del("Version")
		if diff := cmp.Diff(want, form.Encode()); diff != "" {
			t.Errorf("%s: %s", line, diff)
		}
	}
	if _, err := queryOf([]string{"ec2", "describe-instances"}); err == nil {
		t.Error("another service is no error")
	}
}

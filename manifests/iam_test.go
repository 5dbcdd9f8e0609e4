package manifests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/docs/section"
	"windlass.dev/windlass/e2e/fakeaws/iam"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/asg"
)

// statements are those of all policies of iam, the opt-in ones included.
func statements(t *testing.T) []iam.Statement {
	t.Helper()
	var all []iam.Statement
	for _, policy := range readPolicies(t) {
		all = append(all, policy.Statement...)
	}
	return all
}

// readPolicies reads all policies of iam, by their path in the checkout.
func readPolicies(t *testing.T) map[string]iam.Policy {
	t.Helper()
	paths, err := filepath.Glob("iam/*.json")
	if err != nil {
		t.Fatal(err)
	}
	policies := map[string]iam.Policy{}
	for _, path := range paths {
		document, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		policy, err := iam.Parse(document)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		policies["manifests/"+path] = policy
	}
	return policies
}

// implied are rights that AWS asks of the caller for calls that it makes on the
// way, with the reason.
var implied = map[string]string{
	"ec2:CreateFleet": "autoscaling:LaunchInstances launches by it, https://docs.aws.amazon.com/autoscaling/ec2/userguide/launching-instances-synchronous-provisioning.html#prerequisites-synchronous-provisioning; without it groups grow by SetDesiredCapacity",
}

// onBehalf is the condition of an implied right: a fleet that does not exist yet
// has no tag to go by, but only Auto Scaling may ask for one, for a group that has.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html#condition-keys-viaawsservice
var onBehalf = map[string]map[string]iam.Words{"Bool": {"aws:ViaAWSService": {"true"}}}

// The policy allows what scaler/asg calls and what that implies, and nothing else.
func TestPolicyAllowsWhatIsCalled(t *testing.T) {
	var allowed []string
	for _, s := range statements(t) {
		if s.Effect != iam.Allow {
			t.Errorf("statement %s: effect %q", s.Sid, s.Effect)
		}
		allowed = append(allowed, s.Action...)
	}
	slices.Sort(allowed)
	wanted := append(calls(t, "../scaler/asg"), slices.Collect(maps.Keys(implied))...)
	slices.Sort(wanted)
	if diff := cmp.Diff(wanted, allowed); diff != "" {
		t.Errorf("actions (-called +allowed):\n%s", diff)
	}
}

// calls finds the AWS actions that a package names: every call takes a struct
// of the service's package whose name is that of the action and "Input".
func calls(t *testing.T, folder string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, actions(file)...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func actions(file *ast.File) []string {
	var found []string
	ast.Inspect(file, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		service, ok := selector.X.(*ast.Ident)
		action, isInput := strings.CutSuffix(selector.Sel.Name, "Input")
		if ok && isInput && slices.Contains([]string{"autoscaling", "ec2", "eks"}, service.Name) {
			found = append(found, service.Name+":"+action)
		}
		return true
	})
	return found
}

// Reading knows no scope at AWS; whatever changes a group is allowed on groups
// of this cluster only.
func TestPolicyChangesOnlyItsOwnGroups(t *testing.T) {
	const tag = "aws:ResourceTag/k8s.io/cluster-autoscaler/"
	own := map[string]map[string]iam.Words{"Null": {tag + clusterName(t): {"false"}}}
	for _, s := range statements(t) {
		for _, action := range s.Action {
			if strings.Contains(action, "*") {
				t.Errorf("statement %s allows %s", s.Sid, action)
			}
			_, verb, _ := strings.Cut(action, ":")
			if strings.HasPrefix(verb, "Describe") || strings.HasPrefix(verb, "Get") {
				continue
			}
			want := own
			if action == "autoscaling:CreateOrUpdateTags" || action == "autoscaling:DeleteTags" {
				want = map[string]map[string]iam.Words{"Null": own["Null"], "ForAllValues:StringEquals": {"aws:TagKeys": {contract.TagOwner}}}
			}
			if implied[action] != "" {
				want = onBehalf
			}
			if diff := cmp.Diff(want, s.Condition); diff != "" {
				t.Errorf("statement %s allows %s; condition (-want +got):\n%s", s.Sid, action, diff)
			}
		}
	}
}

// Rights that the scaler can do without stand by themselves, to be left out without a look
// at the others. docs/reference/iam.md says what is lost without them.
func TestPolicyKeepsWhatFewNeedApart(t *testing.T) {
	few := []string{
		"ec2:CreateFleet",       // LaunchInstances
		"eks:DescribeNodegroup", // managed node groups
	}
	for _, s := range statements(t) {
		for _, action := range few {
			if slices.Contains(s.Action, action) && len(s.Action) > 1 {
				t.Errorf("statement %s allows %s beside others", s.Sid, action)
			}
		}
	}
}

// A refusal names the statement that grants what is missing, and its file: those that do.
func TestRefusalsNameTheStatement(t *testing.T) {
	want, optIn := map[string]string{}, map[string]string{}
	for path, policy := range readPolicies(t) {
		for _, s := range policy.Statement {
			for _, action := range s.Action {
				want[action] = s.Sid
			}
			if path != asg.PolicyFile {
				optIn[s.Sid] = path
			}
		}
	}
	if diff := cmp.Diff(want, asg.Statements); diff != "" {
		t.Errorf("statements by action (-policies +refusals):\n%s", diff)
	}
	if diff := cmp.Diff(optIn, asg.OptIn); diff != "" {
		t.Errorf("files of opt-in statements (-policies +refusals):\n%s", diff)
	}
}

// What only a flag needs that is off is not in the policy that everybody is given.
func TestOptInRightsAreNotInTheDefaultPolicy(t *testing.T) {
	optIn := []string{
		"autoscaling:CreateOrUpdateTags",                                                           // --claim-groups
		"autoscaling:SuspendProcesses",                                                             // --suspend-az-rebalance
		"autoscaling:ResumeProcesses", "autoscaling:DeleteTags", "autoscaling:DeleteLifecycleHook", // uninstall, by people
		"ec2:DescribeInstances",        // --out-of-service-taint
		"ec2:DescribeSpotPriceHistory", // --spot-prices=history
	}
	for _, s := range readPolicies(t)[asg.PolicyFile].Statement {
		for _, action := range optIn {
			if slices.Contains(s.Action, action) {
				t.Errorf("statement %s of the default policy allows %s", s.Sid, action)
			}
		}
	}
}

// Each statement has its line in the table of what is lost without it, and each action in
// that of all.
func TestPolicyIsExplained(t *testing.T) {
	const page = "../docs/reference/iam.md"
	body, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for path, policy := range readPolicies(t) {
		for _, s := range policy.Statement {
			if !strings.Contains(string(body), "`"+s.Sid+"` |") {
				t.Errorf("%s has no line for %s", page, s.Sid)
			}
			for _, action := range s.Action {
				rows = append(rows, []string{"`" + action + "`", "`" + s.Sid + "`", "`" + filepath.Base(path) + "`"})
			}
		}
	}
	slices.SortFunc(rows, slices.Compare)
	section.Hold(t, page, "actions", section.Table([]string{"action", "statement", "policy"}, rows))
}

// A managed node group's cluster is a part of its ARN.
func TestPolicyReadsOnlyItsOwnNodeGroups(t *testing.T) {
	want := iam.Words{"arn:*:eks:*:*:nodegroup/" + clusterName(t) + "/*/*"}
	for _, s := range statements(t) {
		if !slices.Contains(s.Action, "eks:DescribeNodegroup") {
			continue
		}
		if diff := cmp.Diff(want, s.Resource); diff != "" {
			t.Errorf("statement %s: resources (-want +got):\n%s", s.Sid, diff)
		}
		return
	}
	t.Error("no statement allows eks:DescribeNodegroup")
}

// clusterName is the one in settings.env, which the policy repeats.
func clusterName(t *testing.T) string {
	t.Helper()
	settings := renderBase(t).configMaps[0].Data
	if settings["CLUSTER_NAME"] == "" {
		t.Fatalf("settings without CLUSTER_NAME: %v", settings)
	}
	return settings["CLUSTER_NAME"]
}

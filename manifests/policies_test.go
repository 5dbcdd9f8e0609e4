package manifests

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
)

// The policies of the base and of every component. That their expressions mean
// what they say is tried on a real API server, by e2e/confine.
func renderPolicies(t *testing.T) objects {
	return renderOverlay(t, "resources: [../manifests]\ncomponents: [../manifests/components/last-chance-delete, ../manifests/components/out-of-service-taint, ../manifests/components/viewers]\n")
}

// A policy denies by being bound, for good, with a 403 that says why: the agent
// takes another code for a failure.
func TestPoliciesDeny(t *testing.T) {
	o := renderPolicies(t)
	bound := map[string]int{}
	for _, b := range o.policyBinds {
		bound[b.Spec.PolicyName]++
		if !slices.Equal(b.Spec.ValidationActions, []admissionv1.ValidationAction{admissionv1.Deny}) {
			t.Errorf("binding %s does %v", b.Name, b.Spec.ValidationActions)
		}
	}
	for _, p := range o.policies {
		if bound[p.Name] != 1 {
			t.Errorf("policy %s has %d bindings", p.Name, bound[p.Name])
		}
		if p.Spec.FailurePolicy == nil || *p.Spec.FailurePolicy != admissionv1.Fail {
			t.Errorf("policy %s lets through what it cannot judge", p.Name)
		}
		for _, v := range p.Spec.Validations {
			if v.Reason == nil || *v.Reason != metav1.StatusReasonForbidden || v.Message == "" && v.MessageExpression == "" {
				t.Errorf("policy %s denies without a 403 or without a message: %s", p.Name, v.Expression)
			}
		}
	}
	if len(bound) != len(o.policies) || len(bound) == 0 {
		t.Errorf("%d policies, bindings of %v", len(o.policies), bound)
	}
}

// TestOldestServerReadsThePolicies: 1.30 takes expressions that 1.29 knows, so that
// it can be set back by a version.
func TestOldestServerReadsThePolicies(t *testing.T) {
	for _, p := range renderPolicies(t).policies {
		compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(version.MajorMinor(1, 29)))
		if err != nil {
			t.Fatal(err)
		}
		options := cel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
		compile := func(name, text string) {
			result := compiler.CompileAndStoreVariable(expression{name, text}, options, environment.NewExpressions)
			if result.Error != nil {
				t.Errorf("policy %s: %s: %v", p.Name, text, result.Error)
			}
		}
		for _, c := range p.Spec.MatchConditions {
			compile("", c.Expression)
		}
		for _, v := range p.Spec.Variables {
			compile(v.Name, v.Expression)
		}
		for _, v := range p.Spec.Validations {
			compile("", v.Expression)
			if v.MessageExpression != "" {
				compile("", v.MessageExpression)
			}
		}
	}
}

// expression is one of a policy, of any type; a variable has a name.
type expression struct{ name, text string }

func (e expression) GetName() string          { return e.name }
func (e expression) GetExpression() string    { return e.text }
func (expression) ReturnTypes() []*celgo.Type { return []*celgo.Type{celgo.AnyType} }

// TestPoliciesFindTheAccount: in every namespace, and with every prefix and suffix
// that kustomize can give it, and nobody else.
func TestPoliciesFindTheAccount(t *testing.T) {
	matches := regexp.MustCompile(`^request\.userInfo\.username\.matches\('(.*)'\)$`)
	for _, p := range renderPolicies(t).policies {
		if p.Spec.MatchConstraints.ObjectSelector != nil || strings.Contains(p.Spec.MatchConditions[0].Expression, "authorizer.") {
			continue // it takes everybody who asks for it, or has a right
		}
		if len(p.Spec.MatchConditions) != 1 {
			t.Errorf("policy %s has the conditions %v", p.Name, p.Spec.MatchConditions)
			continue
		}
		found := matches.FindStringSubmatch(p.Spec.MatchConditions[0].Expression)
		if found == nil {
			t.Errorf("policy %s finds its user by %s", p.Name, p.Spec.MatchConditions[0].Expression)
			continue
		}
		app := p.Labels[contract.LabelAppName]
		other := map[string]string{contract.AppAgent: contract.AppScaler, contract.AppScaler: contract.AppAgent}[app]
		user := regexp.MustCompile(found[1])
		for name, want := range map[string]bool{
			"system:serviceaccount:windlass-system:" + app:          true,
			"system:serviceaccount:elsewhere:" + app:                true,
			"system:serviceaccount:elsewhere:prod-" + app + "-blue": true,
			"system:serviceaccount:windlass-system:" + other:        false,
			"system:serviceaccount:" + app + ":" + other:            false,
			"system:serviceaccount:elsewhere:default":               false,
			"system:node:" + app:                                    false,
			app:                                                     false,
			"oidc:system:serviceaccount:windlass-system:" + app:     false,
		} {
			if got := user.MatchString(name); got != want {
				t.Errorf("policy %s confines %s: %v", p.Name, name, got)
			}
			// What the programs say of themselves when they start.
			if got := kube.Confined(app, name); got != want {
				t.Errorf("%s takes itself for confined as %s: %v", app, name, got)
			}
		}
	}
}

// Each program may write what the contract says that it writes.
func TestPoliciesKnowTheContract(t *testing.T) {
	quoted := regexp.MustCompile(`'([^']+)'`)
	words := map[string][]string{}
	var text strings.Builder
	for _, p := range renderPolicies(t).policies {
		for _, v := range p.Spec.Validations {
			text.WriteString(v.Expression)
		}
		for _, v := range p.Spec.Variables {
			for _, word := range quoted.FindAllStringSubmatch(v.Expression, -1) {
				words[p.Name+" "+v.Name] = append(words[p.Name+" "+v.Name], word[1])
			}
		}
	}
	kubeProxy := contract.KubeProxyTaint()
	for program, want := range map[string]map[string][]string{
		"windlass-agent-node": {
			"ownSpec":   {"unschedulable", "taints"},
			"ownLabels": {contract.LabelExcludeFromLoadBalancers},
			"ownAnnotations": {
				contract.AnnotationDrainReport, contract.AnnotationNotices, contract.AnnotationServed,
				contract.AnnotationCordonedBy, contract.AnnotationExcluded, contract.AnnotationDryRun,
			},
			"removableAnnotations": {contract.AnnotationDrainPermit, contract.AnnotationDrainNotYet},
			"othersTaints":         {contract.TaintDraining, kubeProxy.Key, kubeProxy.Value},
			"oldOthersTaints":      {contract.TaintDraining, kubeProxy.Key, kubeProxy.Value},
		},
		"windlass-scaler-node": {
			"ownSpec":   {"unschedulable", "taints"},
			"ownLabels": {contract.LabelExcludeFromLoadBalancers},
			"ownAnnotations": {
				contract.AnnotationDrainRequest, contract.AnnotationDrainPermit, contract.AnnotationDrainNotYet, contract.AnnotationTerminating,
				contract.AnnotationCordonedBy, contract.AnnotationExcluded, contract.AnnotationOutOfService,
			},
			"removableAnnotations": {contract.AnnotationDrainReport},
			"othersTaints":         {contract.TaintDraining, contract.TaintUnneeded, contract.TaintFillLater, contract.TaintSurplus, kubeProxy.Key, kubeProxy.Value, contract.OutOfServiceTaint().Key},
			"oldOthersTaints":      {contract.TaintDraining, contract.TaintUnneeded, contract.TaintFillLater, contract.TaintSurplus, kubeProxy.Key, kubeProxy.Value, contract.OutOfServiceTaint().Key},
		},
	} {
		for variable, want := range want {
			if diff := cmp.Diff(want, words[program+" "+variable]); diff != "" {
				t.Errorf("%s of %s (-want +got):\n%s", variable, program, diff)
			}
		}
	}
	for _, word := range []string{contract.LabelAsAccount, contract.AppAgent} {
		if !strings.Contains(text.String(), "'"+word+"'") {
			t.Errorf("no policy speaks of %s", word)
		}
	}
}

// Only who takes the component lets the scaler call a machine down, and has it do so.
func TestOutOfServiceIsOptIn(t *testing.T) {
	for component, want := range map[string]bool{"eks-irsa": false, "out-of-service-taint": true} {
		o := renderOverlay(t, withComponents(component))
		i := slices.IndexFunc(o.policies, func(p admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == "windlass-scaler-node" })
		allowed := o.policies[i].Spec.Variables[0]
		if allowed.Name != "outOfService" || allowed.Expression != map[bool]string{true: "true", false: "false"}[want] {
			t.Errorf("%s: the policy has %+v", component, allowed)
		}
		args := o.workloads()[contract.AppScaler].template.Spec.Containers[0].Args
		if slices.Contains(args, "--out-of-service-taint") != want {
			t.Errorf("%s: arguments %q", component, args)
		}
	}
}

// The policy that looks at every pod of a namespace looks at marked evictions only,
// and the account is made to mark its own.
func TestEvictionsAreMarked(t *testing.T) {
	i := slices.IndexFunc(renderPolicies(t).policies, func(p admissionv1.ValidatingAdmissionPolicy) bool { return p.Spec.ParamKind != nil })
	spec := renderPolicies(t).policies[i].Spec
	want := &metav1.LabelSelector{MatchLabels: map[string]string{contract.LabelAsAccount: "true"}}
	if diff := cmp.Diff(want, spec.MatchConstraints.ObjectSelector); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
	for _, b := range renderPolicies(t).policyBinds {
		ref := b.Spec.ParamRef
		if ref == nil {
			continue
		}
		if ref.Selector == nil || len(ref.Selector.MatchLabels)+len(ref.Selector.MatchExpressions) != 0 || ref.Namespace != "" ||
			ref.ParameterNotFoundAction == nil || *ref.ParameterNotFoundAction != admissionv1.DenyAction {
			t.Errorf("binding %s takes not all pods of the request's namespace: %+v", b.Name, ref)
		}
	}
}

// TestComponents: each changes what it says, and nothing else.
func TestComponents(t *testing.T) {
	const node, scaler, events, marks, evictions, deletion = "windlass-agent-node", "windlass-scaler-node", "windlass-agent-events", "windlass-agent-marks-evictions", "windlass-agent-evictions", "windlass-agent-delete"
	base := renderBase(t)
	direct := "windlass-agent-direct: create pods/eviction"
	for _, c := range []struct {
		components      string
		policies        []string
		gained, lost    []string // rights to write
		readsOwnNode    bool     // and no other Node
		argumentsGained []string
	}{
		{components: "", policies: []string{events, evictions, marks, node, scaler}},
		{components: "no-admission-policy"},
		{components: "unconfined-evictions", policies: []string{events, node, scaler}},
		{components: "impersonation-only", policies: []string{events, node, scaler}, lost: []string{direct}, readsOwnNode: true},
		{
			components: "last-chance-delete", policies: []string{deletion, events, evictions, marks, node, scaler},
			gained:          []string{"windlass-agent-delete: delete pods"},
			argumentsGained: []string{"--last-chance=spot=delete,asg=delete"},
		},
		{
			components: "last-chance-delete impersonation-only", policies: []string{deletion, events, node, scaler},
			gained: []string{"windlass-agent-delete: delete pods"}, lost: []string{direct}, readsOwnNode: true,
			argumentsGained: []string{"--last-chance=spot=delete,asg=delete"},
		},
		{
			components:      "last-chance-delete no-admission-policy",
			gained:          []string{"windlass-agent-delete: delete pods"},
			argumentsGained: []string{"--last-chance=spot=delete,asg=delete"},
		},
	} {
		t.Run(c.components, func(t *testing.T) {
			overlay := "namespace: elsewhere\nresources: [../manifests]\ncomponents:\n"
			for _, name := range strings.Fields(c.components) {
				overlay += "- ../manifests/components/" + name + "\n"
			}
			o := renderOverlay(t, overlay)
			var policies []string
			for _, p := range o.policies {
				policies = append(policies, p.Name)
			}
			slices.Sort(policies)
			if diff := cmp.Diff(c.policies, policies); diff != "" {
				t.Errorf("policies (-want +got):\n%s", diff)
			}
			if len(o.policyBinds) != len(o.policies) {
				t.Errorf("%d bindings of %d policies", len(o.policyBinds), len(o.policies))
			}
			if diff := cmp.Diff(c.gained, without(o.writes(), base.writes())); diff != "" {
				t.Errorf("rights gained (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.lost, without(base.writes(), o.writes())); diff != "" {
				t.Errorf("rights lost (-want +got):\n%s", diff)
			}
			if got := !o.agentReadsAll(); got != c.readsOwnNode {
				t.Errorf("an agent reads its own Node and pods only: %v", got)
			}
			if diff := cmp.Diff(c.argumentsGained, without(o.agentArgs(), base.agentArgs())); diff != "" {
				t.Errorf("arguments gained (-want +got):\n%s", diff)
			}
			for _, b := range o.clusterBinds {
				if b.Subjects[0].Namespace != "elsewhere" {
					t.Errorf("binding %s is of %v", b.Name, b.Subjects)
				}
			}
		})
	}
}

// without returns what of a list is not in another.
func without(list, other []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(other, s) {
			out = append(out, s)
		}
	}
	return out
}

// agentReadsAll reports whether the agent's account may read pods or Nodes as such.
func (o objects) agentReadsAll() bool {
	for _, role := range o.clusterRoles {
		for _, rule := range role.Rules {
			reads := slices.Contains(rule.Verbs, "list") || slices.Contains(rule.Verbs, "watch") || slices.Contains(rule.Verbs, "get")
			if strings.HasPrefix(role.Name, contract.AppAgent) && reads && (slices.Contains(rule.Resources, "pods") || slices.Contains(rule.Resources, "nodes")) {
				return true
			}
		}
	}
	return false
}

func (o objects) agentArgs() []string { return o.daemonSets[0].Spec.Template.Spec.Containers[0].Args }

// What scaler/act writes of Nodes, by its source, is what the policy lets it write: a key
// more would be denied, one less is a right for nothing.
func TestPolicyLetsTheScalerWriteWhatItWrites(t *testing.T) {
	var source strings.Builder
	paths, err := filepath.Glob("../scaler/act/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(body)
	}
	keys := contractKeys(t)
	writes := map[string]bool{} // by key: set, and not only removed
	note := func(set bool, names ...string) {
		for _, name := range names {
			key, known := keys[strings.TrimPrefix(strings.TrimSpace(name), "contract.")]
			if !known {
				t.Fatalf("scaler/act writes %s, which this test does not find in package contract", name)
			}
			writes[key] = writes[key] || set
		}
	}
	for _, m := range regexp.MustCompile(`want\.(?:Annotations|Labels)\[(contract\.\w+)\] = `).FindAllStringSubmatch(source.String(), -1) {
		note(true, m[1])
	}
	for _, m := range regexp.MustCompile(`delete\(want\.(?:Annotations|Labels), (contract\.\w+)\)`).FindAllStringSubmatch(source.String(), -1) {
		note(false, m[1])
	}
	for _, m := range regexp.MustCompile(`range \[\]string\{(contract\.[^}]+)\}`).FindAllStringSubmatch(source.String(), -1) {
		note(false, strings.Split(m[1], ",")...)
	}
	allowed := map[string]bool{}
	for _, p := range renderBase(t).policies {
		for _, v := range p.Spec.Variables {
			for _, word := range regexp.MustCompile(`'([^']+)'`).FindAllStringSubmatch(v.Expression, -1) {
				switch {
				case p.Name != "windlass-scaler-node":
				case v.Name == "ownLabels" || v.Name == "ownAnnotations":
					allowed[word[1]] = true
				case v.Name == "removableAnnotations":
					allowed[word[1]] = false
				}
			}
		}
	}
	if diff := cmp.Diff(writes, allowed); diff != "" {
		t.Errorf("keys (-written +allowed):\n%s", diff)
	}
}

// contractKeys are the texts of package contract's constants, by name.
func contractKeys(t *testing.T) map[string]string {
	t.Helper()
	set := token.NewFileSet()
	paths, err := filepath.Glob("../pkg/contract/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	// Its imports are not read: constants of text need none.
	checker := types.Config{Error: func(error) {}}
	checked, _ := checker.Check("contract", set, files, nil)
	keys := map[string]string{}
	for _, name := range checked.Scope().Names() {
		if c, is := checked.Scope().Lookup(name).(*types.Const); is && c.Val().Kind() == constant.String {
			keys[name] = constant.StringVal(c.Val())
		}
	}
	return keys
}

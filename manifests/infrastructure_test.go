package manifests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	appsv1 "k8s.io/api/apps/v1"

	"windlass.dev/windlass/e2e/fakeaws/iam"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/asg/userdata"
	"windlass.dev/windlass/scaler/plan/policy"
)

// infrastructure is what the examples make at AWS, in the words of neither.
type infrastructure struct {
	userData     string // base64
	hopLimit     any
	minSize      string
	namesDesired bool // desired capacity is set
	protected    any  // from scale-in
	tags         []tag
	hook         hook
	// policies are those of the scaler's role, by the file that each is made of.
	policies map[string]string
	// trust says who may take the scaler's role, and association, if there is one, for whom
	// EKS does.
	trust       any
	association map[string]any
}

type tag struct {
	key, value string
	propagated bool
}

type hook struct {
	name, transition, result string
	heartbeat                time.Duration
}

const (
	// exampleCluster is another name than that in settings.env.
	exampleCluster = "shop"
	exampleURL     = "https://example.eks.amazonaws.com"
	suspendPolicy  = "manifests/iam/suspend-az-rebalance.json"
	issuer         = "oidc.eks.eu-west-1.amazonaws.com/id/ABC"
)

// inTerraform reads examples/terraform; oidc is the ARN of the cluster's provider,
// suspends gives the right of --suspend-az-rebalance.
func inTerraform(t *testing.T, oidc string, suspends bool) infrastructure {
	t.Helper()
	text := func(s string) cty.Value { return cty.StringVal(s) }
	object := func(fields map[string]cty.Value) cty.Value { return cty.ObjectVal(fields) }
	cluster := object(map[string]cty.Value{
		"endpoint":                  text(exampleURL),
		"certificate_authority":     cty.TupleVal([]cty.Value{object(map[string]cty.Value{"data": text("Q0E=")})}),
		"kubernetes_network_config": cty.TupleVal([]cty.Value{object(map[string]cty.Value{"service_ipv4_cidr": text("172.20.0.0/16")})}),
	})
	m := readTerraform(t, "examples/terraform", map[string]cty.Value{
		"cluster_name": text(exampleCluster), "ami_id": text("ami-1"), "node_instance_profile_arn": text("arn:aws:iam::123456789012:instance-profile/node"),
		"subnet_ids": cty.ListVal([]cty.Value{text("subnet-a")}), "security_group_ids": cty.ListVal([]cty.Value{text("sg-1")}), "oidc_provider_arn": text(oidc),
		"suspend_az_rebalance": cty.BoolVal(suspends),
	}, map[string]cty.Value{
		"data":                  object(map[string]cty.Value{"aws_eks_cluster": object(map[string]cty.Value{"this": cluster})}),
		"aws_launch_template":   object(map[string]cty.Value{"nodes": object(map[string]cty.Value{"id": text("lt-1"), "latest_version": cty.NumberIntVal(3)})}),
		"aws_autoscaling_group": object(map[string]cty.Value{"nodes": object(map[string]cty.Value{"name": text("general")})}),
		"aws_iam_role":          object(map[string]cty.Value{"scaler": object(map[string]cty.Value{"name": text("scaler"), "arn": text("arn:aws:iam::123456789012:role/scaler")})}),
	})
	template, group := m.blocks["resource.aws_launch_template.nodes"], m.blocks["resource.aws_autoscaling_group.nodes"]
	held, role := m.blocks["resource.aws_autoscaling_lifecycle_hook.windlass"], m.blocks["resource.aws_iam_role.scaler"]
	i := infrastructure{
		userData: fmt.Sprint(template["user_data"]), hopLimit: only(t, template["metadata_options"])["http_put_response_hop_limit"],
		minSize: fmt.Sprint(group["min_size"]), namesDesired: group["desired_capacity"] != nil, protected: group["protect_from_scale_in"],
		hook:     hook{fmt.Sprint(held["name"]), fmt.Sprint(held["lifecycle_transition"]), fmt.Sprint(held["default_result"]), seconds(held["heartbeat_timeout"])},
		policies: map[string]string{asg.PolicyFile: fmt.Sprint(m.blocks["resource.aws_iam_role_policy.scaler"]["policy"])}, trust: role["assume_role_policy"],
	}
	if suspend := m.blocks["resource.aws_iam_role_policy.suspend_az_rebalance"]; suspend["count"] == 1. {
		i.policies[suspendPolicy] = fmt.Sprint(suspend["policy"])
	}
	for _, each := range list(group["tag"]) {
		fields := each.(map[string]any)
		i.tags = append(i.tags, tag{fmt.Sprint(fields["key"]), fmt.Sprint(fields["value"]), fields["propagate_at_launch"] == true})
	}
	association := m.blocks["resource.aws_eks_pod_identity_association.scaler"]
	if association["count"] == 1. {
		i.association = map[string]any{"cluster": association["cluster_name"], "namespace": association["namespace"], "account": association["service_account"]}
	}
	// What only Terraform says.
	if ignored := only(t, group["lifecycle"])["ignore_changes"]; !slices.Contains(list(ignored), any("desired_capacity")) {
		t.Errorf("each apply sets desired capacity: ignore_changes is %v", ignored)
	}
	refresh := only(t, only(t, group["instance_refresh"])["preferences"])
	if refresh["scale_in_protected_instances"] != "Refresh" {
		t.Errorf("a refresh passes over all instances, which are protected: %v", refresh)
	}
	return i
}

// inCloudFormation reads examples/cloudformation.yaml; oidc is the issuer, suspends as above.
func inCloudFormation(t *testing.T, oidc string, suspends bool) infrastructure {
	t.Helper()
	c := readCloudFormation(t, "examples/cloudformation.yaml", map[string]any{
		"ClusterName": exampleCluster, "ClusterEndpoint": exampleURL, "ClusterCertificateAuthority": "Q0E=", "ImageId": "ami-1",
		"SubnetIds": []any{"subnet-a"}, "SecurityGroupIds": []any{"sg-1"}, "NodeInstanceProfileArn": "arn:aws:iam::123456789012:instance-profile/node", "OidcIssuer": oidc,
		"SuspendAZRebalance": map[bool]string{true: "yes", false: "no"}[suspends],
	})
	template := c.properties("LaunchTemplate", "AWS::EC2::LaunchTemplate")["LaunchTemplateData"].(map[string]any)
	group, held := c.properties("Group", "AWS::AutoScaling::AutoScalingGroup"), c.properties("Hook", "AWS::AutoScaling::LifecycleHook")
	i := infrastructure{
		userData: fmt.Sprint(template["UserData"]), hopLimit: template["MetadataOptions"].(map[string]any)["HttpPutResponseHopLimit"],
		minSize: fmt.Sprint(group["MinSize"]), namesDesired: group["DesiredCapacity"] != nil, protected: group["NewInstancesProtectedFromScaleIn"],
		hook:     hook{fmt.Sprint(held["LifecycleHookName"]), fmt.Sprint(held["LifecycleTransition"]), fmt.Sprint(held["DefaultResult"]), seconds(held["HeartbeatTimeout"])},
		policies: map[string]string{asg.PolicyFile: fmt.Sprint(c.properties("ScalerPolicy", "AWS::IAM::RolePolicy")["PolicyDocument"])},
		trust:    c.properties("ScalerRole", "AWS::IAM::Role")["AssumeRolePolicyDocument"],
	}
	for _, each := range list(group["Tags"]) {
		fields := each.(map[string]any)
		i.tags = append(i.tags, tag{fmt.Sprint(fields["Key"]), fmt.Sprint(fields["Value"]), fields["PropagateAtLaunch"] == true})
	}
	if c.made("SuspendPolicy") {
		i.policies[suspendPolicy] = fmt.Sprint(c.properties("SuspendPolicy", "AWS::IAM::RolePolicy")["PolicyDocument"])
	}
	association := c.properties("PodIdentityAssociation", "AWS::EKS::PodIdentityAssociation")
	if c.made("PodIdentityAssociation") {
		i.association = map[string]any{"cluster": association["ClusterName"], "namespace": association["Namespace"], "account": association["ServiceAccount"]}
	}
	return i
}

// only is the one block of its kind.
func only(t *testing.T, blocks any) map[string]any {
	t.Helper()
	if n := len(list(blocks)); n != 1 {
		t.Fatalf("%d blocks, want one", n)
	}
	return list(blocks)[0].(map[string]any)
}

func seconds(v any) time.Duration {
	d, _ := time.ParseDuration(fmt.Sprint(v) + "s")
	return d
}

// Both examples make the same, and it is what the manifests and the scaler's defaults ask for.
func TestInfrastructure(t *testing.T) {
	for name, i := range map[string]infrastructure{
		"terraform": inTerraform(t, "", false), "cloudformation": inCloudFormation(t, "", false),
		"terraform that suspends": inTerraform(t, "", true), "cloudformation that suspends": inCloudFormation(t, "", true),
	} {
		t.Run(name, func(t *testing.T) {
			i.checkGroup(t)
			i.checkHook(t)
			i.checkUserData(t)
			i.checkPolicies(t, strings.Contains(name, "suspends"))
		})
	}
}

func (i infrastructure) checkGroup(t *testing.T) {
	if i.namesDesired || i.minSize != "0" {
		t.Errorf("desired capacity is named (%t), or the minimum is %s: both are for the scaler to find", i.namesDesired, i.minSize)
	}
	if i.protected != true {
		t.Errorf("protected from scale-in: %v", i.protected)
	}
	if fmt.Sprint(i.hopLimit) != "1" {
		t.Errorf("hop limit %v", i.hopLimit)
	}
	carried := map[string]string{}
	for _, tag := range i.tags {
		carried[tag.key] = tag.value
		if ours := strings.HasPrefix(tag.key, "k8s.io/cluster-autoscaler/"); ours == tag.propagated {
			t.Errorf("tag %s: propagated %t; instances need it: %t", tag.key, tag.propagated, !ours)
		}
	}
	for _, key := range discoveryTags(t) {
		if carried[key] == "" {
			t.Errorf("no tag %s, by which the scaler finds groups, among %v", key, i.tags)
		}
	}
}

// discoveryTags are the keys in the flag of the scaler's manifest.
func discoveryTags(t *testing.T) []string {
	t.Helper()
	for _, d := range renderBase(t).deployments {
		for _, arg := range slices.Concat(d.Spec.Template.Spec.Containers[0].Args, d.Spec.Template.Spec.Containers[0].Command) {
			if keys, is := strings.CutPrefix(arg, "--node-group-auto-discovery=asg:tag="); is && d.Name == contract.AppScaler {
				return strings.Split(strings.ReplaceAll(keys, "$(CLUSTER_NAME)", exampleCluster), ",")
			}
		}
	}
	t.Fatal("the scaler's manifest has no --node-group-auto-discovery")
	return nil
}

// checkHook holds the hook against the scaler's defaults.
func (i infrastructure) checkHook(t *testing.T) {
	policy := policy.DefaultPolicy()
	if !slices.Contains(policy.TerminationHooks, i.hook.name) {
		t.Errorf("hook %q, and the scaler completes %v", i.hook.name, policy.TerminationHooks)
	}
	if i.hook.transition != "autoscaling:EC2_INSTANCE_TERMINATING" || i.hook.result != "CONTINUE" {
		t.Errorf("hook %+v", i.hook)
	}
	if i.hook.heartbeat < policy.TerminationDrainTime {
		t.Errorf("the hook holds for %s, and a drain may take %s", i.hook.heartbeat, policy.TerminationDrainTime)
	}
}

// checkUserData has the scaler read what nodes are told, and compares it with the tags.
func (i infrastructure) checkUserData(t *testing.T) {
	read := userdata.Parse(i.userData)
	if read.Family != userdata.AmazonLinux || len(read.Faults) != 0 {
		t.Errorf("user data of family %q, faults %q", read.Family, read.Faults)
	}
	tagged := map[string]string{}
	for _, tag := range i.tags {
		if label, is := strings.CutPrefix(tag.key, contract.TagTemplateLabel); is {
			tagged[label] = tag.value
		}
	}
	if diff := cmp.Diff(read.Labels, tagged); diff != "" || len(tagged) == 0 {
		t.Errorf("labels (-of nodes +in tags):\n%s", diff)
	}
}

// checkPolicies: the role has the policy that every scaler needs, and what is opt-in only
// where it is asked for.
func (i infrastructure) checkPolicies(t *testing.T, suspends bool) {
	files := []string{asg.PolicyFile}
	if suspends {
		files = append(files, suspendPolicy)
	}
	if diff := cmp.Diff(files, slices.Sorted(maps.Keys(i.policies))); diff != "" {
		t.Fatalf("policies (-want +example):\n%s", diff)
	}
	for file, policy := range i.policies {
		shipped, err := os.ReadFile(strings.TrimPrefix(file, "manifests/"))
		if err != nil {
			t.Fatal(err)
		}
		want, err := iam.Parse(bytes.ReplaceAll(shipped, []byte(clusterName(t)), []byte(exampleCluster)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := iam.Parse([]byte(policy))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("policy (-%s +example):\n%s", file, diff)
		}
	}
}

// The role is for the scaler's account and nobody else, in both ways in which EKS gives roles to pods.
func TestInfrastructureTrust(t *testing.T) {
	o := renderBase(t)
	account := slices.IndexFunc(o.deployments, func(d appsv1.Deployment) bool { return d.Name == contract.AppScaler })
	namespace, name := o.deployments[account].Namespace, o.deployments[account].Spec.Template.Spec.ServiceAccountName
	service := map[string]any{"Effect": "Allow", "Action": []any{"sts:AssumeRole", "sts:TagSession"}, "Principal": map[string]any{"Service": "pods.eks.amazonaws.com"}}
	web := map[string]any{
		"Effect": "Allow", "Action": "sts:AssumeRoleWithWebIdentity", "Principal": map[string]any{"Federated": "arn:aws:iam::123456789012:oidc-provider/" + issuer},
		"Condition": map[string]any{"StringEquals": map[string]any{
			issuer + ":aud": "sts.amazonaws.com", issuer + ":sub": "system:serviceaccount:" + namespace + ":" + name}},
	}
	association := map[string]any{"cluster": exampleCluster, "namespace": namespace, "account": name}
	for _, c := range []struct {
		about       string
		made        infrastructure
		statement   map[string]any
		association map[string]any
	}{
		{"terraform, pod identity", inTerraform(t, "", false), service, association},
		{"terraform, IRSA", inTerraform(t, "arn:aws:iam::123456789012:oidc-provider/"+issuer, false), web, nil},
		{"cloudformation, pod identity", inCloudFormation(t, "", false), service, association},
		{"cloudformation, IRSA", inCloudFormation(t, issuer, false), web, nil},
	} {
		trust := c.made.trust
		if text, is := trust.(string); is {
			if err := json.Unmarshal([]byte(text), &trust); err != nil {
				t.Fatalf("%s: %v", c.about, err)
			}
		}
		if diff := cmp.Diff(any(map[string]any{"Version": "2012-10-17", "Statement": []any{c.statement}}), trust); diff != "" {
			t.Errorf("%s: trust (-want +got):\n%s", c.about, diff)
		}
		if diff := cmp.Diff(c.association, c.made.association); diff != "" {
			t.Errorf("%s: association (-want +got):\n%s", c.about, diff)
		}
	}
}

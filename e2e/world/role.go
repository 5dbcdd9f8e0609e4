package world

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"windlass.dev/windlass/pkg/contract"
)

// roleProbe is the pace of asking whether the role is in force.
const roleProbe = 100 * time.Millisecond

// giveRole returns when pods of the scaler get the role: the API server takes a moment
// until it holds by a policy that it has been given.
func (w *World) giveRole(ctx context.Context, more []string) error {
	if err := w.Apply(ctx, []byte(w.roleOfScaler(more))); err != nil {
		return err
	}
	accounts := w.Client.CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: contract.AppScaler}}
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return err
	}
	probe := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "probe"},
		Spec:       corev1.PodSpec{ServiceAccountName: contract.AppScaler, Containers: []corev1.Container{{Name: "probe", Image: "probe"}}},
	}
	err := wait.PollUntilContextCancel(ctx, roleProbe, true, func(ctx context.Context) (bool, error) {
		made, err := w.Client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && len(made.Spec.Containers[0].Env) > 0, err
	})
	if err != nil {
		return fmt.Errorf("waiting until it is in force: %w", err)
	}
	return accounts.Delete(ctx, contract.AppScaler, metav1.DeleteOptions{})
}

// roleOfScaler is what gives the scaler's pods their way to AWS and credentials in the way
// in which the webhook of EKS does for a role: by environment variables, so that the
// manifests need not know. The credentials are keys, where EKS has a token to be exchanged.
// https://docs.aws.amazon.com/eks/latest/userguide/pod-identities.html
// https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/
func (w *World) roleOfScaler(more []string) string {
	var env strings.Builder
	for _, variable := range append(w.awsEnvironment(), more...) {
		name, value, _ := strings.Cut(variable, "=")
		fmt.Fprintf(&env, "\n                  Object.spec.containers.env{name: %q, value: %q},", name, value)
	}
	return fmt.Sprintf(roleFormat, contract.AppScaler, strings.TrimSuffix(env.String(), ","))
}

// roleFormat takes the name of the account and the variables.
const roleFormat = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata:
  name: role-of-the-scaler
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
      - apiGroups: [""]
        apiVersions: [v1]
        operations: [CREATE]
        resources: [pods]
  matchConditions:
    - name: is-of-the-scaler
      expression: object.spec.serviceAccountName == %q
  mutations:
    - patchType: JSONPatch
      jsonPatch:
        expression: |
          (has(object.spec.containers[0].env) ? [] : [JSONPatch{op: "add", path: "/spec/containers/0/env", value: []}]) +
          [%s].map(v, JSONPatch{op: "add", path: "/spec/containers/0/env/-", value: v})
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata:
  name: role-of-the-scaler
spec:
  policyName: role-of-the-scaler
`

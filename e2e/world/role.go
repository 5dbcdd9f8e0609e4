package world

import (
	"fmt"
	"strings"

	"windlass.dev/windlass/pkg/contract"
)

// roleOfScaler is what gives the scaler's pods their way to AWS and the credentials of a
// role, as the webhook of EKS does where a role is associated with a service account: by
// environment variables, so that the manifests need not know.
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
          [%s].map(v, JSONPatch{op: "add", path: "/spec/containers/0/env/-", value: v})
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata:
  name: role-of-the-scaler
spec:
  policyName: role-of-the-scaler
`

package laws

import (
	"fmt"
	"slices"
	"strings"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/pkg/contract"
)

// DryRun finds what programs wrote that are to change nothing: at the API server all but ConfigMaps and
// Leases of their own, Events, questions of rights, and on Nodes the annotation of a dry run; at AWS
// all that does not only read.
func DryRun(audit []Request, calls []fakeaws.Call) []string {
	var breaches []string
	for _, a := range audit {
		if !strings.HasPrefix(a.User.Username, ours) || slices.Contains([]string{"get", "list", "watch"}, a.Verb) || a.ofDryRun() {
			continue
		}
		breaches = append(breaches, fmt.Sprintf("in a dry run %s asked to %s %s %s/%s at %s", strings.TrimPrefix(a.User.Username, ours), a.Verb,
			strings.Trim(a.ObjectRef.Resource+"/"+a.ObjectRef.Subresource, "/"), a.ObjectRef.Namespace, a.ObjectRef.Name, stamp(a.RequestReceivedTimestamp)))
	}
	for _, c := range calls {
		if c.Service != "imds" && !strings.HasPrefix(c.Operation, "Describe") && !strings.HasPrefix(c.Operation, "Get") && !strings.HasPrefix(c.Operation, "AssumeRole") {
			breaches = append(breaches, fmt.Sprintf("in a dry run %s was called at %s", c.Operation, stamp(c.Time)))
		}
	}
	return breaches
}

// ofDryRun reports whether a program may write that which changes nothing.
func (r Request) ofDryRun() bool {
	switch r.ObjectRef.Resource {
	case "configmaps":
		return r.ObjectRef.Name == contract.ConfigMapStatus || strings.HasPrefix(r.ObjectRef.Name, contract.ConfigMapShadow)
	case "leases":
		return r.ObjectRef.Name == contract.LeaseScaler
	case "events", "subjectaccessreviews", "selfsubjectreviews", "selfsubjectaccessreviews":
		return true
	case "nodes":
		o := r.RequestObject // of a patch of another kind no writes are known
		_, said := o.Metadata.Annotations[contract.AnnotationDryRun]
		return r.Verb == "patch" && r.ObjectRef.Subresource == "" && o.isJSONPatch && said && len(o.Metadata.Annotations) == 1 && len(o.writes) == 0
	}
	return false
}

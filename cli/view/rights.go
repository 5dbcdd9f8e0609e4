package view

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"windlass.dev/windlass/pkg/contract"
)

// Right is one that a role of the manifests gives.
type Right struct {
	// Role is the one of the manifests.
	Role string
	// Own: in the namespace of Windlass, and else in the whole cluster.
	Own                       bool
	Verb, Group, Resource, Of string
	// Allowed is what the API server answered.
	Allowed bool
}

// Account is the service account that has a role; empty for roles of people.
func (r Right) Account() string {
	for _, app := range []string{contract.AppAgent, contract.AppScaler, contract.AppNotifier} {
		if strings.HasPrefix(r.Role, app) {
			return app
		}
	}
	return ""
}

func (r Right) String() string {
	text := r.Verb + " " + r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Of != "" {
		text += " " + r.Of
	}
	return text
}

// rights.txt is what the roles of manifests give, line by line; make update writes it.
//
//go:embed rights.txt
var rights string

// inCluster and inOwn are the scopes of rights.txt.
const inCluster, inOwn = "cluster", "own"

// AllRights are those of the manifests.
var AllRights = func() (all []Right) {
	for line := range strings.Lines(rights) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 6 || fields[1] != inCluster && fields[1] != inOwn {
			panic(fmt.Sprintf("rights.txt: %q", line)) // a part of the program, which a test reads
		}
		all = append(all, Right{Role: fields[0], Own: fields[1] == inOwn, Verb: fields[2], Group: fields[3], Resource: fields[4], Of: fields[5]})
	}
	return all
}()

// optionalGroup is an API group that is used where it is served in that version.
type optionalGroup struct{ group, version, use, without, get string }

var optionalGroups = []optionalGroup{
	{"autoscaling.x-k8s.io", "v1beta1", "CapacityBuffers keep room free", "CapacityBuffers keep no room free; flags and tags do", "install the CustomResourceDefinition of CapacityBuffer, if you want it"},
	{"karpenter.sh", "v1", "NodePools that take the groups' pods are reported", "there are no NodePools to report", ""},
	{"resource.k8s.io", "v1", "pods with resource claims are placed by their devices", "no node is launched for pods with resource claims", "enable it with the API server's --runtime-config, if pods claim devices"},
}

// askedGroups are the API groups of all rights, but for the core's.
func askedGroups() (groups []string) {
	for _, r := range AllRights {
		if r.Group != "" && !slices.Contains(groups, r.Group) {
			groups = append(groups, r.Group)
		}
	}
	return groups
}

// RoleViewer is that of people who use this program; the others of theirs are for one command each.
const RoleViewer = "windlass-viewer"

const (
	// roleDirect may be left out where the API server knows the impersonation of nodes, from
	// this minor version on.
	roleDirect, impersonates = contract.AppAgent + "-direct", 36
	// groupToldOf is of what is read only to tell people of it.
	groupToldOf = "karpenter.sh"
)

// rights finds what accounts lack, a finding for each role: some lack all of one.
func (c *checker) rights() {
	var roles []string
	missing, all := map[string][]string{}, map[string]int{}
	for _, r := range c.Rights {
		if !slices.Contains(roles, r.Role) {
			roles = append(roles, r.Role)
		}
		if all[r.Role]++; !r.Allowed {
			role := r.Role
			if r.Group == groupToldOf {
				role += " " + groupToldOf
				roles = append(roles, role)
			}
			missing[role] = append(missing[role], r.String())
		}
	}
	minor, known := minorOf(c.Server)
	for _, role := range roles {
		lacks := missing[role]
		text := fmt.Sprintf("not allowed: %s", strings.Join(lacks, ", "))
		switch {
		case len(lacks) == 0:
		case (Right{Role: role}).Account() == "":
			c.find(SeverityWarning, AreaAccess, "clusterrole/"+role, "you are "+text, "bind it to who asks: manifests/components/viewers")
		case strings.HasSuffix(role, groupToldOf):
			c.find(SeverityWarning, AreaRights, "serviceaccount/"+c.System+"/"+contract.AppScaler, text+": no NodePool is reported", "apply manifests/base/scaler-rbac.yaml, or leave it")
		case role == roleDirect && len(lacks) == all[role] && known && minor >= impersonates && len(missing[contract.AppAgent]) == 0:
			// The component impersonation-only takes it out.
		default:
			account := (Right{Role: role}).Account()
			folder := "base"
			if account == contract.AppNotifier {
				folder = "components/notifications"
			}
			c.find(SeverityError, AreaRights, "serviceaccount/"+c.System+"/"+account, "role "+role+": "+text, "apply manifests/"+folder+"/"+strings.TrimPrefix(account, "windlass-")+"-rbac.yaml")
		}
	}
}

package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
)

// Preflight is what check has read. What could not be read is in Unread.
type Preflight struct {
	World
	// System is the namespace of Windlass, and Plugin the version of this program.
	System, Plugin string
	// Server is the version of the API server, such as v1.36.1, and Served the API groups that
	// it serves, and their versions as group/version.
	Server  string
	Served  []string
	Scalers []ProgramPod
	Agents  []ProgramPod
	// Notifiers are none where the component is not installed, and NotifierLease is its Lease then.
	Notifiers     []ProgramPod
	NotifierLease *Leader
	Others        []OtherProgram
	Odd           []OddAnnotation
	Budgets       []policyv1.PodDisruptionBudget
	// Twice names pods that several budgets guard, with those.
	Twice []Guarded
	// Rights are those that were asked about.
	Rights []Right
	// Unread has why an area could not be checked, or not in full.
	Unread map[Area]string
}

// Area is what a finding is about.
type Area string

// Areas, in the order in which they are listed.
const (
	AreaAPI      Area = "api"      // the server's version, and what it serves
	AreaScaler   Area = "scaler"   // its pods, the lease
	AreaAgents   Area = "agents"   // a Ready one on each node of a group, and its way to IMDS
	AreaNotifier Area = "notifier" // its pods, the lease
	AreaRights   Area = "rights"   // of the accounts
	AreaAccess   Area = "access"   // of who asks
	AreaCluster  Area = "cluster"  // what the leader cannot read or do
	AreaGroups   Area = "groups"   // hooks, protection, definitions, as the leader found them
	AreaOthers   Area = "others"   // other autoscalers, termination handlers and drainers
	AreaNodes    Area = "nodes"    // cordons, provider IDs
	AreaBudgets  Area = "budgets"  // that can never allow an eviction
	AreaPods     Area = "pods"     // annotations that cannot be read
)

var areas = []Area{AreaAPI, AreaScaler, AreaAgents, AreaNotifier, AreaRights, AreaAccess, AreaCluster, AreaGroups, AreaOthers, AreaNodes, AreaBudgets, AreaPods}

// Severity of a finding.
type Severity string

// Severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	// SeverityUnknown is of what could not be checked.
	SeverityUnknown Severity = "unknown"
	SeverityOK      Severity = "ok"
)

var severities = []Severity{SeverityError, SeverityUnknown, SeverityWarning, SeverityOK}

// Check is what was found.
type Check struct {
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
	Unknown  int       `json:"unknown"`
	Findings []Finding `json:"findings"`
}

// Finding is one thing that is wrong, or that an area is all right.
type Finding struct {
	Severity Severity `json:"severity"`
	Area     Area     `json:"area"`
	Of       string   `json:"of"`
	Text     string   `json:"text"`
	Do       string   `json:"do,omitempty"`
	// Count is how many findings stand in this one, where they are more than one.
	Count int `json:"count,omitempty"`
}

// mostAlike is how many findings of one kind are listed. Tenants make some of them.
const mostAlike = 20

// checker collects findings.
type checker struct {
	Preflight
	found []Finding
	// more counts those of a kind, by area and what is to be done.
	more map[Finding]int
}

func (c *checker) find(severity Severity, area Area, of, text, do string) {
	kind := Finding{Severity: severity, Area: area, Do: do}
	if c.more[kind]++; c.more[kind] <= mostAlike {
		c.found = append(c.found, Finding{Severity: severity, Area: area, Of: of, Text: contract.Shorten(text, 500), Do: do})
	}
}

// NewCheck says what is wrong with an installation, worst first.
func NewCheck(p Preflight) Check {
	c := &checker{Preflight: p, more: map[Finding]int{}}
	c.api()
	c.scaler()
	c.agents()
	c.notifier()
	c.rights()
	c.saidByPrograms()
	c.leaderFound()
	c.groups()
	c.others()
	c.nodes()
	c.budgets()
	c.pods()
	for kind, count := range c.more {
		if more := count - mostAlike; more > 0 {
			kind.Of, kind.Text, kind.Count = "-", fmt.Sprintf("and %d more of that kind", more), more
			c.found = append(c.found, kind)
		}
	}
	for _, area := range areas {
		if why, unread := p.Unread[area]; unread {
			c.found = append(c.found, Finding{Severity: SeverityUnknown, Area: area, Of: "-", Text: "not checked: " + why, Do: "bind the roles of manifests/components/viewers to who asks, or mend what the sentence names"})
		} else if !slices.ContainsFunc(c.found, func(f Finding) bool { return f.Area == area && f.Severity != SeverityOK }) {
			c.found = append(c.found, Finding{Severity: SeverityOK, Area: area, Of: "-", Text: c.fine(area)})
		}
	}
	slices.SortStableFunc(c.found, func(a, b Finding) int {
		return cmp.Or(slices.Index(severities, a.Severity)-slices.Index(severities, b.Severity), slices.Index(areas, a.Area)-slices.Index(areas, b.Area),
			cmp.Compare(a.Do, b.Do)) // what is alike stands together, and how many more there are below
	})
	out := Check{Findings: c.found}
	for _, f := range c.found {
		count := max(1, f.Count)
		switch f.Severity {
		case SeverityError:
			out.Errors += count
		case SeverityWarning:
			out.Warnings += count
		case SeverityUnknown:
			out.Unknown += count
		}
	}
	return out
}

// fine is what is true of an area without findings.
func (c *checker) fine(area Area) string {
	switch area {
	case AreaAPI:
		return "the API server is " + c.Server + " and serves what Windlass uses"
	case AreaScaler:
		return fmt.Sprintf("%d replicas are seen, and %s leads, version %s", len(c.Scalers), c.Leader.Holder, cmp.Or(c.Page.Version, "unknown"))
	case AreaAgents:
		return fmt.Sprintf("%d agents are Ready, on every node of a group", len(c.Agents))
	case AreaNotifier:
		if len(c.Notifiers) == 0 {
			return "it is not installed"
		}
		return fmt.Sprintf("%d replicas are seen, and %s sends", len(c.Notifiers), c.NotifierLease.Holder)
	case AreaRights:
		return "the accounts may do what the manifests give them"
	case AreaAccess:
		return "you may read what this program reads"
	case AreaCluster:
		return "the leader reads and does all that it wants to"
	case AreaGroups:
		return fmt.Sprintf("the leader finds nothing wrong with %d groups", len(c.Verdicts.Groups))
	case AreaOthers:
		return "no other program is seen that scales or drains nodes"
	case AreaNodes:
		return fmt.Sprintf("none of %d nodes is cordoned by hand, and each has a providerID", len(c.Nodes))
	case AreaBudgets:
		return fmt.Sprintf("each of %d budgets can allow evictions", len(c.Budgets))
	}
	return "every annotation of ours can be read"
}

// OldestMinor and NewestMinor are the versions of Kubernetes whose scheduler the scaler knows.
const OldestMinor, NewestMinor = 33, 36

func (c *checker) api() {
	if minor, known := minorOf(c.Server); known && (minor < OldestMinor || minor > NewestMinor) {
		c.find(SeverityWarning, AreaAPI, c.Server, fmt.Sprintf("Windlass goes by the scheduler of Kubernetes 1.%d to 1.%d", OldestMinor, NewestMinor), "expect pods of newer kinds to be placed differently, or use the Windlass of that version")
	}
	if c.Served == nil {
		return
	}
	for _, o := range optionalGroups {
		of := o.group + "/" + o.version
		if slices.Contains(c.Served, of) {
			c.find(SeverityOK, AreaAPI, of, "it is served: "+o.use, "")
		} else {
			c.find(SeverityOK, AreaAPI, of, "it is not served: "+o.without, o.get)
		}
	}
	for _, group := range askedGroups() {
		if !slices.Contains(c.Served, group) && !slices.ContainsFunc(optionalGroups, func(o optionalGroup) bool { return o.group == group }) {
			c.find(SeverityError, AreaAPI, group, "the API server does not serve this API group, which Windlass uses", "enable it with the API server's --runtime-config")
		}
	}
}

// minorOf reads the 36 of v1.36.1-eks-1.
func minorOf(version string) (int, bool) {
	fields := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(fields) < 2 || fields[0] != "1" {
		return 0, false
	}
	minor, err := strconv.Atoi(strings.TrimRight(fields[1], "+"))
	return minor, err == nil
}

func (c *checker) scaler() {
	if _, unread := c.Unread[AreaPods]; !unread {
		if len(c.Scalers) == 0 {
			c.find(SeverityError, AreaScaler, "namespace/"+c.System, "no pod of "+contract.AppScaler+" is there", "install Windlass, scale its Deployment up, or name its namespace with --windlass-namespace")
		}
		c.ready(c.Scalers, AreaScaler, "read its log: an instance role without credentials, a flag, or a node without room; with the node's role a pod needs IMDS with a hop limit of 2")
		c.skew()
	}
	if c.Leader == nil {
		return // it could not be read
	}
	switch holder, renewed := c.Leader.Holder, c.Leader.Renewed; {
	case holder == "" && renewed.IsZero():
		c.find(SeverityError, AreaScaler, "lease/"+contract.LeaseScaler, "no replica has ever led", "read the scaler's log")
	case holder == "" || c.Now.Sub(renewed) > mostSilence:
		c.find(SeverityError, AreaScaler, "lease/"+contract.LeaseScaler, "no replica leads: it was last renewed at "+moment(renewed), "read the scaler's log, and /healthz on its metrics port")
	case c.Page.Leader != "" && c.Page.Leader != holder:
		c.find(SeverityWarning, AreaScaler, "configmap/"+contract.ConfigMapStatus, fmt.Sprintf("%s leads, and %s was written by %s at %s", holder, contract.ConfigMapStatus, c.Page.Leader, moment(c.Page.Written)), "if it stays, read the leader's log")
	}
}

// ready finds pods of ours that are not Ready.
func (c *checker) ready(pods []ProgramPod, area Area, do string) {
	for _, p := range pods {
		if !p.Ready {
			c.find(SeverityError, area, "pod/"+p.Name, "it is not Ready: "+cmp.Or(p.Why, "no reason is given"), do)
		}
	}
}

// skew finds programs of different versions.
func (c *checker) skew() {
	tags := map[string][]string{}
	for _, p := range slices.Concat(c.Scalers, c.Agents) {
		if tag := p.Tag(); !slices.Contains(tags[tag], p.Name) {
			tags[tag] = append(tags[tag], p.Name)
		}
	}
	if len(tags) > 1 {
		var texts []string
		for tag, pods := range tags {
			texts = append(texts, fmt.Sprintf("%s (%d, such as %s)", cmp.Or(tag, "no tag"), len(pods), slices.Min(pods)))
		}
		slices.Sort(texts)
		c.find(SeverityWarning, AreaScaler, "namespace/"+c.System, "scalers and agents have different versions: "+strings.Join(texts, ", "), "end the upgrade: they may differ by one version")
	}
	if theirs := c.Page.Version; released(theirs) && released(c.Plugin) && theirs != c.Plugin {
		c.find(SeverityWarning, AreaScaler, "kubectl-windlass", fmt.Sprintf("it is %s, and the leader is %s", c.Plugin, theirs), "take the plugin of the scaler's version")
	}
}

// released reports whether a version is a release's, such as v0.1.0.
func released(version string) bool {
	return strings.HasPrefix(version, "v") && strings.Count(version, ".") == 2 && !strings.ContainsAny(version, "-+")
}

func (c *checker) agents() {
	if _, unread := c.Unread[AreaPods]; unread {
		return
	}
	if len(c.Agents) == 0 {
		c.find(SeverityError, AreaAgents, "namespace/"+c.System, "no pod of "+contract.AppAgent+" is there", "install Windlass, or name its namespace with --windlass-namespace")
		return
	}
	c.ready(c.Agents, AreaAgents, "read its log")
	on := map[string]bool{}
	for _, p := range c.Agents {
		on[p.Node] = true
		if !p.HostNetwork {
			c.find(SeverityError, AreaAgents, "pod/"+p.Name, "it is not on its host's network, so IMDS does not answer it where the instance's hop limit is 1", "set hostNetwork: true as manifests/base/agent.yaml has it, or the launch template's HttpPutResponseHopLimit to 2")
		}
	}
	for _, n := range c.Verdicts.Nodes {
		if o := c.node(n.Name); n.Group != "" && !on[n.Name] && o != nil && c.Now.Sub(o.CreationTimestamp.Time) > agentComes {
			c.find(SeverityError, AreaAgents, ref(KindNode, n.Name), "no agent runs on it: notices of its instance are not seen", "look at the DaemonSet's tolerations and node affinity, and whether the node has room")
		}
	}
}

// agentComes is how long a new node may be without an agent.
const agentComes = 5 * time.Minute

// calmInCheck are the reasons of groups that say nothing about how they are set up.
var calmInCheck = append([]statuspage.Reason{"AtMax", "ClusterAtLimit", "HeadroomShort", "AboveDesired"}, calm...)

// broken are those with which Windlass cannot do its work.
var broken = []statuspage.Reason{"Faulty", "HookMissing", "ForeignHook", "HookMisconfigured", "HookCompletedByOthers", "OtherAutoscaler", "ForeignGroup", "OwnedByAnotherCluster"}

// hookReasons are those of which the details speak for themselves.
var hookReasons = []statuspage.Reason{"HookMissing", "ForeignHook", "HookMisconfigured"}

// notifier is looked at where a pod of it is there: it is installed where people want it.
func (c *checker) notifier() {
	if len(c.Notifiers) == 0 {
		return
	}
	c.ready(c.Notifiers, AreaNotifier, "read its log; make the Secret "+contract.AppNotifier+" that its pods mount (notifications.md)")
	if l := c.NotifierLease; l != nil && (l.Holder == "" || c.Now.Sub(l.Renewed) > mostSilence) {
		c.find(SeverityError, AreaNotifier, "lease/"+contract.LeaseNotifier, "no replica sends: it was last renewed at "+moment(l.Renewed), "read the notifier's log, and apply manifests/components/notifications/notifier-state.yaml where the Lease is missing")
	}
}

// saidByPrograms has what programs say of what keeps them from their work. An Event is there for an hour.
func (c *checker) saidByPrograms() {
	for _, e := range c.Events {
		switch e.Reason {
		case contract.EventNotConfined:
			c.find(SeverityError, AreaRights, "serviceaccount/"+c.System+"/"+e.Source.Component, e.Message, "apply the admission policies of manifests/base, or give the account the name that they match (iam.md)")
		case contract.EventMetadataUnread:
			c.find(SeverityError, AreaAgents, ref(KindNode, e.InvolvedObject.Name), "in the last hour: "+e.Message, "enable the instance's metadata endpoint (HttpEndpoint), and read the agent's log")
		}
	}
}

// leaderFound has what the leader's page says of the cluster.
func (c *checker) leaderFound() {
	if _, unread := c.Unread[AreaCluster]; unread {
		return
	}
	if c.Page.Written.IsZero() {
		c.find(SeverityError, AreaCluster, "configmap/"+contract.ConfigMapStatus, "there is none with a page: no scaler has led in namespace "+c.System, "see what is said of the scaler")
	}
	for _, f := range Faults(c.World) {
		switch f.Of {
		case "scaler", "cluster":
			c.find(SeverityError, AreaCluster, f.Of, f.Text, "mend what the sentence names; a missing right at the API server is in manifests/base, one at AWS in manifests/iam")
		case "action":
			c.find(SeverityWarning, AreaCluster, f.Of, f.Text, "mend what the sentence names")
		case "other program":
			c.find(SeverityWarning, AreaOthers, f.Of, f.Text, "do what the sentence says")
		}
	}
}

func (c *checker) groups() {
	if _, unread := c.Unread[AreaGroups]; unread {
		return
	}
	if len(c.Verdicts.Groups) == 0 && !c.Page.Written.IsZero() && c.Page.Trouble == "" {
		c.find(SeverityError, AreaGroups, "-", "the leader knows no group", "set the discovery tags on the groups, or --nodes")
	}
	for i := range c.Verdicts.Groups {
		g := &c.Verdicts.Groups[i]
		of := ref(KindGroup, g.Name)
		advice := AdviceOn(KindGroup, g.Reason).Do
		said := false
		for _, d := range g.Details { // also where a weightier reason hides it
			reason := hookReason(d)
			if reason == "" {
				continue
			}
			c.find(SeverityError, AreaGroups, of, d.Text, AdviceOn(KindGroup, reason).Do)
			said = said || slices.Contains(hookReasons, g.Reason)
		}
		switch {
		case said:
		case slices.Contains(broken, g.Reason):
			c.find(SeverityError, AreaGroups, of, string(g.Reason)+": "+g.Message(), advice)
		case !slices.Contains(calmInCheck, g.Reason):
			c.find(SeverityWarning, AreaGroups, of, string(g.Reason)+": "+g.Message(), advice)
		}
		for _, fault := range g.Faults {
			if g.Reason != "Faulty" {
				c.find(SeverityWarning, AreaGroups, of, fault, "mend what the sentence names")
			}
		}
		if g.Unprotected > 0 {
			c.find(SeverityWarning, AreaGroups, of, fmt.Sprintf("instances that are not protected from scale-in: %d; where desired is lowered, Auto Scaling chooses among them", g.Unprotected), "protect new instances of the group from scale-in, and those that there are with aws autoscaling set-instance-protection")
		}
	}
}

func (c *checker) nodes() {
	for i := range c.Nodes {
		n := &c.Nodes[i]
		_, ours := n.Annotations[contract.AnnotationCordonedBy]
		if _, draining := drainOf(n, ""); n.Spec.Unschedulable && !ours && !draining {
			c.find(SeverityWarning, AreaNodes, ref(KindNode, n.Name), "somebody has cordoned it by hand: it is paid for, takes no pod, and Windlass does not uncordon it", "kubectl uncordon it, or kubectl windlass drain it")
		}
		if n.Spec.ProviderID == "" {
			c.find(SeverityWarning, AreaNodes, ref(KindNode, n.Name), "it has no spec.providerID, so its instance is not recognised", "run the cloud controller manager, or set the kubelet's --provider-id (install.md)")
		}
		if value, asked := n.Annotations[contract.AnnotationDrainRequest]; asked {
			if _, err := contract.ParseRequest(value); err != nil {
				c.find(SeverityWarning, AreaNodes, ref(KindNode, n.Name), "its drain request cannot be read: "+err.Error(), "kubectl windlass undrain it")
			}
		}
	}
}

func (c *checker) budgets() {
	for i := range c.Budgets {
		b := &c.Budgets[i]
		of := "pdb/" + b.Namespace + "/" + b.Name
		s := b.Status
		switch {
		case s.ObservedGeneration == 0 && s.ExpectedPods == 0:
			// The disruption controller has not come to it.
		case s.ExpectedPods > 0 && s.DesiredHealthy >= s.ExpectedPods:
			c.find(SeverityWarning, AreaBudgets, of, fmt.Sprintf("it wants %d healthy of %d pods, so it never allows an eviction: their nodes are not scaled down, and drains end at their deadlines", s.DesiredHealthy, s.ExpectedPods), "let it allow one: maxUnavailable of at least 1, or more replicas than minAvailable")
		case slices.ContainsFunc(s.Conditions, failed):
			c.find(SeverityWarning, AreaBudgets, of, "Kubernetes cannot work out how many pods it guards, so it allows no eviction", "kubectl describe it; pods without a controller that can be scaled need minAvailable as a number")
		}
	}
	for _, g := range c.Twice {
		c.find(SeverityWarning, AreaBudgets, ref(KindPod, g.Pod), "budgets "+strings.Join(g.Budgets, " and ")+" guard it, and the eviction API refuses a pod with several", "let one budget select it")
	}
}

func (c *checker) pods() {
	for _, o := range c.Odd {
		c.find(SeverityWarning, AreaPods, ref(KindPod, o.Pod), o.Text, "correct it on what makes the pod")
	}
}

// Names are what something is wrong with.
func (c Check) Names() []string {
	var names []string
	for _, f := range c.Findings {
		if (f.Severity == SeverityError || f.Severity == SeverityWarning) && f.Of != "-" && !slices.Contains(names, f.Of) {
			names = append(names, f.Of)
		}
	}
	return names
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "no known time"
	}
	return t.UTC().Format(time.DateTime)
}

// failed reports on the condition by which the disruption controller says that it has given up.
func failed(c metav1.Condition) bool {
	return c.Type == policyv1.DisruptionAllowedCondition && c.Reason == policyv1.SyncFailedReason
}

package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
)

// Input is all that was given.
type Input struct {
	Arguments []Argument
	// Priorities are those of the expander of that name, as text.
	Priorities string
	// Role of Cluster Autoscaler at AWS, and by what its pod has it: EKSIRSA or Kube2iam.
	Role, RoleBy string
	Region       string
	Pod          Pod
	// Variables of the scaler's environment.
	Variables map[string]string
	// Components of the manifests.
	Components []string

	accountRole string // of the service account, which counts if nothing says otherwise

	// What has its place already, as values that are no flags.
	kept, needless, open, unheard []Item
}

// Pod is what means the same for the scaler's pods as for Cluster Autoscaler's.
type Pod struct {
	NodeSelector map[string]string   `json:"nodeSelector,omitempty"`
	Tolerations  []corev1.Toleration `json:"tolerations,omitempty"`
	Annotations  map[string]string   `json:"annotations,omitempty"`
	Labels       map[string]string   `json:"labels,omitempty"`
	Priority     string              `json:"priorityClassName,omitempty"`
}

// Setting is a flag of Windlass's and its value. Kind is as in the table.
type Setting struct {
	Flag  string `json:"flag"`
	Value string `json:"value"`
	Kind  string `json:"-"`
}

// Settings are what is set for Windlass. Flags are in order; those of a list may be there several
// times.
type Settings struct {
	Scaler []Setting `json:"scaler,omitempty"`
	Agent  []Setting `json:"agent,omitempty"`
	// Cluster is its name. UsualTags: the groups are found by the tags of the manifests, with it.
	Cluster    string            `json:"cluster,omitempty"`
	UsualTags  bool              `json:"usualTags,omitempty"`
	Region     string            `json:"region,omitempty"`
	Role       string            `json:"role,omitempty"`
	RoleBy     string            `json:"roleBy,omitempty"`
	Port       int               `json:"port,omitempty"`
	Priorities string            `json:"priorities,omitempty"`
	Components []string          `json:"components,omitempty"`
	Variables  map[string]string `json:"variables,omitempty"`
	Pod        Pod               `json:"pod,omitzero"`
}

func item(of Program, what, value, where, becomes, why string) Item {
	return Item{Argument: Argument{Of: of, Name: what, Value: value, Where: where}, Becomes: becomes, Why: why}
}

func (in *Input) same(what, value, where, becomes, why string) {
	in.kept = append(in.kept, item("", what, value, where, becomes, why))
}

func (in *Input) note(what, value, where, why string) {
	in.needless = append(in.needless, item("", what, value, where, "", why))
}

func (in *Input) decide(what, value, where, why string) {
	in.open = append(in.open, item("", what, value, where, "", why))
}

func (in *Input) unknown(what, value, where string) {
	in.unheard = append(in.unheard, item("", what, value, where, "", "the chart has no such value in any version that is known"))
}

var (
	// regionName is one of AWS, such as eu-central-1 or us-gov-west-1.
	regionName = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]+$`)
	// plainName is a cluster's, as it may stand in a tag and in a file of settings.
	plainName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/=+@-]{0,127}$`)
	roleName     = regexp.MustCompile(`^[A-Za-z0-9_+=,.@:/-]{1,1000}$`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// takeRegion takes the region of the groups, of which there is one.
func (in *Input) takeRegion(name string) error {
	switch {
	case !regionName.MatchString(name):
		return errors.New("it is no region of AWS: give one such as eu-central-1 as AWS_REGION")
	case in.Region != "" && in.Region != name:
		return errors.New("the region " + in.Region + " is given, too: Windlass scales groups of one region")
	}
	in.Region = name
	return nil
}

// regionOf takes the region from what is no flag.
func (in *Input) regionOf(what, name, where string) {
	if err := in.takeRegion(name); err != nil {
		in.decide(what, name, where, err.Error())
		return
	}
	in.same(what, name, where, "AWS_REGION", "")
}

func (in *Input) takeVariable(name, value, where string) {
	switch {
	case !variableName.MatchString(name):
		in.decide("variable "+name, value, where, "it is no name of a variable")
	case controls(value):
		in.decide("variable "+name, value, where, "its value has a character that is no text: write it anew")
	case ofCredentials(name):
		in.decide("variable "+name, value, where, "it is about Cluster Autoscaler's credentials, or names a file that the scaler has not: give the scaler a role (docs/operate/install.md), or add both by a patch")
	case secret.MatchString(name) || hasUserInfo(name, value) || strings.HasPrefix(name, "AWS_SESSION"):
		in.decide("variable "+name, "", where, "the manifests hold no keys: give the scaler a role (docs/operate/install.md), or add it from a Secret by a patch")
	default:
		if in.Variables == nil {
			in.Variables = map[string]string{}
		}
		in.Variables[name] = value
		in.same("variable "+name, value, where, "the same for the scaler", "the libraries of AWS read it")
	}
}

// ofCredentials reports whether a variable of AWS says who asks, or by which files.
// https://docs.aws.amazon.com/sdkref/latest/guide/settings-reference.html
func ofCredentials(name string) bool {
	for _, of := range []string{"AWS_ROLE_", "AWS_WEB_IDENTITY_", "AWS_CONTAINER_", "AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CA_BUNDLE"} {
		if strings.HasPrefix(name, of) {
			return true
		}
	}
	return false
}

// takePod takes what is said of the pods.
func (in *Input) takePod(p Pod, where string) {
	for _, words := range []map[string]string{p.NodeSelector, p.Annotations, p.Labels, {"": p.Priority}} {
		for key, value := range words {
			if controls(key + value) {
				in.decide("pods", key+"="+value, where, "it has a character that is no text: write it anew")
				return
			}
		}
	}
	took := func(what string) { in.same(what, "", where, "the same for the scaler's pods", "") }
	if len(p.NodeSelector) > 0 {
		in.Pod.NodeSelector = p.NodeSelector
		took("nodeSelector")
	}
	if len(p.Tolerations) > 0 {
		in.Pod.Tolerations = p.Tolerations
		took("tolerations")
	}
	if len(p.Annotations) > 0 {
		in.Pod.Annotations = p.Annotations
		took("podAnnotations")
	}
	if len(p.Labels) > 0 {
		in.Pod.Labels = p.Labels
		took("podLabels")
	}
	if p.Priority != "" {
		in.Pod.Priority = p.Priority
		took("priorityClassName")
	}
}

// settle makes up what the flags together say, when all are read.
func (t *translator) settle() {
	s := &t.report.Settings
	t.schedulers()
	t.notices()
	s.Region, s.Priorities, s.Variables, s.Pod = t.in.Region, t.in.Priorities, t.in.Variables, t.in.Pod
	s.Components = slices.Compact(slices.Sorted(slices.Values(t.in.Components)))
	t.role()
	t.priorities()
	byFlag := func(a, b Setting) int { return cmp.Compare(a.Flag, b.Flag) }
	slices.SortStableFunc(s.Scaler, byFlag)
	slices.SortStableFunc(s.Agent, byFlag)
	t.defaults()
	t.noGroups()
	t.todo()
}

// schedulers keeps default-scheduler where nothing restricts them to others: the flag of
// Windlass's replaces its default.
func (t *translator) schedulers() {
	given := func(a Argument) bool { return a.Name == "allowed-scheduler-names" }
	is := func(s Setting) bool { return s.Flag == "scheduler-name" }
	first := slices.IndexFunc(t.report.Settings.Scaler, is)
	standard := Setting{"scheduler-name", corev1.DefaultSchedulerName, list}
	restricted := slices.ContainsFunc(t.report.Same, func(i Item) bool { return given(i.Argument) })
	if first < 0 || restricted || t.values[standard] || t.own != nil && t.own("scheduler-name") {
		return
	}
	t.report.Settings.Scaler = slices.Insert(t.report.Settings.Scaler, first, standard)
}

// notices makes one flag of the words about notices. A recommendation that drains and cordons
// drains; with only cordons nothing drains.
func (t *translator) notices() {
	words := map[string]string{}
	for _, w := range t.policy {
		notice, deed, _ := strings.Cut(w, "=")
		if before := words[notice]; before == "" || before == "cordon" && deed != "cordon" {
			words[notice] = deed
		}
	}
	if slices.Contains(t.policy, "spot=cordon") && words["rebalance"] == "drain" { // cordon-only, whatever spot is now
		words["rebalance"] = "cordon"
	}
	if len(words) == 0 {
		return
	}
	var all []string
	for _, notice := range slices.Sorted(maps.Keys(words)) {
		all = append(all, notice+"="+words[notice])
	}
	t.report.Settings.Agent = append(t.report.Settings.Agent, Setting{"notice-policy", strings.Join(all, ","), ""})
}

func (t *translator) role() {
	role, by := t.in.role()
	if role == "" {
		return
	}
	if unfilled.MatchString(role) || !roleName.MatchString(role) {
		t.report.Decide = append(t.report.Decide, item("", "role", role, "", "", "it is no name of a role: give its ARN as SCALER_ROLE_ARN"))
		return
	}
	t.report.Settings.Role, t.report.Settings.RoleBy = role, by
	t.report.Same = append(t.report.Same, item("", "role", role, "", "the scaler's role, by "+by, "it needs Windlass's rights and trust, see below"))
}

// priorities are of use with the expander alone.
func (t *translator) priorities() {
	s := &t.report.Settings
	chosen := slices.ContainsFunc(s.Scaler, func(s Setting) bool {
		return s.Flag == "expander" && slices.Contains(strings.Split(s.Value, ","), "priority")
	})
	switch {
	case controls(strings.NewReplacer("\n", "", "\t", "", "\r", "").Replace(s.Priorities)):
		t.report.Decide = append(t.report.Decide, item("", "priorities of the expander", "", "", "", "they have a character that is no text: write it anew"))
		s.Priorities = ""
	case s.Priorities == "" && chosen:
		t.report.Todo = append(t.report.Todo, "Copy the ConfigMap "+contract.ConfigMapPriorities+" into Windlass's namespace: --expander names priority, and its priorities were not given.")
	case s.Priorities != "" && chosen:
		t.report.Same = append(t.report.Same, item("", "priorities of the expander", "", "", "the ConfigMap "+contract.ConfigMapPriorities, "it has the same form"))
	case s.Priorities != "":
		t.report.Nothing = append(t.report.Nothing, item("", "priorities of the expander", "", "", "", "--expander does not name priority, so they are not read"))
		s.Priorities = ""
	}
}

// defaults reports what is otherwise because a flag is not given.
func (t *translator) defaults() {
	if !slices.ContainsFunc(t.in.Arguments, func(a Argument) bool { return a.Of == Autoscaler }) {
		return
	}
	t.report.Changes = append(t.report.Changes, Change{
		Flag: "--consolidate", Differs: "moving pods to save money",
		What: "Windlass also moves pods and replaces nodes where that saves more than the evictions cost; --consolidate=unneeded is as Cluster Autoscaler has it",
	})
	for _, row := range table {
		_, given := t.given[key{row.Of, row.Flag}]
		target, _, _ := row.target()
		if !row.OtherDefault || given || row.Of != Autoscaler || t.isSet(target) {
			continue
		}
		what := row.Why
		if row.Kind != list {
			what += fmt.Sprintf("; --%s=%s is as Cluster Autoscaler has it", target, row.Default)
		}
		t.report.Changes = append(t.report.Changes, Change{Flag: "--" + row.Flag + ", which is not given", What: what, Differs: row.Differs})
	}
}

// noGroups asks for groups where none are given.
func (t *translator) noGroups() {
	s := t.report.Settings
	named := slices.ContainsFunc(s.Scaler, func(s Setting) bool { return s.Flag == "nodes" || s.Flag == "node-group-auto-discovery" })
	if named || s.UsualTags || t.external || !slices.ContainsFunc(t.in.Arguments, func(a Argument) bool { return a.Of == Autoscaler }) {
		return
	}
	t.report.Decide = append(t.report.Decide, item("", "groups", "", "", "", "nothing says which groups: give the name of the cluster in their tags as CLUSTER_NAME, or --nodes"))
}

// hidden reports whether Cluster Autoscaler renews nothing that Windlass sees: neither a Lease nor
// the usual ConfigMap of its status.
func (t *translator) hidden() bool {
	given := func(name, usual string) string {
		for _, a := range t.in.Arguments { // the last one wins
			if a.Of == Autoscaler && a.Name == name {
				usual = a.Value
				if a.Bare {
					usual = "true"
				}
			}
		}
		return usual
	}
	isFalse := func(name string) bool {
		on, err := strconv.ParseBool(given(name, "true"))
		return err == nil && !on
	}
	leases := !isFalse("leader-elect") && strings.Contains(given("leader-elect-resource-lock", "leases"), "leases")
	status := !isFalse("write-status-configmap") && given("status-config-map-name", contract.ConfigMapClusterAutoscalerStatus) == contract.ConfigMapClusterAutoscalerStatus
	return !leases && !status
}

// stop is when Cluster Autoscaler is scaled to 0.
func (t *translator) stop() string {
	if t.hidden() {
		return "Scale Cluster Autoscaler to 0 BEFORE you apply this: with these flags it renews neither a Lease nor the ConfigMap " + contract.ConfigMapClusterAutoscalerStatus + ", so Windlass cannot see that it is alive, and acts beside it."
	}
	return "Scale Cluster Autoscaler to 0 when you agree with what windlass-scaler plan shows: while it is alive, Windlass only plans."
}

// todo is what no file can do.
func (t *translator) todo() {
	s := t.report.Settings
	say := func(format string, args ...any) { t.report.Todo = append(t.report.Todo, fmt.Sprintf(format, args...)) }
	autoscaler := slices.ContainsFunc(t.in.Arguments, func(a Argument) bool { return a.Of == Autoscaler })
	handler := slices.ContainsFunc(t.in.Arguments, func(a Argument) bool { return a.Of == Handler })
	say("Name the registry of the images (docs/operate/install.md).")
	if t.external {
		say("Mount the file of --cloud-config and its certificates into the scaler (docs/operate/external-provider.md).")
		say("%s", t.stop())
		return
	}
	say("Put a lifecycle hook named windlass on each group, and protect new instances from scale-in (docs/operate/install.md#groups).")
	if s.Role != "" {
		say("Give the role %s the rights in manifests/iam/scaler-policy.json, and let it trust the account windlass-scaler of Windlass's namespace.", s.Role)
	} else {
		say("Give the scaler a role with the rights in manifests/iam/scaler-policy.json (docs/operate/install.md).")
	}
	if autoscaler && s.Cluster == "" {
		say("Say the cluster's name as CLUSTER_NAME, and tag each group with k8s.io/cluster-autoscaler/NAME: the rights are for groups with that tag.")
	}
	if slices.Contains(s.Components, "out-of-service-taint") {
		say("Give the scaler's role manifests/iam/out-of-service-taint.json, too.")
	}
	if autoscaler {
		say("%s", t.stop())
	}
	if handler {
		say("Uninstall the Node Termination Handler when the agents are Ready, and take its labels off the Nodes (docs/operate/install.md#beside-other-programs).")
	}
	if t.queue {
		say("After that remove its queue, the EventBridge rules that feed it, its lifecycle hooks and its role; the hook windlass stays.")
		if !slices.ContainsFunc(t.policy, func(w string) bool { return strings.HasPrefix(w, "rebalance=") }) {
			t.report.Changes = append(t.report.Changes, Change{Flag: "--enable-sqs-termination-draining", What: "with a queue the handler drains for every rebalance recommendation that reaches it; an agent shows it, and drains with --notice-policy=rebalance=drain"})
		}
	}
}

package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"windlass.dev/windlass/pkg/contract"
)

// Item is one thing that was given, and what becomes of it.
type Item struct {
	Argument
	// Becomes is what it is in Windlass; empty for nothing.
	Becomes string `json:"becomes,omitempty"`
	Why     string `json:"why,omitempty"`
	// Differs is the row of docs/differences-from-cluster-autoscaler.md about it.
	Differs string `json:"differs,omitempty"`
}

// Change is what will be otherwise with Windlass.
type Change struct {
	Flag string `json:"flag"`
	What string `json:"what"`
	// Differs is a row as in Item.
	Differs string `json:"differs,omitempty"`
}

// Report says what becomes of everything that was given. Each thing is in one of the first four
// lists, once.
type Report struct {
	// Same means the same in Windlass. Nothing has no counterpart and needs none. Decide has
	// none and matters. Unknown is a flag of no version that is known.
	Same    []Item `json:"same"`
	Nothing []Item `json:"nothing"`
	Decide  []Item `json:"decide"`
	Unknown []Item `json:"unknown"`

	Changes []Change `json:"changes"`
	// Todo is what remains to be done by hand.
	Todo []string `json:"todo"`

	Settings Settings `json:"settings"`
}

// Done reports whether everything is translated, and no decision is left.
func (r Report) Done() bool { return len(r.Decide) == 0 && len(r.Unknown) == 0 }

// Checker says what is wrong with a value of a flag of windlass-scaler; nil for nothing.
type Checker func(flag, value string) error

// Translate says what becomes of all that was given.
func Translate(in Input, check Checker) Report {
	t := translator{in: in, check: check, given: map[key]int{}, values: map[Setting]bool{}}
	t.report.Same, t.report.Nothing = in.kept, in.needless
	t.report.Decide, t.report.Unknown = in.open, in.unheard
	t.all(in.Arguments)
	t.settle()
	for _, items := range [][]Item{t.report.Same, t.report.Nothing, t.report.Decide, t.report.Unknown} {
		withhold(items)
	}
	return t.report
}

// secret is found in the names of values that are secrets, or may have some: those of a webhook are all.
var secret = regexp.MustCompile(`(?i)secret|passw|token|credential|(access|api|private)[-_.]?key|webhook|routing`)

// secretReference is found in the names of values that name a secret, or say whether there is one.
var secretReference = regexp.MustCompile(`^(envFromSecret|extraEnvSecrets|extraVolumeSecrets|image\.pullSecrets|imagePullSecrets|secretKeyRefNameOverride|rbac\.serviceAccount\.automountServiceAccountToken)$`)

// userInfo is found in a URL with somebody's name, and perhaps a password; in that of a proxy, which needs
// no scheme, an @ is.
var userInfo = regexp.MustCompile(`://[^\s]+@`)

func hasUserInfo(name, value string) bool {
	proxy := strings.HasSuffix(strings.ToUpper(name), "_PROXY") && strings.Contains(value, "@")
	return proxy || userInfo.MatchString(value)
}

// withhold takes secrets out of what is printed: people keep it, and commit it.
func withhold(items []Item) {
	for i := range items {
		name := items[i].Name
		if items[i].Value != "" && (secret.MatchString(name) && !secretReference.MatchString(name) || hasUserInfo(name, items[i].Value)) {
			items[i].Value = "***"
		}
	}
}

// Adopt translates flags of Cluster Autoscaler that the command line of windlass-scaler has. own
// reports whether a flag of Windlass's was given itself.
func Adopt(arguments []Argument, own func(flag string) bool) Report {
	t := translator{own: own, given: map[key]int{}, values: map[Setting]bool{}}
	t.all(arguments)
	t.schedulers()
	return t.report
}

type translator struct {
	in     Input
	check  Checker
	own    func(flag string) bool
	given  map[key]int // how often each flag is still to come
	values map[Setting]bool
	groups map[string]bool
	report Report
	// policy are the handler's words about notices; a later one of a notice wins.
	policy []string
	queue  bool
	// byQueue: a queue tells the handler, which goes by no switch of its monitors then.
	byQueue bool
	// external: groups are those of a provider of one's own.
	external bool
}

func (t *translator) all(arguments []Argument) {
	t.groups = map[string]bool{}
	for i := range arguments {
		arguments[i].Name = strings.ReplaceAll(arguments[i].Name, "_", "-")
		if arguments[i].Of == Autoscaler && arguments[i].Name == "cloud-provider" {
			t.external = arguments[i].Value == External
		}
		if arguments[i].Of == Handler && arguments[i].Name == "enable-sqs-termination-draining" {
			on, _ := strconv.ParseBool(arguments[i].Value) // what is no value is reported in its turn
			t.byQueue = on || arguments[i].Bare
		}
		t.given[key{arguments[i].Of, arguments[i].Name}]++
	}
	for _, a := range arguments {
		t.given[key{a.Of, a.Name}]--
		t.one(a)
	}
}

// one puts a flag into a list.
func (t *translator) one(a Argument) {
	row, known := Lookup(a.Of, a.Name)
	if !known {
		why := "there is no such flag in any version of " + a.Of.Name() + " that is known"
		if a.Name == "" {
			why = "it is no flag: flags begin with --"
		}
		t.report.Unknown = append(t.report.Unknown, Item{Argument: a, Why: why})
		return
	}
	item := Item{Argument: a, Why: row.Why}
	if !row.OtherDefault { // or it is the default alone that differs
		item.Differs = row.Differs
	}
	if row.Kind != list && t.given[key{a.Of, a.Name}] > 0 {
		item.Why, item.Differs = "it is given again later, and that wins", ""
		t.nothing(item)
		return
	}
	becomes, err := t.become(row, a)
	switch {
	case errors.Is(err, errNothing):
		if say := strings.TrimPrefix(err.Error(), errNothing.Error()); say != "" {
			item.Why = strings.TrimPrefix(say, ": ")
		}
		t.nothing(item)
	case err != nil:
		item.Why = err.Error()
		t.report.Decide = append(t.report.Decide, item)
	default:
		item.Becomes = becomes
		t.report.Same = append(t.report.Same, item)
		t.change(item)
	}
}

func (t *translator) nothing(item Item) {
	t.report.Nothing = append(t.report.Nothing, item)
	t.change(item)
}

// change reports what is otherwise with a flag that was given.
func (t *translator) change(item Item) {
	if item.Differs != "" {
		t.report.Changes = append(t.report.Changes, Change{Flag: "--" + item.Name, What: item.Why, Differs: item.Differs})
	}
}

// errNothing is the answer of a flag that becomes nothing.
var errNothing = errors.New("nothing")

func because(why string) error { return fmt.Errorf("%w: %s", errNothing, why) }

// become carries a flag over, and returns what it is then.
func (t *translator) become(row Row, a Argument) (string, error) {
	value := a.Value
	if a.Bare && row.Kind == boolean {
		value = "true"
	}
	if row.Becomes == nothing {
		t.queue = t.queue || row.Rule == "queue" && value != "false"
		return "", errNothing
	}
	if t.byQueue && slices.Contains([]string{"spot", "maintenance", "rebalance-cordon"}, row.Rule) {
		return "", because("it is for the handler's monitors of the instance metadata: with a queue the handler drains for whatever that brings")
	}
	switch {
	case a.Unset != "":
		return "", fmt.Errorf("its value is that of the variable %s, which no literal gives: give it in place of that", a.Unset)
	case a.Bare && row.Kind != boolean:
		return "", errors.New("it has no value: give one")
	case controls(value):
		return "", errors.New("its value has a character that is no text: write it anew")
	case unfilled.MatchString(value):
		return "", errors.New("its value is not filled in: put the value in place of what stands for it")
	}
	value, err := sound(row.Kind, value)
	if err != nil {
		return "", fmt.Errorf("its value is none: %w", err)
	}
	switch row.Becomes {
	case toDecide:
		if row.saysNothing(value) {
			return "", because("it is the default, and says nothing")
		}
		return "", errors.New(row.Why)
	case provider:
		if err := Provider(value); err != nil || value != External {
			return "", cmp.Or(err, errNothing)
		}
		t.set("metadata", "none", false, true, "value")
	case config:
		if value == "" {
			return "", because("it is the default, and says nothing")
		}
		if !t.external {
			return "", errors.New(row.Why)
		}
	case region:
		return "AWS_REGION", t.in.takeRegion(value)
	case port:
		return t.metricsPort(value)
	}
	if component := row.component(); component != "" {
		if value != "true" {
			return "", because("it is the default, and says nothing")
		}
		t.in.Components = append(t.in.Components, component)
		return "the component " + component, nil
	}
	return t.flags(row, value)
}

// External is the name of the provider that is asked by gRPC, and names its groups itself.
const External = "externalgrpc"

// Provider says what is wrong with a cloud provider. Whoever adds one adds it here.
func Provider(name string) error {
	if name == "aws" || name == External {
		return nil
	}
	return fmt.Errorf("the provider %q is none of Windlass's: it scales Auto Scaling groups of EC2 (aws) and groups of a provider of one's own (externalgrpc), so keep Cluster Autoscaler for other groups", name)
}

// metricsPort takes the port of an address, which probes and the PodMonitor know by its name.
func (t *translator) metricsPort(address string) (string, error) {
	host, number, ok := strings.Cut(address, ":")
	n, err := strconv.ParseUint(number, 10, 16)
	switch {
	case !ok || err != nil || n == 0:
		return "", errors.New("it is no address: want one such as :8085")
	case host != "" && host != "0.0.0.0":
		return "", errors.New("probes ask the pod's own address: leave the host out, as in :8085")
	case n == 8085:
		return "", because("it is the default, and says nothing")
	}
	t.report.Settings.Port = int(n)
	return "the port of metrics", nil
}

// flags sets those of Windlass.
func (t *translator) flags(row Row, value string) (string, error) {
	target, scaler, agent := row.target()
	if row.Becomes != sameName && row.Kind != list && (t.given[key{row.Of, target}] > 0 || t.isSet(target) && target != "notice-policy" || t.own != nil && t.own(target)) {
		return "", because("--" + target + " is given, too, and wins")
	}
	if t.external && (target == "nodes" || target == "node-group-auto-discovery") {
		return "", because("the provider names its groups itself")
	}
	values, err := rules[row.Rule](value)
	if err != nil {
		return "", err
	}
	if len(values) == 0 {
		return "", because("it is the default, and says nothing")
	}
	var becomes []string
	for _, v := range values {
		if err := t.acceptable(target, v, scaler); err != nil {
			return "", err
		}
		becomes = append(becomes, "--"+target+"="+v)
	}
	if row.Kind == list && t.allKnown(target, values) {
		return "", because("it is given already")
	}
	if target == "node-group-auto-discovery" {
		cluster, ok := usualTags(value)
		if ok && cluster == t.report.Settings.Cluster {
			return "", because("it is given already")
		}
		if ok && t.report.Settings.Cluster == "" {
			t.report.Settings.Cluster, t.report.Settings.UsualTags = cluster, true
			return "CLUSTER_NAME=" + cluster, nil
		}
	}
	for _, v := range values {
		t.set(target, v, scaler, agent, row.Kind)
	}
	return strings.Join(becomes, " "), nil
}

// acceptable asks whether Windlass takes a value.
func (t *translator) acceptable(flag, value string, scaler bool) error {
	if flag == "nodes" {
		if name := groupOf(value); t.groups[name] && !t.values[Setting{flag, value, list}] {
			return fmt.Errorf("the group %s has other bounds already: keep one of them", strconv.Quote(name))
		}
	}
	if t.check == nil || !scaler {
		return nil
	}
	return t.check(flag, value)
}

func groupOf(nodes string) string {
	parts := strings.SplitN(nodes, ":", 3)
	return parts[len(parts)-1]
}

func (t *translator) allKnown(flag string, values []string) bool {
	return !slices.ContainsFunc(values, func(v string) bool { return !t.values[Setting{flag, v, list}] })
}

func (t *translator) isSet(flag string) bool {
	is := func(s Setting) bool { return s.Flag == flag }
	return slices.ContainsFunc(t.report.Settings.Scaler, is) || slices.ContainsFunc(t.report.Settings.Agent, is)
}

func (t *translator) set(flag, value string, scaler, agent bool, kind string) {
	s := Setting{flag, value, kind}
	if flag == "notice-policy" {
		t.policy = append(t.policy, value)
		return
	}
	if kind == list && t.values[s] {
		return
	}
	t.values[s] = true
	if flag == "nodes" {
		t.groups[groupOf(value)] = true
	}
	if scaler {
		t.report.Settings.Scaler = append(t.report.Settings.Scaler, s)
	}
	if agent {
		t.report.Settings.Agent = append(t.report.Settings.Agent, s)
	}
}

// usualTags are those that the manifests find groups by; the name of the cluster is in the second.
func usualTags(discovery string) (cluster string, ok bool) {
	tags, _ := strings.CutPrefix(discovery, "asg:tag=")
	parts := strings.Split(tags, ",")
	slices.Sort(parts)
	if len(parts) != 2 || !slices.Contains(parts, contract.TagDiscovery) {
		return "", false
	}
	for _, part := range parts {
		if name, is := strings.CutPrefix(part, contract.TagDiscoveryCluster); is && part != contract.TagDiscovery {
			return name, plainName.MatchString(name)
		}
	}
	return "", false
}

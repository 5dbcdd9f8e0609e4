package verdict

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// Kind is what a parameter's value is.
type Kind string

// The kinds, by how JSON has them.
const (
	KindText     Kind = "text"
	KindNumber   Kind = "number"
	KindMoment   Kind = "moment"   // RFC 3339, in UTC
	KindDuration Kind = "duration" // as 1h2m3s
	KindNames    Kind = "names"    // a list of texts
	KindDetails  Kind = "details"  // a list of details
)

// Word is a name of parameters.
type Word struct {
	Name    string
	Kind    Kind
	Meaning string
}

// vocabulary has all of them. Only what stands here can be a parameter: programs rely on it.
var vocabulary = map[string]Word{}

// Vocabulary lists the names of parameters; docs/reference/verdict-details.md promises them.
func Vocabulary() []Word {
	var list []Word
	for _, name := range slices.Sorted(maps.Keys(vocabulary)) {
		list = append(list, vocabulary[name])
	}
	return list
}

func word[V any](kind Kind) func(name, meaning string) func(V) Param {
	return func(name, meaning string) func(V) Param {
		vocabulary[name] = Word{name, kind, meaning}
		return func(value V) Param { return Param{name, value} }
	}
}

var (
	text     = word[string](KindText)
	number   = word[int](KindNumber)
	moment   = word[time.Time](KindMoment)
	duration = word[time.Duration](KindDuration)
	names    = word[[]string](KindNames)
	details  = word[Details](KindDetails)
)

// The names of parameters. A detail has each at most once.
var (
	Pod        = text("pod", "the pod that it is about, such as the one that blocks or has no other place, as namespace/name")
	Other      = text("other", "another pod, as namespace/name")
	Node       = text("node", "a node")
	Place      = text("place", "where a pod has a place: a node, or a new or upcoming one of a group")
	Group      = text("group", "a group")
	Zone       = text("zone", "a zone")
	Instance   = text("instance", "the id of an instance")
	Hook       = text("hook", "a lifecycle hook")
	Namespace  = text("namespace", "a namespace")
	DaemonSet  = text("daemonSet", "a DaemonSet, as namespace/name")
	Gang       = text("gang", "the gang of a pod")
	HeadRoom   = text("headroom", "the headroom or buffer for which room is kept")
	Size       = text("size", "what each pod of a headroom requests")
	Annotation = text("annotation", "the key of an annotation")
	Label      = text("label", "the key of a label")
	Taint      = text("taint", "a taint, or its key")
	Tag        = text("tag", "the key of a tag")
	Value      = text("value", "the value of a tag")
	Resource   = text("resource", "a resource")
	Has        = text("has", "what is there of a resource, or the value of a label")
	Planned    = text("planned", "what was planned or is expected instead")
	Used       = text("used", "the share that is requested")
	Most       = text("most", "the share that may not be exceeded")
	Saving     = text("saving", "what a replacement would save, as a share or in dollars an hour")
	Cost       = text("cost", "what it costs to move pods, in dollars")
	Least      = text("least", "the least share that it must save")
	State      = text("state", "the state of an instance, node or instance refresh")
	Notice     = text("notice", "the kind of notice or request for which a node is drained")
	By         = text("by", "who asked for a drain")
	Program    = text("program", "another autoscaler")
	Sign       = text("sign", "by what that is known")
	Scheduler  = text("scheduler", "the scheduler that a pod names")
	Cluster    = text("cluster", "the UID of this cluster")
	Cause      = text("cause", "a cause in the words of AWS, Kubernetes, an agent or an earlier evaluation")
	Lack       = text("lack", "what keeps a pod off a node, by kube-scheduler's rules")
	Count      = number("count", "how many")
	All        = number("all", "of how many")
	More       = number("more", "how many count as well")
	Left       = number("left", "how many pods are left on a node")
	Wanted     = number("wanted", "for how many pods room is wanted")
	Desired    = number("desired", "the desired capacity of a group")
	Min        = number("min", "the least that may be")
	Max        = number("max", "the most that may be")
	From       = number("from", "the desired capacity before")
	To         = number("to", "the desired capacity after")
	Priority   = number("priority", "the priority of a pod")
	Since      = moment("since", "since when it is so")
	Until      = moment("until", "when a delay ends, or time runs out")
	After      = duration("after", "after how long something happens")
	Within     = duration("within", "the time that there is, or was, for something")
	Nodes      = names("nodes", "nodes")
	Zones      = names("zones", "zones; of uneven ones each with its count")
	Instances  = names("instances", "the ids of instances")
	Hooks      = names("hooks", "lifecycle hooks")
	Budgets    = names("budgets", "PodDisruptionBudgets, each as namespace/name")
	Blockers   = names("blockers", "what blocks a drain: pods and budgets")
	Resources  = names("resources", "resources")
	Drivers    = names("drivers", "drivers of devices")
	Why        = details("why", "the details of the cause")
)

// parse reads a value of the kind.
func (k Kind) parse(text json.RawMessage) (any, error) {
	switch k {
	case KindNumber:
		return parsed[int](text)
	case KindMoment:
		return parsed[time.Time](text)
	case KindDuration:
		value, err := parsed[string](text)
		if err != nil {
			return nil, err
		}
		return time.ParseDuration(value.(string))
	case KindNames:
		return parsed[[]string](text)
	case KindDetails:
		return parsed[Details](text)
	}
	return parsed[string](text)
}

func parsed[V any](text json.RawMessage) (any, error) {
	var value V
	err := json.Unmarshal(text, &value)
	return value, err
}

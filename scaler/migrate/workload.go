package migrate

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
)

// Workload is a Deployment, a DaemonSet or whatever else has a pod template. What it is made of
// beside that does not matter here.
type Workload struct {
	Kind     string            `json:"kind"`
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Template corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
}

func (w Workload) String() string {
	if w.Metadata.Namespace == "" {
		return w.Kind + " " + w.Metadata.Name
	}
	return w.Kind + " " + w.Metadata.Namespace + "/" + w.Metadata.Name
}

// programs by what stands in images and commands.
var images = []struct {
	program Program
	name    string
}{
	{Autoscaler, "cluster-autoscaler"},
	{Handler, contract.AppTerminationHandler},
}

// image is the name that images and commands of the program have.
func (p Program) image() string {
	for _, i := range images {
		if i.program == p {
			return i.name
		}
	}
	return images[0].name
}

// Runs is which of the programs a pod template runs, and in which container; ok is false for none.
func Runs(template corev1.PodTemplateSpec) (of Program, container corev1.Container, ok bool) {
	for _, c := range template.Spec.Containers {
		for _, i := range images {
			if strings.Contains(c.Image, i.name) || strings.Contains(strings.Join(c.Command, " "), i.name) {
				return i.program, c, true
			}
		}
	}
	return "", corev1.Container{}, false
}

// AddWorkload takes the flags of a program's container, and what its pod says of where it runs.
func (in *Input) AddWorkload(w Workload) error {
	of, c, ok := Runs(w.Spec.Template)
	if !ok {
		return fmt.Errorf("%s runs neither Cluster Autoscaler nor the Node Termination Handler: no image or command of it has their name", w)
	}
	where := w.String()
	literals, err := in.addEnvironment(of, c, where)
	if err != nil {
		return err
	}
	program := of.image()
	words, err := commandOf(slices.Concat(c.Command, c.Args), where, program)
	if err != nil {
		return err
	}
	if len(c.Command) == 0 {
		words = append([]word{{text: program}}, words...) // which parse leaves out
	}
	for _, a := range parse(of, words) {
		a.Value, a.Unset = substitute(a.Value, literals)
		in.Arguments = append(in.Arguments, a)
	}
	if of != Autoscaler {
		return nil
	}
	in.takePod(Pod{
		NodeSelector: w.Spec.Template.Spec.NodeSelector,
		Tolerations:  w.Spec.Template.Spec.Tolerations,
	}, where)
	if role := w.Spec.Template.Annotations[contract.AnnotationRoleKube2iam]; role != "" {
		in.Role, in.RoleBy = role, Kube2iam
	}
	return nil
}

// addEnvironment takes the handler's flags and the region from a container's environment, and
// returns the literals in it.
func (in *Input) addEnvironment(of Program, c corev1.Container, where string) (map[string]string, error) {
	literals := map[string]string{}
	for _, from := range c.EnvFrom {
		name := ""
		if from.ConfigMapRef != nil {
			name = "ConfigMap " + from.ConfigMapRef.Name
		} else if from.SecretRef != nil {
			name = "Secret " + from.SecretRef.Name
		}
		in.decide("envFrom", name, where, "the environment of "+of.Name()+" comes from there: give what of it Windlass needs by a patch")
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			literals[e.Name] = e.Value
		}
		in.addVariable(of, e, where)
	}
	return literals, nil
}

func (in *Input) addVariable(of Program, e corev1.EnvVar, where string) {
	flag := strings.ToLower(strings.ReplaceAll(e.Name, "_", "-"))
	if other, ok := otherNames[e.Name]; ok {
		flag = other
	}
	_, isFlag := Lookup(of, flag)
	switch {
	case of == Handler && isFlag:
		a := Argument{Of: of, Name: flag, Value: e.Value, Where: where + ", variable " + e.Name}
		if e.ValueFrom != nil {
			a.Unset = e.Name
		}
		if a.Value != "" || a.Unset != "" { // empty is as if it were not there
			in.Arguments = append(in.Arguments, a)
		}
	case e.Name == "AWS_REGION" || e.Name == "AWS_DEFAULT_REGION":
		in.regionOf("variable "+e.Name, e.Value, where)
	case e.ValueFrom != nil && strings.HasPrefix(e.Name, "AWS_"):
		in.decide("variable "+e.Name, "", where, "it comes from elsewhere: give the scaler a role (docs/operate/install.md), or add it by a patch")
	case of == Autoscaler && strings.HasPrefix(e.Name, "AWS_"):
		in.takeVariable(e.Name, e.Value, where)
	default:
		in.note("variable "+e.Name, "", where, "it is "+of.Name()+"'s own") // and its value may be a secret
	}
}

// otherNames are the handler's variables and values that are not named as its flags are.
var otherNames = map[string]string{
	"INSTANCE_METADATA_URL":        "metadata-url",
	"NAMESPACE":                    "pod-namespace",
	"instanceMetadataURL":          "metadata-url",
	"procUptimeFile":               "uptime-from-file",
	"webhookURLSecretName":         "webhook-url",
	"webhookTemplateConfigMapName": "webhook-template-file",
	"webhookTemplateConfigMapKey":  "webhook-template-file",
}

// reference is $(NAME), which Kubernetes fills in; $$(NAME) it leaves as $(NAME).
// https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/
var reference = regexp.MustCompile(`\$?\$\([A-Za-z_][A-Za-z0-9_.-]*\)`)

// substitute fills in literals, and returns the first name that none gives.
func substitute(value string, literals map[string]string) (filled, unset string) {
	filled = reference.ReplaceAllStringFunc(value, func(found string) string {
		if strings.HasPrefix(found, "$$") {
			return found[1:]
		}
		name := found[2 : len(found)-1]
		literal, ok := literals[name]
		if !ok {
			if unset == "" {
				unset = name
			}
			return found
		}
		return literal
	})
	return filled, unset
}

// AddPriorities takes the ConfigMap of the expander priority.
func (in *Input) AddPriorities(data map[string]string, where string) error {
	text, ok := data[contract.PrioritiesKey]
	if !ok {
		return fmt.Errorf("%s has no key %s: give the ConfigMap %s of Cluster Autoscaler", where, contract.PrioritiesKey, contract.ConfigMapPriorities)
	}
	in.Priorities = text
	return nil
}

// decode makes an object of what YAML gave.
func decode[T any](from any) (T, error) {
	var to T
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, &to)
	}
	return to, err
}

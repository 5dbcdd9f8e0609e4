package migrate

import (
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/pkg/contract"
)

var (
	//go:embed values.txt
	valuesText string
	fates      = mustFates(valuesText)
)

// fate is what becomes of a value of a chart that is no flag.
type fate struct {
	of           Program
	key          string
	becomes, why string
}

const (
	carried = "carried"
	own     = "own"
)

func mustFates(text string) []fate {
	var all []fate
	for _, cells := range cellsOf(text, 4) {
		all = append(all, fate{Program(cells[0]), cells[1], cells[2], cells[3]})
	}
	return all
}

// fateOf finds the longest entry that stands for a key.
func fateOf(of Program, key string) (found fate, ok bool) {
	for _, f := range fates {
		begin, all := strings.CutSuffix(f.key, "*")
		fits := f.key == key || strings.HasPrefix(key, f.key+".") || all && strings.HasPrefix(key, begin)
		if f.of == of && fits && len(f.key) >= len(found.key) {
			found, ok = f, true
		}
	}
	return found, ok
}

// AddValues takes the values of a chart.
func (in *Input) AddValues(of Program, values map[string]any, file string) error {
	if of == Handler {
		in.addHandlerValues(values, file)
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if strings.Contains(key, ".") && !empty(values[key]) {
			in.unknown(strconv.Quote(key), show(values[key]), file) // Helm does not take it for a path
			continue
		}
		if err := in.addValue(key, values[key], values, file); err != nil {
			return fmt.Errorf("%s: %s: %w", file, key, err)
		}
	}
	return nil
}

// addValue takes a value of Cluster Autoscaler's chart.
func (in *Input) addValue(key string, value any, all map[string]any, file string) error {
	if empty(value) {
		return nil
	}
	f, known := fateOf(Autoscaler, key)
	if below, isMap := value.(map[string]any); isMap && knownBelow(key) {
		// Some of what is below has a fate of its own.
		for _, k := range slices.Sorted(maps.Keys(below)) {
			if err := in.addValue(key+"."+k, below[k], all, file); err != nil {
				return err
			}
		}
		return nil
	}
	if !known {
		in.unknown(key, show(value), file)
		return nil
	}
	switch f.becomes {
	case own:
		return in.takeValue(key, value, all, file)
	case carried:
		return in.carry(key, value, file)
	case toDecide:
		in.decide(key, show(value), file, f.why)
	default:
		in.note(key, show(value), file, f.why)
	}
	return nil
}

func knownBelow(key string) bool {
	return slices.ContainsFunc(fates, func(f fate) bool { return f.of == Autoscaler && strings.HasPrefix(f.key, key+".") })
}

// empty reports whether a value is as if it were not there.
func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// takeValue takes what is no flag itself and says what flags say.
func (in *Input) takeValue(key string, value any, all map[string]any, file string) error {
	add := func(flag, value string) {
		in.Arguments = append(in.Arguments, Argument{Of: Autoscaler, Name: flag, Value: value, Where: file + ", " + key})
	}
	switch key {
	case "cloudProvider":
		add("cloud-provider", show(value))
	case "cloudConfigPath":
		add("cloud-config", show(value))
	case "awsRegion":
		in.regionOf(key, show(value), file)
	case "expanderPriorities":
		text, err := textOf(value)
		if err != nil {
			return err
		}
		in.Priorities = text
	case "rbac.serviceAccount.annotations":
		return in.takeAnnotations(value, file)
	case "serviceMonitor", "prometheusRule":
		below, isMap := value.(map[string]any)
		if !isMap {
			return fmt.Errorf("want keys with values, not %s", show(value))
		}
		if on, _ := below["enabled"].(bool); on {
			in.Components = append(in.Components, "prometheus")
			in.same(key, "", file, "the component prometheus", "it has a PodMonitor, and alerts of Windlass's")
		}
	case "extraEnv":
		return eachKey(value, func(name string, value any) error {
			if name == "AWS_REGION" || name == "AWS_DEFAULT_REGION" {
				in.regionOf("variable "+name, show(value), file)
			} else {
				in.takeVariable(name, show(value), file)
			}
			return nil
		})
	case "autoscalingGroups":
		groups, err := decode[[]struct {
			Name             string
			MinSize, MaxSize any
		}](value)
		if err != nil {
			return fmt.Errorf("want a list of groups with name, minSize and maxSize: %w", err)
		}
		for _, g := range groups {
			add("nodes", show(g.MinSize)+":"+show(g.MaxSize)+":"+g.Name)
		}
	case "autoDiscovery.clusterName":
		discovery, _ := all["autoDiscovery"].(map[string]any)
		tags, isList := discovery["tags"].([]any)
		if !isList && !empty(discovery["tags"]) {
			return fmt.Errorf("want a list of tags beside it, not %s", show(discovery["tags"]))
		}
		if !isList {
			tags = []any{"k8s.io/cluster-autoscaler/enabled", "k8s.io/cluster-autoscaler/{{ .Values.autoDiscovery.clusterName }}"}
		}
		var filled []string
		for _, t := range tags {
			filled = append(filled, ownName.ReplaceAllLiteralString(show(t), show(value)))
		}
		add("node-group-auto-discovery", "asg:tag="+strings.Join(filled, ","))
	case "autoDiscovery.tags":
		if discovery, _ := all["autoDiscovery"].(map[string]any); empty(discovery["clusterName"]) {
			in.note(key, show(value), file, "without autoDiscovery.clusterName the chart does not use them")
		}
	case "customArgs":
		args, err := decode[[]string](value)
		if err != nil {
			return fmt.Errorf("want a list of arguments: %w", err)
		}
		words := []word{{}}
		for i, text := range args {
			words = append(words, word{text, fmt.Sprintf("%s, customArgs %d", file, i)})
		}
		in.Arguments = append(in.Arguments, parse(Autoscaler, words)...)
	case "extraArgs":
		return eachKey(value, func(name string, value any) error {
			name, _, _ = strings.Cut(name, "_") // as the chart does, so that a key can be there twice
			values, isList := value.([]any)
			if !isList {
				values = []any{value}
			}
			for _, v := range values {
				a := Argument{Of: Autoscaler, Name: name, Value: show(v), Where: file + ", extraArgs"}
				a.Bare = v == nil || a.Value == ""
				in.Arguments = append(in.Arguments, a)
			}
			return nil
		})
	}
	return nil
}

// ownName is the one template that is usual in values.
var ownName = regexp.MustCompile(`\{\{-?\s*\.Values\.autoDiscovery\.clusterName\s*-?\}\}`)

func eachKey(value any, do func(key string, value any) error) error {
	of, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("want keys with values, not %s", show(value))
	}
	for _, key := range slices.Sorted(maps.Keys(of)) {
		if err := do(key, of[key]); err != nil {
			return err
		}
	}
	return nil
}

// Roles by which a pod gets rights at AWS.
const (
	EKSIRSA  = "eks-irsa"
	Kube2iam = "kube2iam"
)

func (in *Input) takeAnnotations(value any, file string) error {
	return eachKey(value, func(name string, value any) error {
		if name == contract.AnnotationRoleIRSA {
			in.Role, in.RoleBy = show(value), EKSIRSA
			return nil
		}
		in.note("annotation "+name+" of the service account", show(value), file, "Windlass's service account has annotations of its own; add it there if it matters")
		return nil
	})
}

// carry takes what means the same for the scaler's pods.
func (in *Input) carry(key string, value any, file string) error {
	var pod Pod
	var err error
	switch key {
	case "nodeSelector":
		pod.NodeSelector, err = decode[map[string]string](value)
	case "tolerations":
		pod.Tolerations, err = decode[[]corev1.Toleration](value)
	case "podLabels":
		pod.Labels, err = decode[map[string]string](value)
	case "priorityClassName":
		pod.Priority = show(value)
	case "podAnnotations":
		pod.Annotations, err = decode[map[string]string](value)
		if role := pod.Annotations[contract.AnnotationRoleKube2iam]; role != "" {
			in.Role, in.RoleBy = role, Kube2iam
			delete(pod.Annotations, contract.AnnotationRoleKube2iam)
		}
	}
	if err != nil {
		return fmt.Errorf("it is not what a pod has there: %w", err)
	}
	in.takePod(pod, file)
	return nil
}

// addHandlerValues takes those of the handler's chart, whose keys are its flags in one word.
func (in *Input) addHandlerValues(values map[string]any, file string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value := values[key]
		if empty(value) {
			continue
		}
		flag := dashed(key)
		other, renamed := otherNames[key]
		if renamed {
			flag = other
		}
		f, known := fateOf(Handler, key)
		switch _, isFlag := Lookup(Handler, flag); {
		case isFlag:
			in.Arguments = append(in.Arguments, Argument{Of: Handler, Name: flag, Value: show(value), Where: file + ", " + key})
		case key == "targetNodeOs" && strings.Contains(show(value), "windows"), known && f.becomes == toDecide:
			in.decide(key, show(value), file, f.why)
		case key == "podMonitor":
			in.note(key, show(value), file, "the agent opens no port; drains are among the scaler's metrics")
		case known:
			in.note(key, show(value), file, f.why)
		default:
			in.unknown(key, show(value), file)
		}
	}
}

// dashed spells enableSQSDraining as a flag: enable-sqs-draining.
func dashed(key string) string {
	var b strings.Builder
	letters := []rune(key)
	for i, r := range letters {
		begins := i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1]))
		if begins {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// show is a value as the charts print it.
func show(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return strings.TrimSpace(string(text))
}

// textOf is YAML, as text or of what it was.
func textOf(value any) (string, error) {
	if text, ok := value.(string); ok {
		return text, nil
	}
	text, err := yaml.Marshal(value)
	return string(text), err
}

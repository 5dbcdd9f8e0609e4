package migrate

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/pkg/contract"
)

// MostBytes is how large a file may be: more than the API server takes of one object.
const MostBytes = 2 << 20

var document = regexp.MustCompile(`(?m)^---.*$`)

// AddFile takes a file of settings: objects of Kubernetes, a chart's values, or arguments. of is
// whose they are where nothing in them says so; "" if that is not known.
func (in *Input) AddFile(of Program, text, file string) error {
	if len(text) > MostBytes {
		return fmt.Errorf("%s has more than %d bytes: give the manifest, the values or the arguments alone", file, MostBytes)
	}
	if valid := strings.ToValidUTF8(text, "\x00"); valid != text {
		line := 1
		for i := 0; i < len(text) && text[i] == valid[i]; i++ {
			if text[i] == '\n' {
				line++
			}
		}
		return fmt.Errorf("%s line %d: there is a byte that is no text in UTF-8: save the file as UTF-8", file, line)
	}
	if words, is, err := readWords(of, text, file); is || err != nil {
		if err != nil {
			return err
		}
		if of == "" {
			of = Autoscaler
			if len(words) > 0 && strings.Contains(path.Base(words[0].text), contract.AppTerminationHandler) {
				of = Handler
			}
		}
		in.Arguments = append(in.Arguments, parse(of, append([]word{}, words...))...)
		return nil
	}
	found, line := false, 1
	for _, part := range document.Split(text, -1) {
		is, err := in.addDocument(of, part, file)
		if err != nil {
			return fmt.Errorf("%w (the document begins at line %d)", err, line)
		}
		found = found || is
		line += strings.Count(part, "\n")
	}
	if !found {
		return fmt.Errorf("%s has nothing of Cluster Autoscaler or the Node Termination Handler: give a Deployment or DaemonSet, a chart's values, or arguments that begin with --", file)
	}
	return nil
}

// looksLikeArguments: the first thing that is no comment is a flag or a program.
func looksLikeArguments(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(strings.TrimSpace(line), "\"'[")
		line = strings.TrimLeft(strings.TrimPrefix(line, "- "), "\"' ")
		if line == "" || line == "---" || strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "#") {
			continue
		}
		first, _, _ := strings.Cut(line, " ")
		return strings.HasPrefix(line, "-") || !strings.HasPrefix(line, "{") && !strings.Contains(first, ":")
	}
	return false
}

// addDocument takes a document of YAML, and reports whether anything of it was of use.
func (in *Input) addDocument(of Program, text, file string) (bool, error) {
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		return false, fmt.Errorf("%s is no YAML: %w", file, err)
	}
	if len(object) == 0 {
		return false, nil
	}
	if kind, isObject := object["kind"].(string); isObject && object["apiVersion"] != nil {
		return in.addObject(kind, object, file)
	}
	if of == "" {
		var err error
		if of, err = chartOf(object); err != nil {
			return false, fmt.Errorf("%s: %w", file, err)
		}
	}
	return true, in.AddValues(of, object, file)
}

func (in *Input) addObject(kind string, object map[string]any, file string) (bool, error) {
	switch kind {
	case "List", "DeploymentList", "DaemonSetList", "ConfigMapList":
		items, _ := object["items"].([]any)
		found := false
		for _, item := range items {
			below, ok := item.(map[string]any)
			if !ok {
				return found, fmt.Errorf("%s: a member of the list is no object", file)
			}
			kind, _ := below["kind"].(string)
			is, err := in.addObject(kind, below, file)
			if err != nil {
				return found, err
			}
			found = found || is
		}
		return found, nil
	case "ConfigMap":
		c, err := decode[struct {
			Metadata struct{ Name string }
			Data     map[string]string
		}](object)
		if err != nil {
			return false, fmt.Errorf("%s: %w", file, err)
		}
		if c.Metadata.Name != contract.ConfigMapPriorities {
			return false, nil
		}
		return true, in.AddPriorities(c.Data, file)
	case "ServiceAccount":
		a, err := decode[struct {
			Metadata struct{ Annotations map[string]string }
		}](object)
		if err != nil {
			return false, fmt.Errorf("%s: %w", file, err)
		}
		if role := a.Metadata.Annotations[contract.AnnotationRoleIRSA]; role != "" {
			in.accountRole = role
		}
		return false, nil
	case "Deployment", "DaemonSet", "StatefulSet", "ReplicaSet":
		w, err := decode[Workload](object)
		if err != nil {
			return false, fmt.Errorf("%s: %w", file, err)
		}
		if _, _, ok := Runs(w.Spec.Template); !ok {
			return false, nil
		}
		return true, in.AddWorkload(w)
	}
	return false, nil
}

// chartOf tells by its keys whose values they are.
func chartOf(values map[string]any) (Program, error) {
	count := map[Program]int{}
	for key := range maps.Keys(values) {
		_, isFlag := Lookup(Handler, dashed(key))
		if isFlag {
			count[Handler] += 2
		}
		for _, of := range []Program{Autoscaler, Handler} {
			if _, known := fateOf(of, key); known || of == Autoscaler && knownBelow(key) {
				count[of]++
			}
		}
	}
	switch a, h := count[Autoscaler], count[Handler]; {
	case a == h:
		return "", errors.New("it is not clear whose values these are: give those of the Node Termination Handler by --termination-handler, those of Cluster Autoscaler by --cluster-autoscaler")
	case h > a:
		return Handler, nil
	}
	return Autoscaler, nil
}

// TakeAccount takes the annotations of the service account of Cluster Autoscaler.
func (in *Input) TakeAccount(annotations map[string]string) {
	in.accountRole = annotations[contract.AnnotationRoleIRSA]
}

// role is the one that Cluster Autoscaler has, and by what.
func (in *Input) role() (arn, by string) {
	if in.Role == "" && in.accountRole != "" && slices.ContainsFunc(in.Arguments, func(a Argument) bool { return a.Of == Autoscaler }) {
		return in.accountRole, EKSIRSA
	}
	return in.Role, in.RoleBy
}

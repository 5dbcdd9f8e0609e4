package userdata

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// kubeletFlags reads flags of the kubelet.
// https://kubernetes.io/docs/reference/command-line-tools-reference/kubelet/
func (s *Settings) kubeletFlags(words []word) {
	for i := 0; i < len(words); i++ {
		flag, isFlag := strings.CutPrefix(words[i].text, "--")
		if !isFlag {
			continue
		}
		name, text, hasValue := strings.Cut(flag, "=")
		value := word{text, words[i].open}
		if !hasValue && i+1 < len(words) && !strings.HasPrefix(words[i+1].text, "--") {
			i++
			value = words[i]
		}
		if read, ok := flags[name]; ok {
			s.flag(name, value, read)
		}
	}
}

// flags are those that change a node template.
var flags = map[string]func(*Settings, string){
	"max-pods":             (*Settings).maxPodsFlag,
	"pods-per-core":        (*Settings).podsPerCoreFlag,
	"kube-reserved":        func(s *Settings, v string) { s.reservedFlag("--kube-reserved", &s.KubeReserved, v) },
	"system-reserved":      func(s *Settings, v string) { s.reservedFlag("--system-reserved", &s.SystemReserved, v) },
	"eviction-hard":        (*Settings).evictionFlag,
	"node-labels":          (*Settings).labelsFlag,
	"register-with-taints": (*Settings).taintsFlag,
	"reserved-cpus":        func(s *Settings, _ string) { s.fault("--reserved-cpus is not considered") },
}

func (s *Settings) flag(name string, value word, read func(*Settings, string)) {
	if value.open && name == "max-pods" && s.calculator(value.text) {
		return
	}
	if !value.open {
		read(s, value.text)
		return
	}
	// One of a list that is not known changes nothing for the others.
	var known []string
	for _, item := range items(value.text) {
		if strings.Contains(item, "$") {
			s.fault("--%s: %s is left out: only a shell knows its value", name, item)
			continue
		}
		known = append(known, item)
	}
	if len(known) > 0 {
		read(s, strings.Join(known, ","))
	}
}

func (s *Settings) maxPodsFlag(text string) {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n > 0 {
		s.Density.Most = n
		return
	}
	s.fault("--max-pods=%s is left out: it is no number", text)
}

func (s *Settings) podsPerCoreFlag(text string) {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n >= 0 {
		s.Density.PerCore = n
		return
	}
	s.fault("--pods-per-core=%s is left out: it is no number", text)
}

// reservedFlag reads cpu=100m,memory=1Gi. A flag replaces all of what the image's
// configuration sets.
func (s *Settings) reservedFlag(flag string, into *Amounts, text string) {
	*into = Amounts{Whole: true}
	s.amounts(flag, into, s.pairs(flag, text, "="), false)
}

// evictionFlag reads memory.available<100Mi,nodefs.available<10%.
func (s *Settings) evictionFlag(text string) {
	s.EvictionHard = Amounts{Whole: true}
	s.amounts("--eviction-hard", &s.EvictionHard, s.pairs("--eviction-hard", text, "<"), true)
}

func (s *Settings) labelsFlag(text string) {
	s.labels(s.pairs("--node-labels", text, "="))
}

// taintsFlag reads key=value:Effect,key:Effect.
func (s *Settings) taintsFlag(text string) {
	for _, item := range items(text) {
		rest, effect, ok := cutLast(item, ":")
		if !ok {
			s.fault("--register-with-taints: %s is left out: it has no effect", item)
			continue
		}
		key, value, _ := strings.Cut(rest, "=")
		s.taint(corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
}

// pairs reads a list of names with values.
func (s *Settings) pairs(flag, text, between string) map[string]string {
	out := map[string]string{}
	for _, item := range items(text) {
		name, value, ok := strings.Cut(item, between)
		if !ok && between == "<" {
			s.fault("%s: %s is left out: want signal<quantity", flag, item)
			continue
		}
		out[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return out
}

func items(text string) []string {
	var out []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

func cutLast(text, between string) (before, after string, ok bool) {
	if n := strings.LastIndex(text, between); n >= 0 {
		return text[:n], text[n+len(between):], true
	}
	return text, "", false
}

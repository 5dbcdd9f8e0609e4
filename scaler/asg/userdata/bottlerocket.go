package userdata

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	corev1 "k8s.io/api/core/v1"
)

// isBottlerocket: its settings are TOML, all of them in the table settings.
// https://bottlerocket.dev/en/os/latest/#/api/settings/kubernetes/
func isBottlerocket(text string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[settings") || strings.HasPrefix(line, "settings.") {
			return true
		}
	}
	return false
}

// table is a TOML table. Each value is looked at by itself, so that one of a wrong
// type costs nothing else.
type table = map[string]any

func (s *Settings) bottlerocket(text string) {
	s.Family = Bottlerocket
	document := table{}
	if nestsTooDeep(text) {
		s.fault("the TOML is not read: it nests deeper than %d tables; what Bottlerocket does by itself is assumed", deepestTable)
		return
	}
	if _, err := toml.Decode(text, &document); err != nil {
		s.fault("the TOML is not read: %v; what Bottlerocket does by itself is assumed", err)
		return
	}
	settings, _ := document["settings"].(table)
	kubernetes, _ := settings["kubernetes"].(table)

	s.bottlerocketPods(kubernetes["max-pods"])
	s.amounts("kube-reserved", &s.KubeReserved, s.texts("kube-reserved", kubernetes), false)
	s.amounts("system-reserved", &s.SystemReserved, s.texts("system-reserved", kubernetes), false)
	if eviction := s.texts("eviction-hard", kubernetes); len(eviction) > 0 {
		s.EvictionHard.Whole = true // as the kubelet takes it from Bottlerocket's file
		s.amounts("eviction-hard", &s.EvictionHard, eviction, true)
	}
	s.labels(s.texts("node-labels", kubernetes))
	s.bottlerocketTaints(kubernetes["node-taints"])
}

// deepestTable is how deep TOML may nest, by brackets and by parts of a key. The decoder recurses, and copies the
// whole key at each level: a few kilobytes can exhaust the stack or the memory.
const deepestTable = 64

var longKey = regexp.MustCompile(`(?:(?:"[^"\n]*"|'[^'\n]*'|[\w-]+)[ \t]*\.[ \t]*){` + strconv.Itoa(deepestTable) + `}`)

// nestsTooDeep counts brackets wherever they are, also in texts: no settings have so many open.
func nestsTooDeep(text string) bool {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		}
		if depth > deepestTable {
			return true
		}
	}
	return longKey.MatchString(text)
}

func (s *Settings) bottlerocketPods(value any) {
	switch n := value.(type) {
	case nil:
	case int64:
		if n > 0 {
			s.Density.Most = n
			return
		}
		s.fault("max-pods = %d is left out", n)
	default:
		s.fault("max-pods = %v is left out: it is no number", value)
	}
}

// bottlerocketTaints reads key = "value:Effect", or a list of such.
func (s *Settings) bottlerocketTaints(value any) {
	taints, _ := value.(table)
	for _, key := range slices.Sorted(maps.Keys(taints)) {
		list, isList := taints[key].([]any)
		if !isList {
			list = []any{taints[key]}
		}
		for _, item := range list {
			text := fmt.Sprint(item)
			taint, effect, ok := cutLast(text, ":")
			if !ok {
				s.fault("node-taints: %s = %q is left out: want value:Effect", key, text)
				continue
			}
			s.taint(corev1.Taint{Key: key, Value: taint, Effect: corev1.TaintEffect(effect)})
		}
	}
}

// texts reads a table of texts; numbers are texts, too.
func (s *Settings) texts(name string, in table) map[string]string {
	if in[name] == nil {
		return nil
	}
	given, ok := in[name].(table)
	if !ok {
		s.fault("%s is left out: it is no table", name)
		return nil
	}
	out := map[string]string{}
	for key, value := range given {
		switch value.(type) {
		case string, int64, float64, bool:
			out[key] = fmt.Sprint(value)
		default:
			s.fault("%s of %s is left out: it is no text", name, key)
		}
	}
	return out
}

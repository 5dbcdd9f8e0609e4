// Package flagfile holds manifests/flags against the flags that the programs have, for
// their tests.
package flagfile

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// Args are what the file has about a program.
type Args struct {
	// Set are the arguments in force.
	Set []string
	// Shown are those that are commented out.
	Shown []string
}

// commentedOut is a flag that is not in force. Other comments are prose.
var commentedOut = regexp.MustCompile(`(?m)^ *# - (--.+)$`)

// Read returns what the kustomization in a folder, which is manifests/flags, has about
// the program of that name.
func Read(folder, program string) (Args, error) {
	path := filepath.Join(folder, "kustomization.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return Args{}, err
	}
	var component types.Kustomization
	if err := yaml.UnmarshalStrict(text, &component); err != nil {
		return Args{}, fmt.Errorf("%s: %w", path, err)
	}
	for _, patch := range component.Patches {
		// A DaemonSet has all of the fields that are asked for here.
		var workload appsv1.Deployment
		if err := yaml.Unmarshal([]byte(patch.Patch), &workload); err != nil {
			return Args{}, fmt.Errorf("%s: %w", path, err)
		}
		if workload.Name != program {
			continue
		}
		args := Args{Set: workload.Spec.Template.Spec.Containers[0].Args}
		for _, found := range commentedOut.FindAllStringSubmatch(patch.Patch, -1) {
			args.Shown = append(args.Shown, found[1])
		}
		return args, nil
	}
	return Args{}, fmt.Errorf("%s has nothing about %s", path, program)
}

// Check says what is wrong with the arguments of a program that has the flags that
// newFlags makes, in a line each: flags that it does not have, values that it refuses,
// those shown that are not its defaults, and flags that the file does not have. Of those,
// wired are none of a user's business, and must not be in it.
func (a Args) Check(newFlags func() *pflag.FlagSet, wired ...string) []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	named := map[string]bool{}
	for _, arg := range slices.Concat(a.Set, a.Shown) {
		if !strings.HasPrefix(arg, "--") {
			continue // a command
		}
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		flag := newFlags().Lookup(name)
		if flag == nil {
			say("%s: there is no such flag", arg)
			continue
		}
		named[flag.Name] = true
		if err := flag.Value.Set(value); err != nil {
			say("%s: %v", arg, err)
		} else if slices.Contains(a.Shown, arg) && hasDefault(flag) && flag.Value.String() != flag.DefValue {
			say("%s is commented out and not the default, which is %s", arg, flag.DefValue)
		}
	}
	newFlags().VisitAll(func(flag *pflag.Flag) {
		if named[flag.Name] == slices.Contains(wired, flag.Name) {
			say("--%s is in the file: %v", flag.Name, named[flag.Name])
		}
	})
	return wrong
}

// hasDefault tells flags with a default from those of which an example is shown.
func hasDefault(flag *pflag.Flag) bool { return flag.DefValue != "" && flag.DefValue != "[]" }

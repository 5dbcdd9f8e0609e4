package flagfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

const file = `# Flags.
patches:
  - patch: |-
      kind: DaemonSet
      metadata: {name: other}
  - patch: |-
      kind: Deployment
      metadata: {name: program}
      spec:
        template:
          spec:
            containers:
              - args:
                  - run
                  - --level=high
                  - --gone=1
                  - --inner=x
                  # Prose - with a dash.
                  # - --wait=2m
                  # - --count=4
                  # - --names=an-example
                  # - --size=much
`

func TestCheckFindsWhatIsWrong(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	args, err := Read(folder, "program")
	if err != nil {
		t.Fatal(err)
	}
	newFlags := func() *pflag.FlagSet {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.String("level", "low", "")
		flags.Duration("wait", 120e9, "")
		flags.Int("count", 3, "")
		flags.StringArray("names", nil, "")
		flags.Int("size", 0, "")
		flags.String("forgotten", "", "")
		flags.String("inner", "", "")
		flags.String("kubeconfig", "", "")
		return flags
	}
	want := []string{
		"--gone=1: there is no such flag",
		"--count=4 is commented out and not the default, which is 3",
		`--size=much: strconv.ParseInt: parsing "much": invalid syntax`,
		"--forgotten is in the file: false",
		"--inner is in the file: true",
	}
	if diff := cmp.Diff(want, args.Check(newFlags, "inner", "kubeconfig")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := Read(folder, "stranger"); err == nil {
		t.Error("a program that is not in the file: no error")
	}
}

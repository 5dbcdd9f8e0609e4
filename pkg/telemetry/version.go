package telemetry

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// version and revision are set by the linker:
//
//	go build -ldflags "-X windlass.dev/windlass/pkg/telemetry.version=v1.2.3 -X windlass.dev/windlass/pkg/telemetry.revision=0123abc"
var version, revision string

// Build says which build a program is, to people and in logs.
type Build struct {
	// Version is the release; without one what the go command makes of the source
	// tree, such as v0.0.0-20261122060553-7e9f2ac264c9+dirty; else the revision,
	// shortened, or "dev".
	Version string
	// Revision is the commit, with "-dirty" behind it if the source tree differed
	// from it; "unknown" if the build was not told.
	Revision string
	// Go is the release of Go that it was compiled with.
	Go string
}

// ThisBuild is what the linker was told; without that what the go command
// recorded of the module and of its source tree.
func ThisBuild() Build {
	recorded := &debug.BuildInfo{}
	if info, ok := debug.ReadBuildInfo(); ok {
		recorded = info
	}
	return buildOf(version, revision, recorded)
}

// Version is ThisBuild's.
func Version() string { return ThisBuild().Version }

func (b Build) String() string {
	return fmt.Sprintf("%s (revision %s, %s)", b.Version, b.Revision, b.Go)
}

func buildOf(version, revision string, recorded *debug.BuildInfo) Build {
	known := cmp.Or(revision, recordedRevision(recorded))
	return Build{
		Version:  cmp.Or(version, releaseOf(recorded), shortened(known), "dev"),
		Revision: cmp.Or(known, "unknown"),
		Go:       runtime.Version(),
	}
}

// releaseOf is the version of the module; "" where the go command was told not to ask git.
func releaseOf(recorded *debug.BuildInfo) string {
	if recorded.Main.Version == "(devel)" {
		return ""
	}
	return recorded.Main.Version
}

const dirty = "-dirty"

func recordedRevision(recorded *debug.BuildInfo) string {
	settings := make(map[string]string, len(recorded.Settings))
	for _, s := range recorded.Settings {
		settings[s.Key] = s.Value
	}
	revision := settings["vcs.revision"]
	if revision != "" && settings["vcs.modified"] == "true" {
		revision += dirty
	}
	return revision
}

// shortened is a revision as people quote it.
func shortened(revision string) string {
	const length = 12
	hash, changed := strings.CutSuffix(revision, dirty)
	if len(hash) > length {
		hash = hash[:length]
	}
	if changed {
		hash += dirty
	}
	return hash
}

package telemetry

import (
	"cmp"
	"runtime/debug"
)

// version is set by the linker:
//
//	go build -ldflags "-X windlass.dev/windlass/pkg/telemetry.version=v1.2.3"
var version string

// Version names this build: what the linker was told; without that the module
// version or the revision of the source tree as the go command recorded it;
// "dev" where nothing is known.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	settings := make(map[string]string, len(info.Settings))
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	const shortRevision = 12
	revision := settings["vcs.revision"]
	if len(revision) > shortRevision {
		revision = revision[:shortRevision]
	}
	if revision != "" && settings["vcs.modified"] == "true" {
		revision += "-dirty"
	}
	return cmp.Or(revision, "dev")
}

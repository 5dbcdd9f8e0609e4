package telemetry

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestBuildOf(t *testing.T) {
	const commit, told = "0123456789abcdef0123", "fedcba9876543210fedc"
	recorded := debug.BuildSetting{Key: "vcs.revision", Value: commit}
	modified := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	devel := debug.Module{Version: "(devel)"}
	for _, c := range []struct {
		name              string
		version, revision string
		info              debug.BuildInfo
		want              Build
	}{
		{"the linker is believed", "v1.2.3", told, debug.BuildInfo{Main: devel, Settings: []debug.BuildSetting{recorded}}, Build{Version: "v1.2.3", Revision: told}},
		{"a revision alone", "", told + "-dirty", debug.BuildInfo{Main: devel}, Build{Version: "fedcba987654-dirty", Revision: told + "-dirty"}},
		{"a module's release", "", "", debug.BuildInfo{Main: debug.Module{Version: "v1.2.4"}, Settings: []debug.BuildSetting{recorded}}, Build{Version: "v1.2.4", Revision: commit}},
		{"a source tree", "", "", debug.BuildInfo{Main: devel, Settings: []debug.BuildSetting{recorded}}, Build{Version: "0123456789ab", Revision: commit}},
		{"a changed source tree", "", "", debug.BuildInfo{Settings: []debug.BuildSetting{recorded, modified}}, Build{Version: "0123456789ab-dirty", Revision: commit + "-dirty"}},
		{"nothing known", "", "", debug.BuildInfo{Settings: []debug.BuildSetting{modified}}, Build{Version: "dev", Revision: "unknown"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.Go = runtime.Version()
			if got := buildOf(c.version, c.revision, &c.info); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestBuildString(t *testing.T) {
	b := Build{Version: "v1.2.3", Revision: "0123abc-dirty", Go: "go1.26.8"}
	if got, want := b.String(), "v1.2.3 (revision 0123abc-dirty, go1.26.8)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

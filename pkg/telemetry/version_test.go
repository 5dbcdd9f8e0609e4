package telemetry

import (
	"runtime/debug"
	"testing"
)

func TestVersionOf(t *testing.T) {
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123"}
	modified := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for want, info := range map[string]*debug.BuildInfo{
		"v1.2.3":             {Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{revision}},
		"0123456789ab":       {Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{revision}},
		"0123456789ab-dirty": {Settings: []debug.BuildSetting{revision, modified}},
		"dev":                {Settings: []debug.BuildSetting{modified}},
	} {
		if got := versionOf(info); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

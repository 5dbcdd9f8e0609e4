package contract

import "fmt"

const (
	// ConfigMapShadow has what a shadow assumes done, ConfigMapShadowState its persisted state, which is
	// as that of ConfigMapState.
	ConfigMapShadow      = "windlass-shadow"
	ConfigMapShadowState = "windlass-shadow-state"
)

// ConfigMapsShadowLog are the names of the ConfigMaps with the log of a shadow, each a part of it.
func ConfigMapsShadowLog(parts int) (names []string) {
	for part := range parts {
		names = append(names, fmt.Sprintf("windlass-shadow-log-%02d", part))
	}
	return names
}

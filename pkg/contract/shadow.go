package contract

import "fmt"

// ConfigMapsShadowLog are the names of the ConfigMaps with the log of a shadow, each a part of it.
func ConfigMapsShadowLog(parts int) (names []string) {
	for part := range parts {
		names = append(names, fmt.Sprintf("windlass-shadow-log-%02d", part))
	}
	return names
}

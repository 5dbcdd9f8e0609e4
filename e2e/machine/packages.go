package machine

import (
	_ "embed"
	"strings"
)

//go:embed packages.txt
var packagesTxt string

// Packages are the Debian packages that real machines need, as packages.txt lists them.
func Packages() []string {
	var names []string
	for line := range strings.Lines(packagesTxt) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			names = append(names, line)
		}
	}
	return names
}

package plan

import (
	"fmt"
	"strings"

	"windlass.dev/windlass/scaler/fit"
)

// whyNot says for each group by name what keeps these pods from it.
func (d *decision) whyNot(c *fit.Class) (Reason, string) {
	if len(d.groups) == 0 {
		return PodFitsNothing, "there is no group that could grow"
	}
	reason := PodFitsNothing
	var texts []string
	for _, g := range d.groups {
		_, why := g.room()
		if len(g.looks) > 0 {
			if misses := d.fit.FitsNew(c, g.looks); len(misses) > 0 {
				why = fmt.Sprintf("%s %s", g.looks[0].Name, misses)
			} else {
				reason, g.wanted = PodGroupsFull, true
			}
		}
		texts = append(texts, fmt.Sprintf("%s: %s", g.Name, why))
	}
	return reason, strings.Join(texts, "; ") + caveat(c)
}

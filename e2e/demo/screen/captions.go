package screen

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/e2e/demo/story"
)

// Captions say in three lines what is played, what it waits for, and what AWS or the play did last:
// what the cluster itself has, the view below them shows.
func Captions(s story.State) []string {
	act, awaited := "windlass demo  "+minutes(s.Elapsed), ""
	if s.Act.Number > 0 {
		act += fmt.Sprintf("  act %d of %d: %s  %s", s.Act.Number, s.Act.Of, s.Act.Title, s.Act.About)
		awaited = "all of it came true"
	}
	if len(s.Act.Awaited) > 0 {
		awaited = "waits for  " + strings.Join(s.Act.Awaited, "; ")
	}
	return []string{act, awaited, outside(s.Feed)}
}

// outside is the last that happened and is no Event of Windlass.
func outside(feed []story.Happening) string {
	for _, h := range slices.Backward(feed) {
		if h.By == "aws" || h.By == "demo" {
			return h.At.UTC().Format(time.TimeOnly) + " " + h.By + "  " + happening(h)
		}
	}
	return ""
}

// minutes prints a duration as m:ss.
func minutes(d time.Duration) string {
	d = d.Truncate(time.Second)
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

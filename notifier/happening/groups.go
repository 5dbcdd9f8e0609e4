package happening

import (
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
)

// mostNames is how many pods, namespaces and nodes a happening names.
const mostNames = 20

// grown: a launch for a group. What is launched before the nodes of the last one are Ready is of
// the same happening.
func (f *fold) grown(e Event) {
	x := e.Facts
	if x.Group == "" {
		return // of a scaler that does not say
	}
	h := f.lasting(ScaleUp, x.Group)
	if h != nil && e.At.After(h.Last.Add(overdue)) { // it did not end in time, or nobody saw it
		phase := Over
		if f.late(h) {
			phase = Overdue
		}
		h.end(phase, e.At)
		h = nil
	}
	if h == nil {
		h = f.begin(Happening{Kind: ScaleUp, Subject: x.Group, Group: x.Group, Zone: x.Zone, Phase: Launching, Began: e.At, From: x.From, To: x.To})
	} else {
		h.Count++
		h.From, h.To = min(h.From, x.From), max(h.To, x.To)
		if h.Zone != x.Zone {
			h.Zone = ""
		}
		h.change(e.At)
	}
	h.Pods += x.Pods
	h.For = union(h.For, x.For)
	h.Namespaces = union(h.Namespaces, x.Namespaces)
	f.Totals.NodesUp += max(0, x.To-x.From)
}

// union adds what is not there yet, as far as there is room.
func union(list, more []string) []string {
	for _, m := range more {
		if len(list) < mostNames && !slices.Contains(list, m) {
			list = append(slices.Clip(list), m)
		}
	}
	return list
}

// group finds a group's line on a page that was written after a moment.
func (f *fold) group(name string) (statuspage.GroupLine, bool) {
	if f.world.Page == nil {
		return statuspage.GroupLine{}, false
	}
	i := slices.IndexFunc(f.world.Page.Groups, func(g statuspage.GroupLine) bool { return g.Name == name })
	if i < 0 {
		return statuspage.GroupLine{}, false
	}
	return f.world.Page.Groups[i], true
}

// risen ends a scale-up whose nodes are Ready: as many as it asked for, or as the group is to
// have now. One whose group is to have no more than before has failed. A page that says that it is to
// have less may go by a reading of before the launch: it counts where it stands some time after that.
func (f *fold) risen(h *Happening) {
	line, known := f.group(h.Group)
	settled := line.Desired >= h.To || !f.world.Now.Before(h.Last.Add(joins))
	if known && settled && f.world.Page.Written.After(h.Last) && line.Ready >= min(h.To, line.Desired) {
		h.To = min(h.To, max(line.Desired, line.Ready))
		phase := Ready
		if h.To <= h.From {
			phase = Failed
		}
		h.end(phase, f.world.Page.Written)
		return
	}
	if f.late(h) {
		h.end(Overdue, f.world.Now)
	}
}

// late reports whether the nodes of a scale-up are seen not to be Ready in time. Without a page of late, or
// on one that may leave the group out, nobody knows.
func (f *fold) late(h *Happening) bool {
	page, now := f.world.Page, f.world.Now
	return now.After(h.Last.Add(overdue)) && page != nil && page.Written.After(h.Last) && now.Sub(page.Written) < pageOf && complete(page, h.Group)
}

// pageOf is how old a page may be that tells how things are: one that stays as it is is written anew every ten
// minutes.
const pageOf = 12 * time.Minute

// launchFailed: a launch that has failed, or of which no node came. Failures in a row are one.
func (f *fold) launchFailed(e Event) {
	x := e.Facts
	if x.Group == "" {
		return
	}
	h := f.lasting(LaunchFailed, x.Group)
	if h == nil {
		h = f.begin(Happening{Kind: LaunchFailed, Subject: x.Group, Group: x.Group, Phase: Failed, Began: e.At})
	} else {
		h.Count++
		h.change(e.At)
	}
	if !e.At.Before(h.Last) {
		h.Zone, h.Text, h.From, h.To = x.Zone, contract.Shorten(x.Cause, mostText), x.From, x.To
		h.Until = latest(h.Until, x.Until.Time)
	}
}

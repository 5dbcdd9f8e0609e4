package fleet

import "time"

// NodeReplacement is that some nodes are to go for a new one that costs less than they do. The new
// one is launched first, and they are drained when it is there. A time is zero before it
// has come.
type NodeReplacement struct {
	// Instances are those whose nodes go, by id.
	Instances []string `json:"instances"`
	// Group is where the new node comes from, and Zone the one that it was found to
	// be right in.
	Group string `json:"group"`
	Zone  string `json:"zone,omitempty"`
	// Found is since when the replacement has been worth while.
	Found time.Time `json:"found,omitzero"`
	// Launched is when the group was grown for it, and Until when it is given up if it
	// is not done.
	Launched time.Time `json:"launched,omitzero"`
	Until    time.Time `json:"until,omitzero"`
}

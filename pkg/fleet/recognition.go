package fleet

import "time"

// Recognition is what the scaler remembers of instances that no Node names. Only a Node
// whose providerID names an instance says that the instance is one of this cluster: all
// else may be somebody's busy machine.
type Recognition struct {
	// Groups remembers since when a group is known to be of this cluster, by group: a
	// Node of one of its instances has been seen.
	Groups map[string]time.Time `json:"groups,omitempty"`
	// Asked is how many instances were asked for that have not been seen yet, by group.
	Asked map[string]Asked `json:"asked,omitempty"`
	// Launched remembers when an instance without a Node was asked for that came after
	// that, by instance id.
	Launched map[string]time.Time `json:"launched,omitempty"`
	// Ended are the instances that were ended because no Node of them registered, by
	// instance id: for as long as they are there, and at least as long as they count
	// against the next ones.
	Ended map[string]Ended `json:"ended,omitempty"`
	// Left remembers since when an instance has been leaving whose Node was seen
	// meanwhile, by instance id.
	Left map[string]time.Time `json:"left,omitempty"`
	// Graced is until when a new leader leaves an instance without a Node in peace, by
	// instance id. Each instance is given that once.
	Graced map[string]time.Time `json:"graced,omitempty"`
}

// Asked is that so many instances were asked for, the last of them at some moment.
type Asked struct {
	At    time.Time `json:"at"`
	Count int       `json:"count"`
}

// Ended is the end of an instance of which no Node registered.
type Ended struct {
	Group string    `json:"group"`
	At    time.Time `json:"at"`
	// Launched means that it came after we had asked for it.
	Launched bool `json:"launched,omitempty"`
}

// Outage is a time in which not everything vital was heard of the API server. From is
// zero where nothing had been heard before: nobody knows when it began.
type Outage struct {
	From  time.Time `json:"from,omitzero"`
	Until time.Time `json:"until"`
}

// Back is when the last outage ended: Now while one lasts, zero if there was none.
// Whoever was not heard before has perhaps spoken.
func (s Snapshot) Back() time.Time {
	var last time.Time
	for _, o := range s.Outages {
		if o.Until.After(last) {
			last = o.Until
		}
	}
	return last
}

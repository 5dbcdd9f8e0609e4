// Package story turns what is seen of a running world into what a viewer
// wants to know of it: one State per look, and a Summary at the end.
//
// It has no clock, no client and no lock. Whoever watches tells it, with the
// time, what it saw and in the order in which it saw it; the same tale gives
// the same State.
//
//	facts.go      the words of the tale: Group, Instance, Node, Pod, Call, ...
//	translate.go  Kubernetes objects → those words
//	story.go      Story: what is, and what has been
//	feed.go       what happened last, alike things said once
//	state.go      State: everything that one picture shows
//	summary.go    Summary: what there is to say at the end
package story

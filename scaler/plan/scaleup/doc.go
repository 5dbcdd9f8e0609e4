// Package scaleup finds out which pods are pending, which groups grow for them, and why a group
// does not.
//
//	scaleup.go     what it needs of the other rooms
//	waiting.go     which pods are pending, and where they could go without a new node
//	release.go     nodes that rebalance recommendations closed, and that are opened
//	disputed.go    pods with room that kube-scheduler leaves pending
//	leaving.go     pods of nodes that others take
//	grow.go        new nodes for the rest: one plan over all groups; nodes that are not evaluated
//	               while groups grow
//	gang.go        pods that find places all together or not at all
//	growheadroom.go, minimum.go  new nodes for room that is kept free, and for minimum sizes
//	expander.go    which of several groups grows; priorities.go as people prefer
//	promise.go     pods for which a node came that does not take them
//	calls.go       the calls by which a group grows
//	whynot.go      why each group has no node for a pod
package scaleup

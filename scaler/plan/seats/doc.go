// Package seats is the simulation: which pod has its seat on which node, now and if things went as
// planned. Scale-up, scale-down and drains share it; each undoes what it only tries out
// (fit.Cluster has the undo).
//
//	seats.go        the simulation
//	simulate.go     nodes and pods as they are; what is kept from evaluation to evaluation
//	kept.go         what is kept of nodes: their templates, and the pods on them
//	place.go        upcoming nodes, and pods that are moved
//	openroom.go     where a pod has room without a new node
//	destinations.go destinations for pods of nodes that are removed
//	otherdestinations.go  pods on their way to a node that make room for others
//	cancellable.go  nodes whose scale-down would be cancelled for a pod
//	supply.go       what new nodes a group could have, and why none; similar groups
//	utilization.go  what counts as used
//	headroom.go     room that is kept free: what is asked for, and who has a seat
//	buffer.go       CapacityBuffers; bufferlimits.go how large they may be; bufferstatus.go what
//	                is written on them
//	podterms.go     what pods may say of others in one evaluation
//	ration.go       how namespaces share the work of an evaluation
package seats

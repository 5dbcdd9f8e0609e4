// Package externalgrpc reads groups of machines of a provider of one's own, and acts on them, by
// the protocol that Cluster Autoscaler asks its external providers in. Such a provider keeps groups
// with a target size and with machines in them; it knows no lifecycle hooks, no activities, and
// lets nobody choose a zone.
//
//	config.go   the file of --cloud-config, and the connection
//	calls.go    the calls, and what their failures mean
//	reader.go   reads all groups, again and again
//	known.go    what is kept of one group from one reading to the next
//	group.go    answers → fleet.Group: what is believed of them, and what is not
//	options.go  what a provider wants otherwise for a group than the flags say
//	template.go the Node that a provider describes → fleet.NodeTemplate
//	verbs.go    the calls that change something
//
// A provider may be wrong in any way: nothing that it answers is taken for granted, and where its
// answers contradict each other nothing of the group is changed (fleet.Group.Held).
// https://github.com/kubernetes/autoscaler/tree/master/cluster-autoscaler/cloudprovider/externalgrpc
package externalgrpc

// Package template finds out what a new node of a group will be. It calls AWS through
// a Describer alone.
//
//	books.go           Books: what was found out, for all groups together; Describer
//	offers.go          what a group launches: policies and overrides
//	launchtemplate.go  launch templates and configurations
//	requirements.go    the types of attribute-based groups
//	types.go           the figures of instance types
//	kubelet.go         what EKS's kubelet makes of an instance type
//	tags.go            node-template tags
//	nodegroup.go       EKS managed node groups: labels and taints
//	zones.go           the ids of zones
//	blueprint.go       Blueprint: all of that → fleet.NodeTemplate
//
// User data is read by package userdata, prices are of package prices.
package template

// Package fakegrpc is an external provider for tests: it serves groups of machines by Cluster
// Autoscaler's protocol, tells what it is told to tell, and counts what it was asked.
//
//	provider.go the calls, and what is wrong with their answers
//	memory.go   machines that are nothing but entries of a list
//	config.go   certificates, and the file of --cloud-config
//
// Behind it are Machines: those of a list, or those of the fake AWS.
package fakegrpc

// Package evict is the agent's whole acquaintance with the API server: its own
// Node, the pods bound to it, their eviction, and Events.
//
//	client.go    the client: five verbs, and the scheme that they need
//	identity.go  asking as the node itself, so that no other node can be asked about
//	evict.go     one eviction, and what its answer means
//	node.go      read and write the Node; watch its metadata
//	pods.go      the pods of the node, kept in step by one watch
//	budgets.go   the budgets that guard them; those of a namespace by a watch
//	follow.go    keep a watch open: resume, begin anew, back off
//
// The agent is paid for on every node, so this is a REST client with a scheme
// of a few kinds and not the clientset (which registers every kind there is),
// and nothing is cached but the pods of a node that drains, and their budgets.
//
// k8s.io/kubectl/pkg/drain is not linked: its drain gives up at the first error
// that is not a 429, sends no UID, asks for every pod every second, and pulls
// kustomize into the binary. What it gets right, which pods a drain takes, what
// an answer means and how a node is cordoned, is held against ours in the tests;
// where we differ, they say why.
package evict

// Package outcome collects what the steps of one evaluation settle.
//
//	outcome.go  actions, verdicts on pending pods
//	state.go    the persisted state, before and after
//
// Verdicts on nodes and groups stand on these (cluster.Node.Say, cluster.Group.Note), where
// later steps read them.
package outcome

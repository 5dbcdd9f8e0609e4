// Package outcome collects what the steps of one evaluation settle.
//
//	outcome.go  actions, verdicts on pending pods
//	state.go    the persisted state, before and after
//
// What is said of a node or a group stands on it: a later step may know better.
package outcome

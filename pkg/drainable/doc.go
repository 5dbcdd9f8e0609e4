// Package drainable answers, for one pod of a node that shall be emptied: may
// it leave, when, and if not, what forbids it. The scaler foresees with these
// answers which nodes can go, the agent acts by them, so both always mean the
// same.
//
//	rules.go    the rules, and their order in one table
//	daemons.go  pods of DaemonSets, which leave with their node as a rule
//	owners.go   is the owner there, and does it want enough replicas
//	urgency.go  which of them yield where the instance goes anyway
//	budgets.go  PodDisruptionBudgets, as the eviction API counts them
//	empty.go    is the node empty: who must be placed again, who still ends
//	steps.go    who leaves first
//	grace.go    how long a pod gets to end before a deadline
//	tally.go    a drain at one moment: who is left, whose turn it is, what blocks, its phase
//	returns.go  pods that come back to the node: who is left alone, and until when
//	manner.go   what people want of all drains, in one value
//	volumes.go  which volumes stay with the node
//
// Everything in here is a pure function of its arguments.
package drainable

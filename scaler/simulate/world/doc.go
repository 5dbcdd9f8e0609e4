// Package world is a cluster in virtual time, as much of it as the scaler meets: pods come, are
// placed and end, nodes boot, drain and are removed, and all actions of a plan are done.
// Nothing in it waits, and a seed determines what is left to chance.
//
//	spec.go       Spec: what the cluster is made of
//	world.go      World, and Run: the loop of the virtual clock
//	clock.go      what happens when
//	pods.go       pods come, run, are evicted and end
//	budgets.go    PodDisruptionBudgets, counted as pods change
//	schedule.go   kube-scheduler: feasible by scaler/fit, and its scores
//	nodes.go      instances are launched, become nodes and end: Auto Scaling and EC2
//	agent.go      the drain of a node, as its agent does it
//	act.go        the actions of a plan, carried out
//	ledger.go     what it cost and what happened
package world

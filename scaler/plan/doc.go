// Package plan decides what the scaler does: Decide takes a snapshot and a policy and returns
// actions, a verdict on every pending pod, node and group, and the moment of the next evaluation.
// It has no clock, no client and no logger. A Planner keeps what it has found out about pods from one
// evaluation to the next, which makes answers faster and no other.
//
//	decide.go    Decide: the story of one evaluation, in the order of claims
//	plan.go      Plan: what it returns
//	verdicts.go  the plan put together
//	settle.go    Settle: the state to persist, after what became of the actions
//	differ.go    Judge: whether what is kept makes a difference
//
// Below it are rooms, each made by its New. From the ground up:
//
//	action, verdict, policy  what may be done, what is said, what people want
//	cluster                  the facts of one evaluation
//	outcome                  what the steps settle: actions, verdicts on pods, the persisted state
//	recognition              which groups and instances are this cluster's
//	template                 node templates, corrected by nodes
//	launch                   what came of earlier launches
//	standin                  drains in place of unresponsive agents
//	hooks                    instances that Auto Scaling, EC2 and people take
//	seats                    the simulation: which pod could be where
//	drains                   drains under way
//	scaleup                  what pending pods need
//	scaledown                which nodes are unneeded
//
// testdata/scenarios shows it at work.
package plan

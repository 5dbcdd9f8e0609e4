// Package policy is what people want of the scaler: its flags, as one value, and what an evaluation
// may cost, which has no flag.
//
//	policy.go         all of them, with their defaults and what is wrong with a value
//	range.go          limits of cores and memory
//	expandernames.go  the names of expanders
//	taints.go         taints that go by themselves, by their flags
//	manyunready.go    how many nodes may be unready
//	work.go           what one evaluation may cost
package policy

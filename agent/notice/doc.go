// Package notice knows what announces that a node's instance is to leave: how each source
// spells it, what stands in a Notice, and which of several notices decides.
//
//	cause.go     what exactly is announced, and of which kind that is
//	notice.go    Notice, and Standing: one list, the strongest first
//	response.go  what is done about each cause
//	policy.go    what people say about that
//	source.go    the table of sources that the instance metadata has
//	targetstate.go, spot.go, maintenance.go  their parsers
//	request.go   the drain request
//	id.go        how ids are made, and read again
//
// What ends a notice. No answer, an error, and a body that is not understood end none; and
// neither does a restart of the agent, which goes on by the list on the Node and counts
// answers anew.
//
//	spot interruption   two minutes after its time, where the metadata give it no more; of
//	                    one that stops or hibernates, a boot after its time. AWS documents
//	                    no withdrawal, so a missing answer before is a failure. The target
//	                    lifecycle state may be InService all the while and ends none.
//	target state        one answer with InService, or another state in its place; three in
//	                    a row that lack the path. Into a warm pool: a boot.
//	rebalance           three answers in a row that lack the path.
//	scheduled event     one answer whose list lacks it or has it completed or cancelled, or
//	                    whose history has; three in a row that lack the path; the reboot
//	                    that it announced; an hour after its end, if the machine survives it.
//	request             one read of the Node without it, or with another.
//
// A further source is one line in the table and one parser. Everything in here
// is a pure function of its arguments.
package notice

// Package notice knows what tells a node that it is to leave: how each source
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
// A further source is one line in the table and one parser. Everything in here
// is a pure function of its arguments.
package notice

// Package scenario is the language in which tests describe a cluster: one short
// line for each thing, read into a fleet.Snapshot and printed back.
//
//	now 10:00:00
//	group web min=0 max=10 desired=2 type=m5.large zones=a,b hook=windlass
//	node web-1 group=web zone=a
//	node web-2 group=web zone=b cordoned
//	instance i-3 group=web zone=a state=Pending
//	pod app-1..3 on=web-1 cpu=500m
//	pod big waiting cpu=2 selector=disk=ssd tolerates=dedicated
//	pod db waiting claim=data-0
//	volume pv-7 claim=data-0 zone=a
//	pdb app allowed=1 match=app=app
//	buffer app replicas=2 cpu=500m
//	request web-2 kind=scale-down at=09:59:00
//	report web-2 phase=Draining
//
// A line is a verb, a name and words, each a flag or key=value; a value with
// spaces stands in double quotes; what follows a # is a comment. The verbs and
// their words stand in tables in verbs.go, with what is taken where a word is
// absent. app-1..3 stands for three things. A line about a thing that is there
// already changes it.
//
//	line.go     lines into words; errors that name line and word
//	verbs.go    the verbs
//	values.go   what values look like
//	group.go    groups and instances
//	node.go     nodes
//	pod.go      pods
//	owner.go    what pods belong to
//	storage.go  volumes and claims
//	buffer.go   buffers and quotas
//	hooks.go    lifecycle hooks
//	memory.go   what the scaler has written down, and what others say
//	format.go   a snapshot as such lines
//	world.go    what the world does by itself: instances boot and go, agents drain
package scenario

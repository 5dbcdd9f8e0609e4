// Package asg reads groups and acts on them. It speaks with EC2 Auto Scaling, EC2 and
// EKS, and with nothing else: it is the only importer of those clients.
//
//	select.go    which groups are ours: the flags, parsed
//	dial.go      the clients, with few retries and with every call recorded
//	errors.go    what a refused call means, in words that do not change
//	rights.go    which right is missing, and which statement of the policy has it
//	reader.go    Reader: a reading of all groups, no older than it need be
//	study.go     what of each group to read anew, and when
//	describe.go  the calls by which package template finds out what a new node will be
//	facts.go     hooks, warm pools and instance refreshes
//	pace.go      how soon to read again
//	group.go     one group as AWS describes it → fleet.Group
//	activity.go  scaling activities → since when instances leave, what failed
//	replaced.go  scaling activities → what Auto Scaling replaces by itself
//	machines.go  whether the machine of an instance is switched off
//	spot.go      what spot instances cost, by type and zone
//	reads.go     how a group is at this moment, for many who ask at once, and what was read last
//	told.go      what our calls have changed, and a description is too old to show
//	verbs.go     Verbs: the calls that change something, each of them guarded
//	launch.go    Launch: instances in a zone of our choice, once
//	hooks.go     lifecycle hooks completed and held
//
// One group's trouble never hides another group: what cannot be read becomes
// a sentence in fleet.Group.Faults.
package asg

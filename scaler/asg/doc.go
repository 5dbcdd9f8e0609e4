// Package asg speaks with EC2 Auto Scaling, EC2 and EKS, and with nothing
// else: it is the only importer of those clients.
//
//	select.go     which groups are ours: the flags, parsed
//	dial.go       the clients, with few retries and with every call recorded
//	errors.go     what a refused call means, in words that do not change
//	rights.go     which right is missing, and which statement of the policy has it
//	reader.go     Reader: a reading of all groups, no older than it need be
//	study.go      what of each group to read anew, and when
//	facts.go      hooks, warm pools and instance refreshes
//	pace.go       how soon to read again
//	group.go      one group as AWS describes it → fleet.Group
//	activity.go   scaling activities → since when instances leave, what failed
//	launch.go     what a group launches: policies and overrides
//	template.go   launch templates and configurations
//	requirements.go  the types of attribute-based groups
//	types.go      the figures of instance types
//	kubelet.go    what EKS's kubelet makes of an instance type
//	shape.go      all of that → fleet.Shape
//	tags.go       node-template tags
//	nodegroup.go  EKS managed node groups: labels and taints
//	zones.go      the ids of zones
//	verbs.go      Verbs: the calls that change something, each of them guarded
//
// One group's trouble never hides another group: what cannot be read becomes
// a sentence in fleet.Group.Faults.
package asg

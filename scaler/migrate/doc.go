// Package migrate translates the settings of Cluster Autoscaler and of the Node Termination
// Handler into Windlass's, and says what becomes of each flag.
//
//	table.go      flags.txt: every flag of theirs and what it becomes
//	rules.go      how values are translated
//	arguments.go  flags from a command line or a file of arguments
//	workload.go   flags from a Deployment or DaemonSet; the ConfigMap of priorities
//	values.go     flags from the values of either chart; values.txt: what the others become
//	read.go       which of these a file is
//	translate.go  flags → Report: each flag once
//	settings.go   what the report sets, as the clusters' own files need it
//	overlay.go    Report → an overlay for kustomize
//	helm.go       Report → values of Windlass's chart
//	text.go       Report → text for people
//	page.go       the table as a page
//
// Nothing that is given is lost: it is translated, without counterpart, to be decided or unknown.
package migrate

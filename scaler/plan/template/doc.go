// Package template corrects the node templates of groups by the nodes that came of them: the
// definition of a group says what its nodes should be, and the nodes know better.
//
//	template.go    what it needs of the cluster
//	learn.go       from which nodes is learned, and what the definition is then
//	labels.go      their labels and taints
//	room.go        what pods may have on them, and their devices
//	differs.go     how nodes differ from their template, and which tag would mend that
//	lesson.go      what is persisted for groups without nodes
//	seen.go        the memory that instance types were seen with
//	definition.go  a hash of a group's definition
//	alike.go       labels, taints and amounts that are similar
package template

// Package status keeps what the scaler writes about itself in its own namespace: its
// persisted state, and the verdicts for people.
//
//	memory.go  Memory: the ConfigMap windlass-state
//	shadow.go  what a shadow keeps over a restart, in ConfigMaps of its own
//	board.go   Board: the ConfigMap windlass-status, on change, not too often
//	page.go    the page on the board, for people, within its bounds
//	verdicts.go all verdicts, which stand beside it for programs
//	reasons.go what stood there of nodes, for who leads next
//	casboard.go CASBoard: the ConfigMap that a Cluster Autoscaler keeps of itself
package status

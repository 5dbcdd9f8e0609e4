// Package verdict is what is said of a pod, a node or a group: a reason as one word, and a
// sentence for people.
//
//	verdict.go  one verdict
//	reason.go   all reasons; docs/reference/verdict-reasons.md has what each means
//	words.go    how sentences name numbers, lists, moments and the progress of drains
package verdict

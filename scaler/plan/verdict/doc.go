// Package verdict is what is said of a pod, a node or a group: a reason as one word, and
// details, of which one renderer makes the sentence for people.
//
//	verdict.go  one verdict
//	detail.go   what it says, as data
//	params.go   the names of parameters; docs/reference/verdict-details.md promises them
//	render.go   the sentence
//	reason.go   all reasons; docs/reference/verdict-reasons.md has what each means
//	words.go    details of several packages, and words for other texts
package verdict

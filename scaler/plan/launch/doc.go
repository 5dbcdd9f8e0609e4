// Package launch is what groups were asked for and what came of it.
//
//	launch.go      launches in zones of our choice: answers, repetition (package scaleup makes the
//	               tokens); taking back what cannot come
//	overdue.go     what was asked for and does not come
//	neverready.go  instances that never became nodes that are Ready
//	cause.go       how far the cause of a failed launch reaches
//	backoff.go     back-off by zone, group and quota
//	delays.go      how long scale-down waits after something
package launch

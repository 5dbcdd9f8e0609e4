// Package telemetry is how a program of Windlass tells people about itself:
//
//	log.go      structured logs, Kubernetes client libraries included
//	health.go   which part of the program is unhealthy, since when, and why
//	version.go  which build this is
//
// It opens no port: Health is an http.Handler that a program may serve or not.
package telemetry

// Package telemetry is how a program of Windlass tells people about itself:
//
//	log.go      structured logs, Kubernetes client libraries included
//	health.go   which part of the program is unhealthy, since when, and why
//	version.go  which build this is
//	server.go   bounds of the server for metrics and health
//
// It opens no port: a program may serve these or not.
package telemetry

// Package recognition finds out which groups and instances are this cluster's, and how many of
// those that are not known to be may be ended.
package recognition

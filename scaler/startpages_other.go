//go:build !linux

package main

// dropStartPages is for the kernel that the image runs on.
func dropStartPages() error { return nil }

//go:build !linux

package machine

import "log/slog"

// podLogs is never made: no machine is.
type podLogs struct{}

func newPodLogs(*slog.Logger) (*podLogs, error) { return nil, errNotLinux }

func (*podLogs) keep(string, string) error { return errNotLinux }

func (*podLogs) leave(string) error { return errNotLinux }

func (*podLogs) close() error { return nil }

package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"k8s.io/klog/v2"
)

// LogFormat is how log lines look.
type LogFormat string

// The two formats of log lines.
const (
	// Text is for people: key=value pairs.
	Text LogFormat = "text"
	// JSON is for log collectors: one object a line.
	JSON LogFormat = "json"
)

// LogFlags are the two settings of a program's log, in the form in which they
// come from flags. The zero value means text at level info.
type LogFlags struct {
	// Format is "text" or "json".
	Format string
	// Level is "debug", "info", "warn" or "error", in any case.
	Level string
}

// FlagSet is the part of a flag set (pflag's or the standard library's) that
// LogFlags needs.
type FlagSet interface {
	StringVar(p *string, name, value, usage string)
}

// Register adds --log-format and --log-level to a program's flags.
func (f *LogFlags) Register(flags FlagSet) {
	flags.StringVar(&f.Format, "log-format", string(Text), "how log lines look: text or json")
	flags.StringVar(&f.Level, "log-level", "info", "the lowest level that is logged: debug, info, warn or error")
}

// NewLogger returns a logger that writes to w, or an error that names the
// setting which is wrong.
func NewLogger(w io.Writer, flags LogFlags) (*slog.Logger, error) {
	level, err := parseLevel(flags.Level)
	if err != nil {
		return nil, err
	}
	options := &slog.HandlerOptions{Level: level}
	switch LogFormat(strings.ToLower(flags.Format)) {
	case Text, "":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case JSON:
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, fmt.Errorf("log format %q is neither %q nor %q", flags.Format, Text, JSON)
}

// SetDefault makes logger the one that everything in this process writes to:
// slog's default, the standard library's log, and klog, through which the
// Kubernetes client libraries speak. Their lines are tagged
// component=client-go, so that they can be told from ours.
func SetDefault(logger *slog.Logger) {
	slog.SetDefault(logger)
	klog.SetSlogLogger(logger.With("component", "client-go"))
}

func parseLevel(name string) (slog.Level, error) {
	if name == "" {
		return slog.LevelInfo, nil
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(name)); err != nil {
		return 0, fmt.Errorf("log level %q is none of debug, info, warn, error", name)
	}
	return level, nil
}

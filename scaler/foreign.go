package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/pflag"

	"windlass.dev/windlass/scaler/migrate"
)

// foreign are the flags of Cluster Autoscaler that the command line has and that are none of
// Windlass's, so that its arguments can be pasted. What becomes of each is in the table of package
// migrate.
type foreign struct{ given []migrate.Argument }

// register adds a hidden flag for each that there is not.
func (f *foreign) register(flags *pflag.FlagSet) {
	for _, row := range migrate.Rows() {
		if row.Of != migrate.Autoscaler || flags.Lookup(row.Flag) != nil {
			continue
		}
		flag := &pflag.Flag{Name: row.Flag, Usage: row.Why, Value: foreignFlag{f, row}, Hidden: true}
		if row.Kind == "bool" {
			flag.NoOptDefVal = "true"
		}
		if len(row.Flag) == 1 {
			flag.Shorthand = row.Flag
		}
		flags.AddFlag(flag)
	}
}

// adopt sets the flags that they become, and returns what is to be said of those that mean nothing,
// and an error with what is wrong with the others.
func (f *foreign) adopt(flags *pflag.FlagSet) (warning string, err error) {
	report := migrate.Adopt(f.given, flags.Changed)
	var wrong []error
	for _, i := range report.Decide {
		wrong = append(wrong, fmt.Errorf("--%s=%s of Cluster Autoscaler: %s", i.Name, i.Value, i.Why))
	}
	for _, s := range report.Settings.Scaler {
		if err := flags.Set(s.Flag, s.Value); err != nil {
			wrong = append(wrong, fmt.Errorf("--%s=%s: %w", s.Flag, s.Value, err))
		}
	}
	var ignored []string
	for _, i := range report.Nothing {
		ignored = append(ignored, "--"+i.Name+": "+i.Why)
	}
	if err := errors.Join(wrong...); err != nil {
		return "", fmt.Errorf("%w\nwindlass-scaler migrate translates all arguments of Cluster Autoscaler", err)
	}
	return strings.Join(ignored, "; "), nil
}

// adoptForeign does so for a command, once its flags are read.
func (s *settings) adoptForeign(flags *pflag.FlagSet, logger *slog.Logger) error {
	ignored, err := s.foreign.adopt(flags)
	if ignored != "" {
		logger.Warn("flags of Cluster Autoscaler that mean nothing here are ignored", "flags", ignored)
	}
	return err
}

// foreignFlag notes a flag, which is judged when all are read.
type foreignFlag struct {
	of  *foreign
	row migrate.Row
}

func (f foreignFlag) Set(value string) error {
	f.of.given = append(f.of.given, migrate.Argument{Of: migrate.Autoscaler, Name: f.row.Flag, Value: value})
	return nil
}

func (foreignFlag) String() string { return "" }

// Type is the word for the value in the usage.
func (f foreignFlag) Type() string { return f.row.Kind }

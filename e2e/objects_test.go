package e2e

import (
	"errors"
	"fmt"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"windlass.dev/windlass/e2e/script"
)

// objects compares all objects of the cluster with what they were, but for nodes that came or went:
// objects save NAME, and later [!] objects same NAME.
func (s *session) objects(ts *testscript.TestScript, neg bool, args []string) error {
	if s.w == nil {
		return errNoWorld
	}
	if len(args) != 2 || args[0] == "save" && neg {
		return errors.New("usage: objects save NAME, or [!] objects same NAME")
	}
	is, err := s.asker.Dump(s.ctx)
	if err != nil {
		return err
	}
	if args[0] == "save" {
		if s.saved == nil {
			s.saved = map[string]script.Objects{}
		}
		s.saved[args[1]] = is
		ts.Logf("%d objects", len(is))
		return nil
	}
	was, saved := s.saved[args[1]]
	if !saved {
		return fmt.Errorf("no objects were saved as %s", args[1])
	}
	diff := cmp.Diff(was.Common(is), is.Common(was))
	if neg && diff == "" {
		return errors.New("unexpected success: the objects are the same")
	}
	if !neg && diff != "" {
		return fmt.Errorf("objects (-%s +now):\n%s", args[1], diff)
	}
	return nil
}

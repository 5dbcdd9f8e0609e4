package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// limits are the host's own, shared by all that root runs, of which programs on many
// machines take more than Linux gives by default: a machine has about ten instances of
// inotify(7), and there are 128. kind asks its users for the same.
// https://kind.sigs.k8s.io/docs/user/known-issues/#pod-errors-due-to-too-many-open-files
var limits = map[string]int64{"/proc/sys/fs/inotify/max_user_instances": 1024}

// raiseLimits raises those that are lower. They stay raised, until the host boots.
func (c Config) raiseLimits() error {
	for file, want := range limits {
		now, err := readNumber(file)
		if err != nil {
			return err
		}
		if now >= want {
			continue
		}
		if err := os.WriteFile(file, []byte(strconv.FormatInt(want, 10)), 0o644); err != nil {
			return fmt.Errorf("raising a limit of this host from %d to %d: %w", now, want, err)
		}
		c.Log.Info("a limit of this host was raised", "limit", filepath.Base(file), "from", now, "to", want)
	}
	return nil
}

package world

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// restrict holds the programs to the IAM policy that people are given, so that
// whatever a world plays proves it to be enough.
func (w *World) restrict(ctx context.Context) error {
	root, err := Root(ctx)
	if err != nil {
		return err
	}
	policy, err := os.ReadFile(filepath.Join(root, "manifests", "iam", "scaler-policy.json"))
	if err != nil {
		return fmt.Errorf("reading the scaler's IAM policy: %w", err)
	}
	if err := w.AWS.Restrict(accessKey, policy); err != nil {
		return fmt.Errorf("giving the scaler its IAM policy: %w", err)
	}
	return nil
}

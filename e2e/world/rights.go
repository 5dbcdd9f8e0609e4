package world

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Restrict holds the programs to the IAM policy that people are given, and to those of the
// opt-in policies in manifests/iam that are named, such as suspend-az-rebalance: whatever a
// world plays proves them to be enough.
func (w *World) Restrict(ctx context.Context, optIn ...string) error {
	root, err := Root(ctx)
	if err != nil {
		return err
	}
	var policies [][]byte
	for _, name := range append([]string{"scaler-policy"}, optIn...) {
		policy, err := os.ReadFile(filepath.Join(root, "manifests", "iam", name+".json"))
		if err != nil {
			return fmt.Errorf("reading the scaler's IAM policies: %w", err)
		}
		policies = append(policies, policy)
	}
	if err := w.AWS.Restrict(accessKey, policies...); err != nil {
		return fmt.Errorf("giving the scaler its IAM policies: %w", err)
	}
	return nil
}

package e2e

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/e2e/confine"
	"windlass.dev/windlass/e2e/world"
	"windlass.dev/windlass/pkg/contract"
)

// confine lets somebody try everything with the token that the agent of a real machine
// has: confine NODE POD FOREIGN-NODE FOREIGN-POD, with pods of namespace default.
func (s *session) confine(ts *testscript.TestScript, neg bool, args []string) error {
	if s.w == nil {
		return errNoWorld
	}
	if neg || len(args) != 4 {
		return errors.New("usage: confine NODE POD FOREIGN-NODE FOREIGN-POD")
	}
	agent, err := s.w.AgentOf(args[0])
	if err != nil {
		return err
	}
	token, err := s.w.TokenOnMachine(s.ctx, agent)
	if err != nil {
		return fmt.Errorf("reading the token of %s: %w", agent, err)
	}
	accounts := s.w.Client.CoreV1().ServiceAccounts(world.Namespace)
	unbound, err := accounts.CreateToken(s.ctx, contract.AppAgent, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	scaler, err := accounts.CreateToken(s.ctx, contract.AppScaler, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	scene := confine.Scene{
		Server: s.w.Admin, Near: args[0], NearPod: args[1], Far: args[2], FarPod: args[3],
		Token: token, Unbound: unbound.Status.Token, Scaler: scaler.Status.Token,
		Rights: confine.Rights{AsNode: true, AsAccount: true},
	}
	if wrong := scene.Try(s.ctx); len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

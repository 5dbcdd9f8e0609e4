package kube

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// serviceAccount begins the user names of service accounts: their namespace and name follow.
const serviceAccount = "system:serviceaccount:"

// Confined reports whether the admission policies of the manifests find a program by its user
// name: they match accounts, of any namespace, whose name contains that of the program.
func Confined(program, user string) bool {
	account, is := strings.CutPrefix(user, serviceAccount)
	namespace, name, named := strings.Cut(account, ":")
	return is && named && namespace != "" && !strings.Contains(name, ":") && strings.Contains(name, program)
}

// accountAgain is how long an API server that did not answer is left in peace.
const accountAgain = time.Minute

// CheckAccount warns in the log, and through tell, if no admission policy confines the
// account of a program, because an overlay renamed it: a policy that matches nobody is
// silent. userName asks the API server by what name it knows us (SelfSubjectReview, which the
// ClusterRole system:basic-user allows to everybody), again and again until it answers. Users
// that are no service accounts, such as people, are not meant to be confined.
func CheckAccount(ctx context.Context, program string, userName func(context.Context) (string, error), logger *slog.Logger, tell func(message string)) {
	user, err := userName(ctx)
	for err != nil {
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			logger.Info("own account not checked", "err", err)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(accountAgain):
		}
		user, err = userName(ctx)
	}
	if Confined(program, user) || !strings.HasPrefix(user, serviceAccount) {
		return
	}
	message := fmt.Sprintf("the admission policies %s-* do not confine %s: they match accounts with %[1]s in their name. "+
		"Whoever gets a token of it may use all its rights on every Node. Rename the account, or change the matchConditions of the policies", program, user)
	logger.Warn("account not confined", "user", user, "reason", message)
	tell(message)
}

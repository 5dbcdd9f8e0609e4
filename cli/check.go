package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/cli/top/feed"
	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/statuspage"
	"windlass.dev/windlass/pkg/telemetry"
)

// statusError is an error with the status that the program ends with.
type statusError struct {
	status int
	error
}

func (e statusError) Unwrap() error { return e.error }

// What check ends with where not all is well.
const (
	statusFound     = 1
	statusUnchecked = 2
)

func (c *cli) checkCommand() *cobra.Command {
	o := output{}
	strict := false
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say what is wrong with the installation, and what mends it.",
		Long: `Say what is wrong with the installation, and what mends it: versions, rights, agents, hooks,
scale-in protection, other autoscalers, budgets that never allow an eviction.

It asks the API server alone; what only AWS knows it has from the leader. It ends with status
0 if there is no error, 1 if there is one, and 2 if there is none and something could not be
checked.`,
		Example: `  kubectl windlass check
  kubectl windlass check --strict -o json    # in a pipeline: warnings count, too`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := c.reader()
			if err != nil {
				return statusError{statusUnchecked, err}
			}
			p, err := r.preflight(cmd.Context(), view.World{Now: c.now()})
			if err != nil {
				return statusError{statusUnchecked, err}
			}
			found := view.NewCheck(p)
			if err := o.print(c.Out, found); err != nil {
				return err
			}
			return verdictOf(found, strict)
		},
	}
	o.register(cmd)
	cmd.Flags().BoolVar(&strict, "strict", false, "end with status 1 on warnings, too")
	return cmd
}

func verdictOf(found view.Check, strict bool) error {
	said := fmt.Errorf("errors: %d, warnings: %d, not checked: %d", found.Errors, found.Warnings, found.Unknown)
	switch {
	case found.Errors > 0, strict && found.Warnings > 0:
		return statusError{statusFound, said}
	case found.Unknown > 0:
		return statusError{statusUnchecked, said}
	}
	return nil
}

// preflight reads all that a check asks for. What cannot be read leaves its area unchecked; it
// fails only if the API server does not answer.
func (r reader) preflight(ctx context.Context, w view.World) (view.Preflight, error) {
	p := view.Preflight{World: w, System: r.system, Plugin: telemetry.Version(), Unread: map[view.Area]string{}}
	server, err := r.client.Discovery().ServerVersion()
	if err != nil {
		return p, fmt.Errorf("asking the API server for its version: %w", err)
	}
	p.Server = server.GitVersion
	for _, part := range []struct {
		read  func(context.Context, *view.Preflight) error
		areas []view.Area // all that goes by it
	}{
		{r.served, []view.Area{view.AreaAPI}},
		{func(ctx context.Context, p *view.Preflight) error { return r.lease(ctx, &p.World) }, []view.Area{view.AreaScaler}},
		{r.findings, []view.Area{view.AreaCluster, view.AreaGroups, view.AreaScaler, view.AreaAgents, view.AreaOthers}},
		{func(ctx context.Context, p *view.Preflight) error { return r.nodes(ctx, &p.World) }, []view.Area{view.AreaNodes, view.AreaAgents}},
		{r.saidByPrograms, []view.Area{view.AreaRights, view.AreaAgents}},
		{r.budgets, []view.Area{view.AreaBudgets}},
		{r.allPods, []view.Area{view.AreaPods, view.AreaScaler, view.AreaAgents, view.AreaNotifier, view.AreaOthers, view.AreaBudgets, view.AreaRights}},
		{r.notifier, []view.Area{view.AreaNotifier}},
		{r.ownRights, []view.Area{view.AreaAccess}},
		{r.rightsOfAccounts, []view.Area{view.AreaRights}},
	} {
		err := part.read(ctx, &p)
		if ctx.Err() != nil {
			return p, context.Cause(ctx)
		}
		if err != nil {
			for _, area := range part.areas {
				p.Unread[area] = strings.TrimPrefix(p.Unread[area]+"; "+err.Error(), "; ")
			}
		}
	}
	return p, nil
}

func (r reader) served(_ context.Context, p *view.Preflight) error {
	groups, err := r.client.Discovery().ServerGroups()
	if err != nil {
		return fmt.Errorf("asking which APIs the server has: %w", err)
	}
	for _, g := range groups.Groups {
		p.Served = append(p.Served, g.Name)
		for _, v := range g.Versions {
			p.Served = append(p.Served, v.GroupVersion)
		}
	}
	return nil
}

// findings reads what the leader has found.
func (r reader) findings(ctx context.Context, p *view.Preflight) error {
	object, err := r.client.CoreV1().ConfigMaps(r.system).Get(ctx, contract.ConfigMapStatus, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil // which is a finding
	case err != nil:
		return fmt.Errorf("reading config map %s: %w", contract.ConfigMapStatus, err)
	}
	if p.Page, err = statuspage.Read(object); err != nil {
		return err
	}
	p.Verdicts, err = statuspage.ReadVerdicts(object)
	return err
}

// saidByPrograms reads what programs say of what keeps them from their work.
func (r reader) saidByPrograms(ctx context.Context, p *view.Preflight) error {
	_, err := r.events(ctx, &p.World, func(e *corev1.Event) bool {
		return e.Reason == contract.EventNotConfined || e.Reason == contract.EventMetadataUnread
	})
	return err
}

func (r reader) budgets(ctx context.Context, p *view.Preflight) error {
	err := pages(func(options metav1.ListOptions) (metav1.ListInterface, error) {
		list, err := r.client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, options)
		if err == nil {
			p.Budgets = append(p.Budgets, list.Items...)
		}
		return list, err
	}, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("reading budgets: %w", err)
	}
	return nil
}

// indexed are budgets as the rules of drains know them.
func indexed(budgets []policyv1.PodDisruptionBudget) *drainable.Budgets {
	list := make([]fleet.Budget, 0, len(budgets))
	for i := range budgets {
		list = append(list, fleet.BudgetFrom(&budgets[i]))
	}
	return drainable.NewBudgets(list)
}

func (r reader) allPods(ctx context.Context, p *view.Preflight) error {
	budgets := indexed(p.Budgets)
	err := pages(func(options metav1.ListOptions) (metav1.ListInterface, error) {
		list, err := r.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return list, err
		}
		for i := range list.Items {
			p.See(&list.Items[i], budgets)
		}
		return list, nil
	}, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("reading pods: %w", err)
	}
	return nil
}

// notifier reads who sends, where it is installed.
func (r reader) notifier(ctx context.Context, p *view.Preflight) (err error) {
	if len(p.Notifiers) > 0 {
		p.NotifierLease, err = feed.Lease(ctx, r.client, r.system, contract.LeaseNotifier)
	}
	return err
}

// ownRights asks what who asks may do: that of the viewers' roles.
func (r reader) ownRights(ctx context.Context, p *view.Preflight) error {
	return r.judge(p, "", func(a *authorizationv1.ResourceAttributes) (bool, error) {
		review, err := r.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: a},
		}, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return review.Status.Allowed, nil
	})
}

// rightsOfAccounts asks what the service accounts of Windlass may do.
func (r reader) rightsOfAccounts(ctx context.Context, p *view.Preflight) error {
	var all []error
	accounts := []string{contract.AppScaler, contract.AppAgent}
	if len(p.Notifiers) > 0 {
		accounts = append(accounts, contract.AppNotifier)
	}
	for _, account := range accounts {
		err := r.judge(p, account, func(a *authorizationv1.ResourceAttributes) (bool, error) {
			review, err := r.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{
					User:               "system:serviceaccount:" + r.system + ":" + account,
					Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + r.system, "system:authenticated"},
					ResourceAttributes: a,
				},
			}, metav1.CreateOptions{})
			if err != nil {
				return false, err
			}
			return review.Status.Allowed, nil
		})
		if apierrors.IsForbidden(err) {
			return fmt.Errorf("needs the right to create subjectaccessreviews, which role windlass-checker gives: %w", err)
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

// judge asks for each right of an account; empty stands for people.
func (r reader) judge(p *view.Preflight, account string, allowed func(*authorizationv1.ResourceAttributes) (bool, error)) error {
	for _, right := range view.AllRights {
		if right.Account() != account || account == "" && right.Role != view.RoleViewer {
			continue
		}
		resource, sub, _ := strings.Cut(right.Resource, "/")
		a := &authorizationv1.ResourceAttributes{Verb: right.Verb, Group: right.Group, Resource: resource, Subresource: sub, Name: right.Of}
		if right.Own {
			a.Namespace = r.system
		}
		var err error
		if right.Allowed, err = allowed(a); err != nil {
			return fmt.Errorf("asking whether one may %s: %w", right, err)
		}
		p.Rights = append(p.Rights, right)
	}
	return nil
}

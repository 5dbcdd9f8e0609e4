package play

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"windlass.dev/windlass/e2e/demo/story"
	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// The two groups of the demo, and what runs on them.
const (
	Web, Batch   = "web", "batch"
	shop, render = "shop", "render"
	// WebMin is the size that web starts with and comes back to.
	WebMin = 2
)

// Namespace is where the workloads are.
const Namespace = "demo"

//go:embed workloads.yaml
var workloads string

// generous is how long an act may take before it counts as failed: a loaded
// machine may be slow, a product that works is not this slow.
const generous = 2 * time.Minute

// Day is the script of the demo.
func Day() []Act {
	return []Act{
		{
			Title: "Night", About: "A small shop runs on two on-demand nodes; the spot group is empty.",
			Do: night, Within: generous, Lasts: 5 * time.Second,
		},
		{
			Title: "Morning", About: "Three times the customers, and a batch of pictures to render.",
			Do: morning, Within: generous, Lasts: 12 * time.Second,
		},
		{
			Title: "Noon", About: "EC2 takes a spot instance back. Its pods may leave one at a time.",
			Do: noon, Within: generous, Lasts: 15 * time.Second,
		},
		{
			Title: "Afternoon", About: "A scaling policy of somebody else's shrinks web; a hook holds the instance.",
			Do: afternoon, Within: generous, Lasts: 12 * time.Second,
		},
		{
			Title: "Evening", About: "The customers go home. Nodes hardly used give their last pods away and go.",
			Do: evening, Within: generous, Lasts: 5 * time.Second,
		},
	}
}

func night(ctx context.Context, stage Stage) ([]Condition, error) {
	if err := stage.Apply(ctx, workloads); err != nil {
		return nil, err
	}
	return []Condition{sized(Web, WebMin), sized(Batch, 0), served(shop, 4)}, nil
}

// Three shop pods fit on a node of web, two render pods on one of batch.
func morning(ctx context.Context, stage Stage) ([]Condition, error) {
	if err := errors.Join(stage.Scale(ctx, shop, 12), stage.Scale(ctx, render, 6)); err != nil {
		return nil, err
	}
	return []Condition{served(shop, 12), served(render, 6), sized(Web, 4), sized(Batch, 3)}, nil
}

func noon(ctx context.Context, stage Stage) ([]Condition, error) {
	victim, err := fullest(stage, Batch)
	if err != nil {
		return nil, err
	}
	if err := stage.SpotNotice(ctx, victim.Instance); err != nil {
		return nil, err
	}
	return []Condition{
		drains(victim.Name, contract.KindSpot), grew(Batch, 4), emptied(victim.Name, victim.Instance), served(render, 6),
	}, nil
}

// fullest is the node of a group with the most pods, the first by name.
func fullest(stage Stage, group string) (story.Node, error) {
	var found story.Node
	most := 0
	stage.Look(func(s *story.Story) {
		for _, n := range s.NodesOf(group) {
			if pods := s.PodsOn(n.Name); pods > most {
				found, most = n, pods
			}
		}
	})
	if most == 0 {
		return found, fmt.Errorf("no node of %s has pods", group)
	}
	return found, nil
}

func afternoon(ctx context.Context, stage Stage) ([]Condition, error) {
	if err := stage.ScaleIn(ctx, Web); err != nil {
		return nil, err
	}
	victim, err := leaving(ctx, stage, Web)
	if err != nil {
		return nil, err
	}
	return []Condition{
		leaves(victim.ID), drains(victim.Node, contract.KindASG), emptied(victim.Node, victim.ID),
		called(operationComplete, victim.ID, "its lifecycle action is completed"), ended(victim.ID), served(shop, 12),
	}, nil
}

// leaving waits for Auto Scaling's choice.
func leaving(ctx context.Context, stage Stage, group string) (story.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, generous)
	defer cancel()
	for {
		changed := stage.Changed()
		var chosen story.Instance
		stage.Look(func(s *story.Story) {
			g, _ := s.Group(group)
			for _, i := range g.Instances {
				if i.State == fleet.Terminating || i.State == fleet.TerminatingWait {
					chosen = i
				}
			}
		})
		if chosen.ID != "" {
			return chosen, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return chosen, fmt.Errorf("waiting for Auto Scaling to choose an instance of %s: %w", group, ctx.Err())
		}
	}
}

// Five pods are left of the shop, and the ReplicaSet leaves them spread over
// four nodes, although two would do.
func evening(ctx context.Context, stage Stage) ([]Condition, error) {
	if err := errors.Join(stage.Scale(ctx, shop, 5), stage.Scale(ctx, render, 0)); err != nil {
		return nil, err
	}
	return []Condition{served(shop, 5), served(render, 0), retired(4), sized(Web, WebMin), sized(Batch, 0)}, nil
}

// NodesCome is an act in which nothing is done but to wait until every group
// has the nodes that it starts with.
func NodesCome(groups []fakeaws.Group) Act {
	return Act{Title: "The nodes come", Within: generous, Do: func(context.Context, Stage) ([]Condition, error) {
		var all []Condition
		for _, g := range groups {
			size := g.Min
			if g.Desired != nil {
				size = *g.Desired
			}
			all = append(all, sized(g.Name, size))
		}
		return all, nil
	}}
}

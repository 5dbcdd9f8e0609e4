package main

import (
	"math/rand/v2"
	"slices"
	"time"

	"windlass.dev/windlass/e2e/laws"
	"windlass.dev/windlass/e2e/world"
)

func killAgent(s *soak, dice *rand.Rand) (effect, error) {
	i, ok := one(dice, s.serving(mortal...))
	if !ok {
		return effect{}, nil
	}
	agent, err := s.w.AgentOf(i.PrivateDNSName)
	if err != nil {
		return effect{}, nil // the node is young
	}
	return s.killed(dice, agent)
}

// killScaler kills one of the two, in the first part of the soak only: the others'
// memory is to be compared over the rest.
func killScaler(s *soak, dice *rand.Rand) (effect, error) {
	scaler, ok := one(dice, s.w.Scalers())
	if !ok || s.tooLateToKill() {
		return effect{}, nil
	}
	return s.killed(dice, scaler)
}

func (s *soak) tooLateToKill() bool { return time.Since(s.began) > s.duration*2/5 }

// killed kills the program of a pod and starts it again later.
func (s *soak) killed(dice *rand.Rand, pod string) (effect, error) {
	if err := s.w.KillProgram(s.ctx, pod); err != nil {
		return effect{}, nil // it is down already, or its pod goes
	}
	over := func() {}
	if slices.Contains(s.w.Scalers(), pod) {
		over = s.hamper()
	}
	return effect{
		what:  pod + " is killed",
		lasts: between(dice, time.Second, 45*time.Second),
		end: func() error {
			_ = s.w.StartProgram(s.ctx, pod) // its pod may be gone by then
			over()
			return nil
		},
		obstacle: true,
	}, nil
}

// pauseAPIServer stops or kills the API server for some seconds.
func pauseAPIServer(s *soak, dice *rand.Rand) (effect, error) {
	if s.away() || s.outage {
		return effect{}, nil
	}
	end, how := s.w.Plane.Kill, "killed"
	if dice.IntN(2) == 0 {
		end, how = s.w.Plane.Stop, "stopped"
	}
	s.outages = append(s.outages, laws.Span{From: time.Now(), To: forever})
	return effect{
		what:  "the API server is " + how,
		lasts: between(dice, 2*time.Second, 15*time.Second),
		end: func() error {
			err := s.w.Plane.Start(s.ctx, world.APIServer)
			s.outages[len(s.outages)-1].To = time.Now()
			return err
		},
		obstacle: true,
	}, end(s.ctx, world.APIServer)
}

// forever is the end of an outage that has not ended.
var forever = time.Unix(1<<40, 0)

// away reports whether the API server is.
func (s *soak) away() bool {
	return len(s.outages) > 0 && s.outages[len(s.outages)-1].To.Equal(forever)
}

package main

import (
	"math/rand/v2"
	"time"
)

// kind is one way to disturb the world.
type kind struct {
	name   string
	weight int
	do     func(s *soak, dice *rand.Rand) (effect, error)
}

// effect is what a disturbance has done; the zero effect is none: there was nothing
// that it could be done to.
type effect struct {
	what string
	// end takes it back, or ends it as AWS would, after it has lasted; nil where
	// there is nothing to end.
	end   func() error
	lasts time.Duration
	// obstacle: while it lasts, drains may rightly not end.
	obstacle bool
}

// ofDryRuns are those that a Cluster Autoscaler alone puts right, and deaths of Windlass.
const ofDryRuns = "terminate,scale-out,lost,aws-fault,shortage,imds,scale,rollout,budget,naked,gate,kill-agent,kill-scaler,api-server,api-server-long,clock,tenant-pods"

// kinds are what happens to clusters.
var kinds = []kind{
	// AWS, and people with its console.
	{"spot", 8, spotNotice},
	{"rebalance", 4, rebalance},
	{"maintenance", 5, maintenance},
	{"terminate", 4, terminate},
	{"scale-in", 3, scaleIn},
	{"scale-out", 2, scaleOut},
	{"standby", 2, standby},
	{"unhealthy", 2, unhealthy},
	{"lost", 2, lost},
	{"reboot", 2, reboot},
	{"detach", 1, detach},
	{"refresh", 1, refresh},
	{"aws-fault", 3, awsFault},
	{"stale-reads", 2, staleReads},
	{"shortage", 1, shortage},
	{"imds", 4, imdsAway},
	{"imds-tokens", 1, forgetTokens},

	// People with kubectl.
	{"request", 6, request},
	{"cordon", 3, cordon},
	{"hold", 1, hold},
	{"scale", 8, scale},
	{"rollout", 2, rollout},
	{"budget", 5, closeBudget},
	{"naked", 3, naked},
	{"gate", 2, gate},
	{"delete-node", 1, deleteNode},

	// What breaks.
	{"kill-agent", 4, killAgent},
	{"kill-scaler", 3, killScaler},
	{"api-server", 2, pauseAPIServer},
	{"api-server-long", 1, longOutage},
	{"zone", 1, zonePartition},
	{"flap", 1, flap},
	{"clock", 1, clockJump},

	// Who must not be trusted.
	{"foreign-group", 2, foreignCluster},
	{"foreign-instance", 2, foreignInstance},
	{"no-provider", 3, noProvider},
	{"mass-notices", 2, massNotices},
	{"mass-rebalance", 1, massRebalance},
	{"tenant-pods", 2, tenantPods},
	{"tenant-buffers", 1, tenantBuffers},
	{"forged-reports", 2, forgeReports},
}

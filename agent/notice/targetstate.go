package notice

import (
	"fmt"
	"strings"
)

// inService is the target state that asks for nothing.
const inService = "InService"

// leaving are the target states that lead an instance out of service. The warm
// pool's own Terminated is a termination like any other.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/retrieving-target-lifecycle-state-through-imds.html
var leaving = map[string]Cause{
	"Terminated":        ASGTerminate,
	"Warmed:Terminated": ASGTerminate,
	"Warmed:Stopped":    ASGWarm,
	"Warmed:Hibernated": ASGWarm,
	"Warmed:Running":    ASGWarm,
	"Standby":           ASGStandby,
	"Detached":          ASGDetach,
}

// leads says for people what Auto Scaling does.
var leads = map[Cause]string{
	ASGTerminate: "Auto Scaling terminates the instance",
	ASGWarm:      "Auto Scaling leads the instance into the warm pool",
	ASGStandby:   "Auto Scaling puts the instance on standby",
	ASGDetach:    "the instance is detached from its Auto Scaling group",
}

// ParseTargetState reads the lifecycle state that Auto Scaling leads an
// instance to. Its notice ends when the state is InService again. The ids of a
// termination and of the way into the warm pool are those that the scaler
// derives too. A state that is not known is an error: it asks for nothing, and ends
// nothing.
func ParseTargetState(instance, body string) ([]Notice, error) {
	state := strings.TrimSpace(body)
	if state == inService {
		return nil, nil
	}
	cause, known := leaving[state]
	if !known {
		return nil, fmt.Errorf("%s: unknown state %s, which neither begins a drain nor ends one", FromTargetState, Quote(body))
	}
	return []Notice{{
		ID:     name(cause, instance),
		Cause:  cause,
		Kind:   cause.Kind(),
		Source: FromTargetState,
		Reason: leads[cause],
	}}, nil
}

package contract

import (
	"slices"
	"strings"
)

// degradedCauses begin the ids of notices about machines that AWS gives up.
var degradedCauses = []string{"instance-stop", "instance-retirement"}

// Degraded says by a notice's id that its machine is given up by AWS: the instance is
// stopped, to start on another one, or ended, and in an Auto Scaling group it is
// replaced either way. From a reboot or work on network and power it comes back. The
// id begins with the code of the scheduled event.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitoring-instances-status-check_sched.html
func Degraded(id string) bool {
	cause, _, _ := strings.Cut(id, ":")
	return slices.Contains(degradedCauses, cause)
}

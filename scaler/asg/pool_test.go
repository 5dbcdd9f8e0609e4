package asg

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

// What Auto Scaling keeps in a pool follows the group's maximum, or the capacity that is to be prepared,
// less what is desired.
func TestPoolTooLarge(t *testing.T) {
	for _, c := range []struct {
		reason   string
		pool     astypes.WarmPoolConfiguration
		desired  int32
		retained int
		want     bool
	}{
		{"as many as the maximum leaves", astypes.WarmPoolConfiguration{}, 3, 0, false},
		{"one more", astypes.WarmPoolConfiguration{}, 4, 0, true},
		{"one more, of which one is retained", astypes.WarmPoolConfiguration{}, 4, 1, false},
		{"the least", astypes.WarmPoolConfiguration{MinSize: aws.Int32(2)}, 5, 0, false},
		{"more are prepared than the maximum", astypes.WarmPoolConfiguration{MaxGroupPreparedCapacity: aws.Int32(7)}, 5, 0, false},
		{"fewer are", astypes.WarmPoolConfiguration{MaxGroupPreparedCapacity: aws.Int32(4)}, 3, 0, true},
		{"no capacity is named", astypes.WarmPoolConfiguration{MaxGroupPreparedCapacity: aws.Int32(-1)}, 3, 0, false},
		{"it is being deleted", astypes.WarmPoolConfiguration{Status: astypes.WarmPoolStatusPendingDelete}, 3, 0, true},
	} {
		k := &known{raw: &astypes.AutoScalingGroup{MaxSize: aws.Int32(5), DesiredCapacity: &c.desired, WarmPoolConfiguration: &c.pool}}
		for i := range 2 {
			state := astypes.LifecycleStateWarmedStopped
			if i < c.retained {
				state = astypes.LifecycleStateWarmedTerminatingRetained
			}
			k.warm = append(k.warm, astypes.Instance{InstanceId: aws.String(fmt.Sprint("i-", i)), LifecycleState: state})
		}
		if got := k.poolTooLarge(); got != c.want {
			t.Errorf("%s: too large is %v", c.reason, got)
		}
	}
}

package asg

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/google/go-cmp/cmp"
)

// The bounds of --nodes hold within those of the group itself: AWS refuses
// what is outside, so a plan that counts on it never comes true.
func TestBounds(t *testing.T) {
	for _, tc := range []struct {
		flag, group [2]int
		want        string
		faults      int
	}{
		{[2]int{1, 3}, [2]int{0, 5}, "1..3", 0},
		{[2]int{0, 10}, [2]int{0, 5}, "0..5", 1},
		{[2]int{0, 10}, [2]int{2, 5}, "2..5", 2},
		{[2]int{8, 10}, [2]int{2, 5}, "5..5", 2},
		{[2]int{0, 1}, [2]int{2, 5}, "2..2", 2},
	} {
		k := &known{
			raw:   &astypes.AutoScalingGroup{MinSize: aws.Int32(int32(tc.group[0])), MaxSize: aws.Int32(int32(tc.group[1]))},
			named: &Named{Name: "web", Min: tc.flag[0], Max: tc.flag[1]}, hooking: fact{read: true},
		}
		g := k.group("")
		if got := fmt.Sprintf("%d..%d", g.Min, g.Max); got != tc.want || len(g.Faults) != tc.faults {
			t.Errorf("--nodes=%d:%d of a group %d..%d: %s, faults %q", tc.flag[0], tc.flag[1], tc.group[0], tc.group[1], got, g.Faults)
		}
	}
	k := &known{raw: &astypes.AutoScalingGroup{MinSize: aws.Int32(2), MaxSize: aws.Int32(5)}, named: &Named{Name: "web", Min: 0, Max: 10}}
	want := []string{
		"--nodes says min 0, but the Auto Scaling group itself has 2..5: 2 is what holds",
		"--nodes says max 10, but the Auto Scaling group itself has 2..5: 5 is what holds",
	}
	if diff := cmp.Diff(want, k.group("").Faults); diff != "" {
		t.Error(diff)
	}
}

// Hooks that were never read are not "no hooks"; those of before are better
// than none.
func TestHooksUnknown(t *testing.T) {
	k := &known{raw: &astypes.AutoScalingGroup{}, hooking: fact{fault: "denied"}}
	if !k.group("").HooksUnknown {
		t.Error("never read, and known")
	}
	k.hooking = fact{read: true}
	if k.group("").HooksUnknown {
		t.Error("read, and unknown")
	}
}

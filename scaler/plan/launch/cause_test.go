package launch

import (
	"testing"

	"windlass.dev/windlass/pkg/fleet"
)

// Groups share a back-off for the account's limit only where EC2 counts their instances against
// the same one: by kind of instance type and by market. What is not known shares none.
// https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html
func TestSharesQuota(t *testing.T) {
	of := func(spot bool, types ...string) *fleet.Group {
		g := &fleet.Group{Spot: spot}
		for _, one := range types {
			g.NodeTemplates = append(g.NodeTemplates, fleet.NodeTemplate{InstanceType: one})
		}
		return g
	}
	for _, c := range []struct {
		why  string
		a, b *fleet.Group
		want bool
	}{
		{"all types of most letters have one limit", of(false, "m5.large"), of(false, "r7i.xlarge", "t3.micro"), true},
		{"dense storage is of these, DL is not", of(false, "d3.xlarge"), of(false, "c5.large"), true},
		{"DL is not", of(false, "dl1.24xlarge"), of(false, "d3.xlarge"), false},
		{"im is of these, inf is not", of(false, "im4gn.large"), of(false, "i3.large"), true},
		{"inf is not", of(false, "inf2.xlarge"), of(false, "i3.large"), false},
		{"trn is not", of(false, "trn1.2xlarge"), of(false, "t3.large"), false},
		{"mac is not", of(false, "mac2.metal"), of(false, "m5.large"), false},
		{"hpc is not", of(false, "hpc7g.4xlarge"), of(false, "h1.2xlarge"), false},
		{"G and VT have one", of(false, "g4dn.xlarge"), of(false, "vt1.3xlarge"), true},
		{"high memory has one", of(false, "u-6tb1.metal"), of(false, "u7i-12tb.224xlarge"), true},
		{"X is another", of(false, "x2idn.16xlarge"), of(false, "r5.large"), false},
		{"markets are counted apart", of(false, "m5.large"), of(true, "m5.large"), false},
		{"spot is counted together", of(true, "m5.large"), of(true, "c5.large"), true},
		{"of two kinds is of none", of(false, "m5.large", "g4dn.xlarge"), of(false, "m5.large"), false},
		{"nor is it by its last", of(false, "m5.large", "g4dn.xlarge"), of(false, "g4dn.xlarge"), false},
		{"an unheard-of kind is of none", of(false, "q1.large"), of(false, "m5.large"), false},
		{"nor has it one of its own", of(false, "q1.large"), of(false, "q1.large"), false},
		{"no type is known", of(false), of(false), false},
	} {
		if got := sharesQuota(c.a, c.b); got != c.want || sharesQuota(c.b, c.a) != got {
			t.Errorf("%s: %v, want %v either way", c.why, got, c.want)
		}
	}
}

package catalog

import (
	"slices"
	"testing"
)

// The table holds whole and plausible figures, of every family that groups are made of, on both architectures.
func TestTable(t *testing.T) {
	archs := map[string]map[Arch]bool{}
	for _, typ := range All() {
		gib := float64(typ.MemoryMiB) / 1024 / float64(typ.VCPUs)
		if typ.VCPUs < 2 || gib < .25 || gib > 8 || typ.Cores < 1 || typ.VCPUs%typ.Cores != 0 || typ.MaxENIs < 2 || typ.IPv4PerENI < 2 || typ.HourlyUSD <= 0 || typ.NetworkPerformance == "" {
			t.Errorf("%+v", typ)
		}
		class := typ.Name[:1]
		if archs[class] == nil {
			archs[class] = map[Arch]bool{}
		}
		archs[class][typ.Arch] = true
	}
	for _, class := range []string{"m", "c", "r", "t", "g"} {
		if !archs[class][X86] || !archs[class][ARM] {
			t.Errorf("family %s: %v", class, archs[class])
		}
	}
	if n := len(All()); n < 40 {
		t.Errorf("%d types", n)
	}
}

// EKS gives a node (ENIs × (addresses − 1)) + 2 pods: https://github.com/awslabs/amazon-eks-ami/blob/main/nodeadm/internal/kubelet/eni-max-pods.txt
func TestPodsByENI(t *testing.T) {
	for name, want := range map[string]int{"t3.micro": 4, "t3.medium": 17, "m5.large": 29, "m5.xlarge": 58, "m5.4xlarge": 234, "m5.24xlarge": 737, "c7g.large": 29, "g5.12xlarge": 737} {
		typ, ok := Lookup(name)
		if got := typ.MaxENIs*(typ.IPv4PerENI-1) + 2; !ok || got != want {
			t.Errorf("%s: %d pods, want %d", name, got, want)
		}
	}
}

func TestOSMemory(t *testing.T) {
	typ, _ := Lookup("m5.large")
	if got := typ.OSMemoryMiB(DefaultMemoryOverhead); got != 7783 {
		t.Errorf("m5.large reports %d MiB, want 7783 of 8192", got)
	}
}

func TestParseErrors(t *testing.T) {
	good := "m5.large 2 8192 x86_64 Intel 3.1 1 3 10 1x75 1xNVIDIA/T4/16384 burst 0.096 Up to 10 Gigabit"
	types, err := parse("# comment\n\n" + good + "\n")
	if err != nil || len(types) != 1 || types[0].Disks != (Disks{1, 75}) || types[0].GPUs.Name != "T4" || !types[0].Burstable || types[0].NetworkPerformance != "Up to 10 Gigabit" {
		t.Errorf("%+v, %v", types, err)
	}
	for _, bad := range []string{"m5.large 2", "m5.large two 8192 x86_64 Intel 3.1 1 3 10 - - - 0.096 fast", "m5.large 2 8192 x86_64 Intel 3.1 1 3 10 - 1xT4 - 0.096 fast"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if slices.ContainsFunc(All(), func(typ Type) bool { return typ.Family() == "" }) {
		t.Error("a type without a family")
	}
}

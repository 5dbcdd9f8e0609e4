package template

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Figures of nodes as EKS runs them: instance types with the pods, the cpu and
// the memory that their nodes reported.
func TestReserved(t *testing.T) {
	for _, tc := range []struct {
		cores, wantMilli int64
	}{{1, 60}, {2, 70}, {4, 80}, {8, 90}, {16, 110}, {96, 310}} {
		if got := reservedCPU(tc.cores); got != tc.wantMilli {
			t.Errorf("%d cores: reserved %dm, want %dm", tc.cores, got, tc.wantMilli)
		}
	}
	m5large := machine{typeInfo: typeInfo{name: "m5.large", cores: 2, memory: 8 * gibi, interfaces: 3, addresses: 10}, overhead: 0.075}
	_, usable, err := m5large.resources()
	if err != nil {
		t.Error(err)
	}
	for name, want := range map[corev1.ResourceName]string{"cpu": "1930m", "pods": "29"} {
		if q := usable[name]; q.String() != want {
			t.Errorf("%s: %s, want %s", name, q.String(), want)
		}
	}
	// 8192 MiB − 7.5 % − 255 − 11 × 29 − 100.
	if got, want := usable.Memory().Value()/mebi, int64(6903); got != want {
		t.Errorf("memory: %d Mi, want %d Mi", got, want)
	}
	if got, want := usable.StorageEphemeral().Value(), 18*gibi-gibi; got != want {
		t.Errorf("storage: %d, want %d", got, want)
	}
}

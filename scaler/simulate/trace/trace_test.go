package trace

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// drawn prints the pods of a trace: workload, requests, from, to.
func drawn(t Trace) []string {
	var lines []string
	for _, p := range t.Pods {
		w := t.Workloads[p.Workload]
		requests := w.Spec.Containers[0].Resources.Requests
		ends := fmt.Sprint(p.Ends)
		if p.Ends == Never {
			ends = "never"
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %d-%s", w.Name, requests.Cpu(), requests.Memory(), p.Arrive, ends))
	}
	return lines
}

const openb = `name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
old,4000,8192,0,0,,LS,Running,0,172900,0
over,4000,8192,0,0,,LS,Running,0,172800,0
new,1000,1024,0,0,,LS,Running,172860,259300,0
late,1000,1024,0,0,,LS,Running,259200,259300,0
`

// TestOpenb: what lives in the slice belongs to it, from its start on.
func TestOpenb(t *testing.T) {
	got, err := Formats["openb"].Read(strings.NewReader(openb), Slice{From: 2, To: 3, Divide: 4})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"cpu-1000m-memory-2147483648 1 2Gi 0-100", "cpu-250m-memory-268435456 250m 256Mi 60-86500"}
	if diff := cmp.Diff(want, drawn(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRamp: pods that are alive at the start come by and by, by the hash of their first three
// fields, and those that would have ended do not.
func TestRamp(t *testing.T) {
	const ramp = 1000
	share := int64(float64(hashOf("old,4000,8192")%100_000) / 100_000 * ramp)
	for length, want := range map[int64]int{share: 0, share + 1: 1} {
		text := strings.Split(openb, "\n")[0] + fmt.Sprintf("\nold,4000,8192,0,0,,LS,Running,0,%d,0\n", 2*day+length)
		got, err := Formats["openb"].Read(strings.NewReader(text), Slice{From: 2, To: 3, Divide: 1, Ramp: ramp})
		if err != nil || len(got.Pods) != want || want == 1 && got.Pods[0].Arrive != share {
			t.Errorf("one that ends after %d s: %v, %v; want %d pods, at %d", length, drawn(got), err, want, share)
		}
	}
}

const dlrm = `instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time
a,HN,app_0,10,12,1,1,25,25,120.0,120.0,640.0,800.0,8,,,
b,CN,app_1,20,12,1,1,25,25,40.0,120.0,640.0,800.0,8,100,,200
`

// TestDLRM: no creation is before, no deletion is after, and services are sampled whole.
func TestDLRM(t *testing.T) {
	got, err := Formats["dlrm"].Read(strings.NewReader(dlrm), Slice{To: 1, Divide: 20})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"app-0-0 500m 6Gi 0-never", "app-1-1 1 2Gi 100-200"}
	if diff := cmp.Diff(want, drawn(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	sum := 0
	for phase := range uint32(3) {
		part, err := Formats["dlrm"].Read(strings.NewReader(dlrm), Slice{To: 1, Divide: 20, Sample: 3, Phase: phase})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range part.Pods {
			if name := strings.ReplaceAll(part.Workloads[p.Workload].Labels["app"][:5], "-", "_"); hashOf(name)%3 != phase {
				t.Errorf("phase %d has %s", phase, name)
			}
		}
		sum += len(part.Pods)
	}
	if sum != 2 {
		t.Errorf("the phases have %d pods together, want 2", sum)
	}
}

func TestBadTables(t *testing.T) {
	for text, want := range map[string]string{
		"":         "reading the head",
		"a,b\n1,2": "there is no column cpu_milli",
		strings.Replace(openb, "old,4000", "old,many", 1):   `line 2: cpu_milli is "many"`,
		strings.Replace(openb, "0,172900", "yesterday,", 1): `line 2: creation_time is "yesterday"`,
		openb + "short,1\n": "wrong number of fields",
	} {
		_, err := Formats["openb"].Read(strings.NewReader(text), Slice{To: 1, Divide: 1})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestGenerate: a seed determines the time, another one is another time, and there are about
// as many pods as asked for at noon of a working day.
func TestGenerate(t *testing.T) {
	make := func(seed uint64) Trace {
		out, err := Generate(Mix{Seed: seed, Days: 2, Pods: 500})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := make(1)
	if diff := cmp.Diff(drawn(first), drawn(make(1))); diff != "" {
		t.Errorf("the same seed (-first +second):\n%s", diff)
	}
	if cmp.Equal(drawn(first), drawn(make(2))) {
		t.Error("two seeds give the same pods")
	}
	noon, alive := int64(12*3600), 0
	for i, p := range first.Pods {
		if p.Arrive <= noon && noon < p.Ends {
			alive++
		}
		if p.Arrive < 0 || p.Ends <= p.Arrive || i > 0 && p.Arrive < first.Pods[i-1].Arrive {
			t.Fatalf("pod %d comes at %d and ends at %d, after one of %d", i, p.Arrive, p.Ends, first.Pods[max(0, i-1)].Arrive)
		}
	}
	if alive < 250 || alive > 1000 {
		t.Errorf("%d pods at noon, want about 500", alive)
	}
}

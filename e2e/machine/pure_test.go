package machine

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// What a container wrote is put together from all its runs, in the order of time, which
// is not that of their numbers' spelling.
func TestPodLog(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"a/pods/ns_web-0_uid1/main/9.log":  "2026-01-01T00:00:09Z stdout F nine\n",
		"a/pods/ns_web-0_uid1/main/10.log": "2026-01-01T00:00:10Z stdout P te\n2026-01-01T00:00:10Z stdout F n\n",
		"b/pods/ns_web-0_uid2/main/0.log":  "2026-01-01T00:00:11Z stderr F on another machine, with  two blanks\n2026-01-01T00:0",
		"a/pods/ns_web-0_uid1/other/0.log": "2026-01-01T00:00:00Z stdout F of another container\n",
		"a/pods/ns_web-01_uid3/main/0.log": "2026-01-01T00:00:00Z stdout F of another pod\n",
		"a/pods/ms_web-0_uid4/main/0.log":  "2026-01-01T00:00:00Z stdout F of another namespace\n",
	} {
		if err := write(filepath.Join(dir, name), []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readPodLogs(filepath.Join(dir, "*", "pods"), "ns", "web-0", "main")
	if err != nil {
		t.Fatal(err)
	}
	const want = "nine\nten\non another machine, with  two blanks\n"
	if string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A machine has the memory of its type and no swap; all else is the host's.
func TestMemoryInfo(t *testing.T) {
	host := "MemTotal:  24684084 kB\nMemFree:  1 kB\nMemAvailable: 2 kB\nBuffers:  7 kB\nSwapTotal: 9 kB\nSwapFree: 9 kB\n"
	want := "MemTotal: 4194304 kB\nMemFree: 4194304 kB\nMemAvailable: 4194304 kB\nBuffers:  7 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"
	if got := memoryInfo(host, 4096); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A machine has as many processors as its type, if the host does, whichever those are.
func TestProcessors(t *testing.T) {
	for _, c := range []struct {
		host  string
		count int
		want  string // "": an error
	}{
		{"0\n", 1, "0\n"},
		{"0-1\n", 1, "0\n"},
		{"0-1\n", 2, "0,1\n"},
		{"0,2-4,8-11\n", 5, "0,2,3,4,8\n"},
		{"0-1\n", 3, ""},
		{"0-1\n", 0, ""},
		{"\n", 1, ""},
		{"0-\n", 1, ""},
	} {
		got, err := firstProcessors(c.host, c.count)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%d of %q: %q (%v), want %q", c.count, c.host, got, err, c.want)
		}
	}
}

// An EKS image reserves the same on machines with as many processors.
func TestReserved(t *testing.T) {
	for cores, want := range map[int]string{1: "60m", 2: "70m", 4: "80m", 8: "90m", 96: "310m"} {
		kube, _ := reserved(cores, 17)
		if kube["cpu"] != want || kube["memory"] != "442Mi" {
			t.Errorf("%d processors and 17 pods: %v, want %s and 442Mi", cores, kube, want)
		}
	}
}

// Numbers of machines, and with them addresses of pods, come again as late as they can.
func TestNumbers(t *testing.T) {
	y := &Yard{machines: map[string]*machine{}}
	add := func(id string) int {
		m, err := y.add(Spec{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		return m.number
	}
	first := add("first")
	for n := range 300 {
		id := fmt.Sprint(n)
		if number := add(id); number == first || number < 1 || number > mostMachines {
			t.Fatalf("machine %d has number %d", n, number)
		}
		delete(y.machines, id)
	}
	if again := add("first"); again != first {
		t.Errorf("the same machine has number %d, and then %d", first, again)
	}
	for n := range mostMachines - 1 {
		add(fmt.Sprint("stays", n))
	}
	if _, err := y.add(Spec{ID: "too many"}); err == nil {
		t.Errorf("there are more than %d machines", mostMachines)
	}
}

// A machine that is discarded while somebody switches it on does not run on unknown.
func TestDiscardedMeanwhile(t *testing.T) {
	y := &Yard{Config: Config{Dir: t.TempDir()}, machines: map[string]*machine{}}
	m, err := y.add(Spec{ID: "i-1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := y.Discard("i-1"); err != nil {
		t.Fatal(err)
	}
	if err := m.powerOn(t.Context(), Spec{ID: "i-1"}); err == nil || !strings.Contains(err.Error(), "discarded") {
		t.Errorf("switching on a machine that was discarded: %v", err)
	}
}

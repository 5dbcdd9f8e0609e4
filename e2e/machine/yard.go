package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// Config is what machines are made of.
type Config struct {
	// Dir is a folder of the yard's own: DIR/ID has a machine's disk, the logs of its
	// programs and those of its pods.
	Dir string
	// Boot is the program of e2e/machine/boot, Kubelet and KubeProxy those that
	// e2e/controlplane builds.
	Boot, Kubelet, KubeProxy string
	// Server is the URL of the API server, CA and CAKey the files of its authority,
	// which signs what machines present.
	Server, CA, CAKey string
	// Images are archives of what pods may run, the sandbox of pods among them
	// (pauseImage). There is no registry.
	Images []string
	Hub    *Hub
	Log    *slog.Logger
}

// Yard is where machines stand. Its methods may be called at once, also for one machine:
// a machine that is being switched on can be switched off.
type Yard struct {
	Config
	authority *authority
	cgroups   cgroups
	lock      io.Closer

	mu       sync.Mutex
	machines map[string]*machine // by ID, until they are discarded
	number   int                 // the last that was given
	closed   bool

	logs *podLogs
}

// Open opens a yard without machines. It removes what runs left behind that have not
// closed theirs and live no more, and raises the host's limits where machines need more.
func Open(ctx context.Context, c Config) (*Yard, error) {
	if c.Hub == nil {
		return nil, errors.New("opening the yard of machines: it has no Hub to connect them")
	}
	if err := removeLeftovers(); err != nil {
		return nil, fmt.Errorf("removing what earlier runs left: %w", err)
	}
	if err := c.raiseLimits(); err != nil {
		return nil, err
	}
	authority, err := loadAuthority(c.CA, c.CAKey)
	if err != nil {
		return nil, err
	}
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of machines: %w", err)
	}
	run, lock, err := register(runKind, c.Dir)
	if err != nil {
		return nil, fmt.Errorf("registering this run: %w", err)
	}
	y := &Yard{Config: c, authority: authority, cgroups: cgroups{run: run}, lock: lock, machines: map[string]*machine{}}
	if y.logs, err = newPodLogs(c.Log); err != nil {
		return nil, errors.Join(err, y.Close())
	}
	if err := y.makeImage(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("making the image of machines: %w", err), y.Close())
	}
	return y, nil
}

// PowerOn boots a machine, which keeps the disk that it has from an earlier boot, and
// returns when its programs were started. Its Node is Ready some seconds later.
func (y *Yard) PowerOn(ctx context.Context, spec Spec) error {
	m, err := y.add(spec)
	if err != nil {
		return fmt.Errorf("switching on machine %s: %w", spec.ID, err)
	}
	if err := m.powerOn(ctx, spec); err != nil {
		return fmt.Errorf("switching on machine %s: %w", spec.ID, err)
	}
	return nil
}

// PowerOff takes the power from a machine: everything on it ends at once, and its disk
// stays. It is no error if the machine is off.
func (y *Yard) PowerOff(id string) error {
	m, err := y.find(id)
	if err != nil {
		return err
	}
	if err := m.powerOff(); err != nil {
		return fmt.Errorf("switching off machine %s: %w", id, err)
	}
	return nil
}

// ErrUnknown is the error about a machine that was never switched on, or was discarded.
var ErrUnknown = errors.New("there is no machine")

// Discard takes a machine away, with its disk; what its pods have written stays readable.
func (y *Yard) Discard(id string) error {
	m, err := y.find(id)
	if err != nil {
		return err
	}
	if err := m.discard(); err != nil {
		return fmt.Errorf("discarding machine %s: %w", id, err)
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	delete(y.machines, id)
	return nil
}

// StopKubelet kills a machine's kubelet, which stays away. Its pods run on.
func (y *Yard) StopKubelet(id string) error { return y.command(id, "kill "+kubeletName) }

// StartKubelet starts a kubelet that was stopped, or that a fault kept from starting.
func (y *Yard) StartKubelet(id string) error { return y.command(id, "start "+kubeletName) }

func (y *Yard) command(id, command string) error {
	m, err := y.find(id)
	if err != nil {
		return err
	}
	if err := m.command(context.Background(), command); err != nil {
		return fmt.Errorf("machine %s: %s: %w", id, command, err)
	}
	return nil
}

// Signal sends a signal to the main process of a pod's container.
func (y *Yard) Signal(ctx context.Context, podUID, container string, signal syscall.Signal) error {
	m, _, err := y.host(podUID)
	if err != nil {
		return err
	}
	if err := m.command(ctx, fmt.Sprintf("signal %s %s %d", podUID, container, int(signal))); err != nil {
		return fmt.Errorf("signalling container %s on machine %s: %w", container, m.id, err)
	}
	return nil
}

// Usage reads what a pod uses.
func (y *Yard) Usage(podUID string) (Usage, error) {
	_, group, err := y.host(podUID)
	if err != nil {
		return Usage{}, err
	}
	return y.cgroups.usage(group)
}

// PodLog returns everything that all runs of a container wrote, also of a pod or a
// machine that is gone.
func (y *Yard) PodLog(namespace, pod, container string) ([]byte, error) {
	return readPodLogs(filepath.Join(y.Dir, "*", podLogsFolder), namespace, pod, container)
}

// Close discards all machines. The logs of their programs and pods stay in Dir.
func (y *Yard) Close() error {
	y.mu.Lock()
	y.closed = true
	y.mu.Unlock()
	var errs []error
	for _, m := range y.all() {
		errs = append(errs, y.Discard(m.id))
	}
	if y.logs != nil {
		errs = append(errs, y.logs.close())
	}
	errs = append(errs, y.cgroups.remove(""), os.RemoveAll(filepath.Join(y.Dir, imageName, diskFolder)))
	if err := errors.Join(errs...); err != nil {
		return err // and the run stays registered, so that the next one cleans up
	}
	return y.lock.Close()
}

// add returns a machine, which is a new one if there is none of that name.
func (y *Yard) add(spec Spec) (*machine, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.closed {
		return nil, errors.New("the yard is closed")
	}
	if m := y.machines[spec.ID]; m != nil {
		return m, nil
	}
	number, err := y.nextNumber()
	if err != nil {
		return nil, err
	}
	m := &machine{yard: y, id: spec.ID, dir: filepath.Join(y.Dir, spec.ID), pods: podCIDR(number), number: number}
	y.machines[spec.ID] = m
	return m, nil
}

// nextNumber returns the number that has been free for longest, so that no address of
// a pod comes again soon; y.mu is held.
func (y *Yard) nextNumber() (int, error) {
	taken := map[int]bool{}
	for _, m := range y.machines {
		taken[m.number] = true
	}
	for range mostMachines {
		y.number = y.number%mostMachines + 1
		if !taken[y.number] {
			return y.number, nil
		}
	}
	return 0, fmt.Errorf("there are %d machines already, one for each range of addresses for pods", mostMachines)
}

func (y *Yard) find(id string) (*machine, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if m := y.machines[id]; m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("%w %s", ErrUnknown, id)
}

// all returns the machines in the order of their numbers.
func (y *Yard) all() []*machine {
	y.mu.Lock()
	defer y.mu.Unlock()
	var all []*machine
	for _, m := range y.machines {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *machine) int { return a.number - b.number })
	return all
}

// host finds the machine that a pod runs on and the pod's cgroup.
func (y *Yard) host(podUID string) (m *machine, group string, err error) {
	for _, m := range y.all() {
		if group, found := y.cgroups.pod(m.id, podUID); found {
			return m, group, nil
		}
	}
	return nil, "", fmt.Errorf("no pod with uid %s runs on any machine", podUID)
}

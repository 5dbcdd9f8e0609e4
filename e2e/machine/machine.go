package machine

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// Folders of a machine.
const (
	diskFolder    = "disk"
	logsFolder    = "logs"
	podLogsFolder = "pods"

	podLogsOnDisk = "log/pods"
)

// machine is one of the yard's, on or off.
type machine struct {
	yard   *Yard
	id     string
	dir    string
	number int
	pods   netip.Prefix

	mu   sync.Mutex // held while the power is switched
	now  *power     // nil while it is off
	gone bool       // it was discarded
	size int64      // of its memory in bytes, since it was first switched on
}

// power is a machine's life from PowerOn to PowerOff.
type power struct {
	cmd     *exec.Cmd
	orders  io.WriteCloser
	answers chan Answer   // closed when there will be no more
	ended   chan struct{} // closed when the kernel has ended everything on it

	talking sync.Mutex // one order and its answer at a time
	owed    int        // answers that nobody waited for
}

func (m *machine) path(parts ...string) string {
	return filepath.Join(append([]string{m.dir}, parts...)...)
}

// powerOn starts the machine's init, connects it and has it boot. If that fails, the
// machine is off.
func (m *machine) powerOn(ctx context.Context, spec Spec) error {
	now, order, err := m.plugIn(ctx, spec)
	if err != nil {
		return err
	}
	if err := now.order(ctx, order); err != nil {
		return errors.Join(err, m.end(now))
	}
	return nil
}

// plugIn is the part of powerOn during which the machine cannot be switched off.
func (m *machine) plugIn(ctx context.Context, spec Spec) (now *power, order Order, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.gone:
		return nil, order, errors.New("it was discarded meanwhile")
	case m.now != nil:
		return nil, order, errors.New("it is on already")
	}
	m.size = int64(spec.MemoryMiB) << 20
	if order, err = m.order(spec); err != nil {
		return nil, order, err
	}
	if err := m.connect(ctx, spec); err != nil {
		return nil, order, errors.Join(err, m.disconnect())
	}
	return m.now, order, nil
}

// connect starts the init and gives it all that is outside of it; m.mu is held.
func (m *machine) connect(ctx context.Context, spec Spec) error {
	if err := m.yard.logs.keep(m.path(diskFolder, podLogsOnDisk), m.path(podLogsFolder)); err != nil {
		return err
	}
	if err := m.yard.cgroups.make(m.id); err != nil {
		return err
	}
	var err error
	if m.now, err = m.startInit(); err != nil {
		return err
	}
	return m.yard.Hub.Plug(ctx, spec.uplink(m.pods, m.now.cmd.Process.Pid))
}

func (m *machine) startInit() (*power, error) {
	log, err := os.OpenFile(m.path(logsFolder, "boot.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own copy
	cmd := exec.Command(m.yard.Boot)
	cmd.Dir = m.dir
	// Nothing of the test's own environment is the machine's.
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	cmd.Stderr = log
	cmd.SysProcAttr = initAttributes()
	orders, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Not StdoutPipe: waiting for the process would close it under the reader.
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = in
	err = StartLasting(cmd)
	in.Close() // the child has its own copy
	if err != nil {
		out.Close()
		return nil, fmt.Errorf("starting its init: %w", err)
	}
	now := &power{cmd: cmd, orders: orders, answers: make(chan Answer, 1), ended: make(chan struct{})}
	go now.listen(out)
	go func() {
		_ = cmd.Wait() // it is killed, always
		close(now.ended)
	}()
	return now, nil
}

// listen passes the init's answers on.
func (p *power) listen(out io.ReadCloser) {
	defer out.Close()
	defer close(p.answers)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var a Answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			a.Error = fmt.Sprintf("its init said %q", lines.Text())
		}
		p.answers <- a
	}
}

// order has the init boot.
func (p *power) order(ctx context.Context, o Order) error {
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return p.say(ctx, string(line))
}

// say sends the init a line and waits for its answer.
func (p *power) say(ctx context.Context, line string) error {
	p.talking.Lock()
	defer p.talking.Unlock()
	if _, err := io.WriteString(p.orders, line+"\n"); err != nil {
		return fmt.Errorf("it is off: %w", err)
	}
	for p.owed++; ; {
		select {
		case a, open := <-p.answers:
			if !open {
				return errors.New("it was switched off meanwhile, or its init has failed and said why in boot.log")
			}
			if p.owed--; p.owed > 0 {
				continue // to what was said before
			}
			return a.err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (a Answer) err() error {
	if a.Error != "" {
		return errors.New(a.Error)
	}
	return nil
}

// kill kills the init. When that has been waited for, the kernel has ended every process of
// the machine and dropped its mounts.
func (p *power) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.ended
	return nil
}

func (m *machine) command(ctx context.Context, line string) error {
	m.mu.Lock()
	now := m.now
	m.mu.Unlock()
	if now == nil {
		return errors.New("it is off")
	}
	return now.say(ctx, line)
}

// memory is what the machine has, in bytes.
func (m *machine) memory() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.size
}

func (m *machine) powerOff() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.switchOff()
}

// switchOff is powerOff for one who holds m.mu.
func (m *machine) switchOff() error {
	if m.now == nil {
		return nil
	}
	return m.disconnect()
}

// end is powerOff, unless the machine has been switched off, and perhaps on, since.
func (m *machine) end(now *power) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now != now {
		return nil
	}
	return m.disconnect()
}

// disconnect undoes connect, or what of it was done; m.mu is held.
func (m *machine) disconnect() error {
	if m.now != nil {
		if err := m.now.kill(); err != nil {
			return err
		}
		m.now = nil
	}
	return errors.Join(m.yard.Hub.Unplug(m.id), m.yard.cgroups.remove(m.id), m.yard.logs.leave(m.path(diskFolder, podLogsOnDisk)))
}

// discard also removes the disk, and nobody switches the machine on again.
func (m *machine) discard() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone = true
	if err := m.switchOff(); err != nil {
		return err
	}
	return os.RemoveAll(m.path(diskFolder))
}

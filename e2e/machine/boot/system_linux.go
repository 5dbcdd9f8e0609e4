package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"windlass.dev/windlass/e2e/machine"
)

// restartAfter is what the units of kubelet and containerd say on an EKS image
// (RestartSec), and kubeadm's kubelet has 10 s.
const restartAfter = time.Second

// system runs the machine's programs, as systemd would.
type system struct{ services map[string]*service }

func newSystem(o machine.Order) *system {
	s := &system{services: map[string]*service{}}
	for _, p := range append([]machine.Program{o.Containerd}, o.Programs...) {
		s.services[p.Name] = &service{program: p}
	}
	return s
}

// do carries out a command; machine.Order lists them.
func (s *system) do(command string) error {
	words := strings.Fields(command)
	switch {
	case len(words) == 2 && words[0] == "start":
		return s.start(words[1])
	case len(words) == 2 && words[0] == "kill":
		return s.kill(words[1])
	case len(words) == 4 && words[0] == "signal":
		number, err := strconv.Atoi(words[3])
		if err != nil {
			return fmt.Errorf("%q is no signal: %w", words[3], err)
		}
		return signalContainer(words[1], words[2], syscall.Signal(number))
	}
	return fmt.Errorf("unknown command %q", command)
}

func (s *system) start(name string) error {
	p, found := s.services[name]
	if !found {
		return fmt.Errorf("this machine has no program %q", name)
	}
	if err := p.start(); err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	return nil
}

func (s *system) kill(name string) error {
	p, found := s.services[name]
	if !found {
		return fmt.Errorf("this machine has no program %q", name)
	}
	if err := p.kill(); err != nil {
		return fmt.Errorf("killing %s: %w", name, err)
	}
	return nil
}

// service is one program that is kept running while it is wanted.
type service struct {
	program machine.Program

	mu     sync.Mutex
	wanted bool
	now    *life // nil before the first start
}

// life is one run of a program.
type life struct {
	process *os.Process
	ended   chan struct{}
}

// start makes the program run until kill.
func (s *service) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted {
		return errors.New("it runs already")
	}
	if err := s.launch(); err != nil {
		return err
	}
	s.wanted = true
	return nil
}

// launch starts a life; s.mu is held.
func (s *service) launch() error {
	log, err := os.OpenFile(s.program.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // the program has its own copy
	cmd := exec.Command(s.program.Path, s.program.Args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	now := &life{process: cmd.Process, ended: make(chan struct{})}
	s.now = now
	go func() {
		err := cmd.Wait()
		close(now.ended)
		s.restart(now, err)
	}()
	return nil
}

// restart follows a life that ended with another, if nobody has ended it. Like systemd, it
// tries until one begins.
func (s *service) restart(after *life, how error) {
	if !s.wants(after) {
		return
	}
	fmt.Fprintf(os.Stderr, "boot: %s ended by itself: %v\n", s.program.Name, how)
	for settled := false; !settled; {
		time.Sleep(restartAfter)
		var err error
		if settled, err = s.follow(after); err != nil {
			fmt.Fprintf(os.Stderr, "boot: starting %s again: %v\n", s.program.Name, err)
		}
	}
}

func (s *service) wants(l *life) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted && s.now == l
}

// follow starts the life after one that ended, unless none is wanted any more. settled is
// false if there is still one to be started.
func (s *service) follow(after *life) (settled bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.wanted || s.now != after {
		return true, nil
	}
	err = s.launch()
	return err == nil, err
}

// kill ends the program at once, and it stays away.
func (s *service) kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.wanted {
		return errors.New("it does not run")
	}
	s.wanted = false
	if err := s.now.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-s.now.ended
	return nil
}

package fakeaws

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakeaws/metadata"
)

// Server is a running fake AWS.
type Server struct {
	cfg  Config
	http *http.Server
	addr string
	log  *slog.Logger

	calls  *callLog
	faults *faults

	mu    sync.Mutex // around the cloud, the metadata services and the queue of deliveries
	cloud *cloud.Cloud
	imds  map[string]*metadata.Service
	hosts int

	observers []func(Instance)
	outbox    []delivery
	filled    chan struct{} // has room for one: the outbox is not empty
	wake      chan struct{} // has room for one: the next time-out may be another
	done      chan struct{}
	running   sync.WaitGroup
}

// delivery is a snapshot on its way to observers.
type delivery struct {
	to       []func(Instance)
	instance Instance
}

// Start starts a server. Close ends it.
func Start(cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	s := &Server{
		cfg: cfg, log: cfg.Log, calls: newCallLog(cfg.CallLog), faults: newFaults(), imds: map[string]*metadata.Service{},
		filled: make(chan struct{}, 1), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	l, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("listening for AWS calls: %w", err)
	}
	s.addr = l.Addr().String()
	if err := s.makeCloud(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	s.running.Go(func() { _ = s.http.Serve(l) }) // It ends when the server is closed.
	s.running.Go(s.keepTime)
	s.running.Go(s.deliver)
	return s, nil
}

func (s *Server) makeCloud() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := cloud.New(s.cfg.Spec, time.Now(), s.openIMDS)
	if err != nil {
		return fmt.Errorf("making the cloud: %w", errors.Join(err, s.closeIMDS()))
	}
	s.cloud = c
	s.flush()
	return nil
}

// URL is the endpoint of all AWS services.
func (s *Server) URL() string { return "http://" + s.addr }

// ControlURL is where commands are posted, without a slash at its end.
func (s *Server) ControlURL() string { return s.URL() + controlPath }

// Close ends the server, its metadata services and its goroutines.
func (s *Server) Close() error {
	close(s.done)
	err := s.http.Close()
	s.mu.Lock()
	err = errors.Join(err, s.closeIMDS())
	s.mu.Unlock()
	s.running.Wait()
	return err
}

// With runs f while nothing else looks at the cloud, and then delivers what has changed. f must not keep the cloud.
func (s *Server) With(f func(c *cloud.Cloud, now time.Time) error) error {
	s.mu.Lock()
	err := f(s.cloud, time.Now())
	s.flush()
	s.mu.Unlock()
	signal(s.wake)
	return err
}

// Sleep waits for d, unless the caller goes away or the server ends.
func (s *Server) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.done:
		return net.ErrClosed
	}
}

// keepTime lets the cloud do what is due.
func (s *Server) keepTime() {
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	for {
		s.mu.Lock()
		s.cloud.Advance(time.Now())
		s.flush()
		next, ok := s.cloud.Next()
		s.mu.Unlock()
		wait := time.Hour
		if ok {
			wait = time.Until(next)
		}
		t.Reset(wait)
		select {
		case <-t.C:
		case <-s.wake:
		case <-s.done:
			return
		}
	}
}

// flush queues what has changed in the cloud. The caller holds the lock.
func (s *Server) flush() {
	for _, i := range s.cloud.TakeEvents() {
		if i.Gone {
			s.dropIMDS(i.ID)
		}
		s.outbox = append(s.outbox, delivery{to: s.observers, instance: i})
	}
	if len(s.outbox) > 0 {
		signal(s.filled)
	}
}

// OnInstance lets f know of every change of an instance, in order: its lifecycle state, its operating system coming up or ending, its health, and at last
// that it is gone. f first learns of all that are there already. It is called by one goroutine and may call the server.
func (s *Server) OnInstance(f func(Instance)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.cloud.Instances() {
		if !i.Gone {
			s.outbox = append(s.outbox, delivery{to: []func(Instance){f}, instance: i})
		}
	}
	s.observers = append(s.observers[:len(s.observers):len(s.observers)], f)
	signal(s.filled)
}

// deliver hands the snapshots to the observers.
func (s *Server) deliver() {
	for {
		select {
		case <-s.filled:
		case <-s.done:
			return
		}
		s.mu.Lock()
		batch := s.outbox
		s.outbox = nil
		s.mu.Unlock()
		for _, d := range batch {
			s.log.Debug("instance changed", "instance", d.instance.ID, "state", d.instance.LifecycleState, "os", d.instance.OS, "gone", d.instance.Gone)
			for _, f := range d.to {
				f(d.instance)
			}
		}
	}
}

// signal sets a flag that a goroutine waits for.
func signal(flag chan<- struct{}) {
	select {
	case flag <- struct{}{}:
	default:
	}
}

const (
	hostsPerIMDSNet = 250
	imdsTries       = 20
)

// openIMDS starts the metadata service of a new instance and answers its address. The caller holds the lock.
func (s *Server) openIMDS(id string) string {
	if s.cfg.NoIMDS {
		return ""
	}
	view := func() (metadata.View, bool) { return s.metadataOf(id) }
	note := func(r metadata.Request) { s.calls.add(imdsCall(id, r)) }
	for range imdsTries {
		s.hosts++
		addr := fmt.Sprintf("127.%d.%d.%d:%d", s.cfg.IMDSNet, s.hosts/hostsPerIMDSNet%256, s.hosts%hostsPerIMDSNet+1, s.cfg.IMDSPort)
		service, err := metadata.Listen(addr, metadata.On, view, note)
		if err == nil {
			s.imds[id] = service
			return service.Addr()
		}
		s.log.Debug("address of a metadata service is taken", "address", addr, "error", err)
	}
	s.log.Error("no address for a metadata service", "instance", id)
	return ""
}

func (s *Server) dropIMDS(id string) {
	service := s.imds[id]
	if service == nil {
		return
	}
	delete(s.imds, id)
	if err := service.Close(); err != nil {
		s.log.Error("closing a metadata service", "instance", id, "error", err)
	}
}

func (s *Server) closeIMDS() error {
	var errs []error
	for id, service := range s.imds {
		errs = append(errs, service.Close())
		delete(s.imds, id)
	}
	return errors.Join(errs...)
}

// metadataOf is what the metadata service of an instance shows; false while its machine is off.
func (s *Server) metadataOf(id string) (metadata.View, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cloud.Advance(time.Now())
	s.flush()
	i, notices, ok := s.cloud.Metadata(id)
	return metadata.View{Instance: i, Notices: notices, Region: s.cloud.Region(), Account: s.cloud.Account()}, ok && i.OS != OSOff
}

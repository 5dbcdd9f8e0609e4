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
	"windlass.dev/windlass/e2e/fakeaws/live"
	"windlass.dev/windlass/e2e/fakeaws/metadata"
)

// Server is a running fake AWS.
type Server struct {
	cfg    Config
	http   *http.Server
	addr   string
	log    *slog.Logger
	calls  *callLog
	faults *faults
	rights *rights
	live   *live.Cloud
	served sync.WaitGroup

	mu    sync.Mutex // around the metadata services
	imds  map[string]*metadata.Service
	hosts int
}

// Start starts a server. Close ends it.
func Start(cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	s := &Server{cfg: cfg, log: cfg.Log, calls: newCallLog(cfg.CallLog), faults: newFaults(), rights: newRights(), imds: map[string]*metadata.Service{}}
	l, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("listening for AWS calls: %w", err)
	}
	s.addr = l.Addr().String()
	if s.live, err = live.Start(cfg.Spec, s.openIMDS, s.dropIMDS); err != nil {
		return nil, fmt.Errorf("making the cloud: %w", errors.Join(err, s.closeIMDS(), l.Close()))
	}
	s.lag()
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	s.served.Go(func() { _ = s.http.Serve(l) }) // It ends when the server is closed.
	return s, nil
}

// URL is the endpoint of all AWS services.
func (s *Server) URL() string { return "http://" + s.addr }

// ControlURL is where commands are posted, without a slash at its end.
func (s *Server) ControlURL() string { return s.URL() + controlPath }

// Close ends the server, its metadata services and its goroutines.
func (s *Server) Close() error {
	err := s.http.Close()
	s.live.Close()
	s.served.Wait()
	return errors.Join(err, s.closeIMDS())
}

// With runs f on the cloud while nothing else looks at it, and then lets observers know what has changed. f must not keep the cloud.
func (s *Server) With(f func(c *cloud.Cloud, now time.Time) error) error { return s.live.With(f) }

// OnInstance lets f know of every change of an instance, in order: its lifecycle state, its operating system coming up or ending, its health, and at last
// that it is gone. f first learns of all that are there already. It is called by one goroutine and may call the server.
func (s *Server) OnInstance(f func(Instance)) { s.live.OnInstance(f) }

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
	case <-s.live.Done():
		return net.ErrClosed
	}
}

const (
	hostsPerIMDSNet = 250
	imdsTries       = 20
)

// openIMDS starts the metadata service of a new instance and answers its address.
func (s *Server) openIMDS(id string) string {
	if s.cfg.NoIMDS {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
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
	s.mu.Lock()
	defer s.mu.Unlock()
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
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for id, service := range s.imds {
		errs = append(errs, service.Close())
		delete(s.imds, id)
	}
	return errors.Join(errs...)
}

// metadataOf is what the metadata service of an instance shows; false while its machine is off.
func (s *Server) metadataOf(id string) (view metadata.View, runs bool) {
	_ = s.With(func(c *cloud.Cloud, _ time.Time) error { // It never fails.
		i, notices, ok := c.Metadata(id)
		view = metadata.View{Instance: i, Notices: notices, Region: c.Region(), Account: c.Account()}
		runs = ok && i.OS != OSOff
		return nil
	})
	return view, runs
}

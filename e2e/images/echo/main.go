// Echo is a server as a careful owner of one writes it: it answers each request
// with the name of its pod, says at SIGTERM that it is not ready any more, goes
// on serving until everybody has heard of that, and then ends without cutting
// off an answer. What fails with it is not its own fault.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

type config struct {
	address string
	// drain is how long it goes on serving after it was told to end.
	drain time.Duration
	// takes is how long each answer takes.
	takes time.Duration
	// name is what it answers.
	name string
}

func main() {
	hostname, _ := os.Hostname() // a pod's is its name
	c := config{name: hostname}
	flag.StringVar(&c.address, "address", ":8080", "where to listen")
	flag.DurationVar(&c.drain, "drain", 5*time.Second, "how long to go on serving after SIGTERM; shorter than the pod's grace period")
	flag.DurationVar(&c.takes, "takes", 20*time.Millisecond, "how long each answer takes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, c config) error {
	listener, err := net.Listen("tcp", c.address)
	if err != nil {
		return err
	}
	fmt.Printf("%s serves on %s\n", c.name, listener.Addr())
	return serve(ctx, c, listener)
}

// serve answers until ctx ends, then for c.drain longer, and returns when the
// last answer is out.
func serve(ctx context.Context, c config, listener net.Listener) error {
	var leaving atomic.Bool
	server := &http.Server{Handler: handler(c, &leaving)}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	leaving.Store(true)
	fmt.Printf("%s leaves in %s\n", c.name, c.drain)
	select {
	case err := <-failed:
		return err
	case <-time.After(c.drain):
	}
	// The kubelet's SIGKILL bounds this.
	return server.Shutdown(context.Background())
}

// handler answers /ready with whether the pod wants requests, and everything
// else with its name. Who keeps a connection is asked to give it up once the
// pod leaves; it is not closed under a request that is on its way.
func handler(c config, leaving *atomic.Bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/ready", func(w http.ResponseWriter, _ *http.Request) {
		if leaving.Load() {
			http.Error(w, c.name+" leaves", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, c.name)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(c.takes)
		if leaving.Load() {
			w.Header().Set("Connection", "close")
		}
		fmt.Fprintln(w, c.name)
	})
	return mux
}

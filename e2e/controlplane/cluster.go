package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

//go:embed stages.yaml
var stages []byte

// healthEvery is the pace of asking a starting program whether it is ready.
const healthEvery = 25 * time.Millisecond

// options are the flags of "up".
type options struct {
	dir             string
	address         netip.Addr // the zero value: loopback, for clients of this machine alone
	featureGates    string
	schedulerConfig string
	audit           bool
	keepLogs        bool
	without         []string
	readyTimeout    time.Duration
	renewDeadline   time.Duration
	args            map[string][]string // by component
}

func parseOptions(arguments []string) (options, error) {
	o := options{args: map[string][]string{}}
	f := flag.NewFlagSet("up", flag.ContinueOnError)
	f.StringVar(&o.dir, "dir", "", "folder for data, keys, kubeconfig and logs; made if it is not there, emptied of what was made in it at the end")
	f.Func("address", "IPv4 address of this machine, not a loopback one, where the API server listens in place of 127.0.0.1, so that nodes and their pods reach it, too", func(s string) (err error) {
		o.address, err = parseAddress(s)
		return err
	})
	f.StringVar(&o.featureGates, "feature-gates", "", "feature gates for API server, controller manager and scheduler, as name=bool,...")
	f.StringVar(&o.schedulerConfig, "scheduler-config", "", "file whose lines are appended to the scheduler's configuration (profiles, extenders, ...)")
	f.BoolVar(&o.audit, "audit", false, "write DIR/logs/audit.log: who changed nodes, created, evicted and deleted pods")
	f.BoolVar(&o.keepLogs, "keep-logs", false, "leave DIR/logs behind at the end")
	f.DurationVar(&o.readyTimeout, "ready-timeout", 2*time.Minute, "how long the whole may take to get ready")
	f.DurationVar(&o.renewDeadline, "renew-deadline", 10*time.Second, "how long controller manager and scheduler outlive an API server that is away: as the leaders they are in production, by default; a longer outage starts them anew")
	f.Func("without", "leave a component out (kwok, kube-scheduler, kube-controller-manager); may be repeated", func(name string) error {
		if !slices.Contains([]string{"kwok", "kube-scheduler", "kube-controller-manager"}, name) {
			return fmt.Errorf("%q cannot be left out", name)
		}
		o.without = append(o.without, name)
		return nil
	})
	f.Func("arg", "one more flag for a component, as component=--flag=value; may be repeated", func(s string) error {
		name, arg, found := strings.Cut(s, "=")
		if !found || !slices.Contains(planeNames, name) {
			return errors.New("want component=--flag=value")
		}
		o.args[name] = append(o.args[name], arg)
		return nil
	})
	if err := f.Parse(arguments); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.dir == "" {
		return o, errors.New("--dir is required")
	}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return o, fmt.Errorf("resolving --dir: %w", err)
	}
	o.dir = dir
	return o, nil
}

// parseAddress refuses what the kubernetes Service cannot lead to.
func parseAddress(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return a, err
	}
	if !a.Is4() || a.IsLoopback() || a.IsUnspecified() {
		return a, errors.New("want an IPv4 address that others can reach")
	}
	return a, nil
}

// apiServerHost is where the API server listens. Everything else listens on loopback.
func (o options) apiServerHost() string {
	if o.address.IsValid() {
		return o.address.String()
	}
	return loopback
}

// simulated reports whether nodes are kwok's.
func (o options) simulated() bool { return !slices.Contains(o.without, "kwok") }

// ready is the one line on stdout that says that the cluster can be used.
type ready struct {
	Ready      bool           `json:"ready"`
	Kubeconfig string         `json:"kubeconfig"` // of an administrator
	Server     string         `json:"server"`     // URL of the API server
	CA         string         `json:"ca"`         // file with the authority's certificate
	CAKey      string         `json:"caKey"`      // file with its key, to sign what nodes present
	Kubectl    string         `json:"kubectl"`    // path of the program
	Logs       string         `json:"logs"`       // folder, one file per component
	PIDs       map[string]int `json:"pids"`       // by component
	Seconds    float64        `json:"seconds"`    // from start to ready, without the build
}

// cluster is a control plane that runs, or is about to.
type cluster struct {
	options
	program    func(name string) string
	components []component
	client     *http.Client
	server     string
	crashed    chan error     // first unasked end of a component
	claims     []net.Listener // to the components' ports

	mu      sync.Mutex
	running map[string]*process
	away    time.Time // when the API server was last seen to be away: ended, or not ready yet
}

func runUp(ctx context.Context, arguments []string) error {
	o, err := parseOptions(arguments)
	if err != nil {
		return err
	}
	// The parent holds the other end of stdin; when it is gone, so is our use.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	commands := readCommands(os.Stdin, func() { cancel(errParentGone) })

	b, err := newBuilder(ctx, os.Stderr)
	if err != nil {
		return err
	}
	if err := b.build(ctx, defaultPrograms); err != nil {
		return err
	}
	c, release, err := prepare(o, b.path)
	if err != nil {
		return err
	}
	defer release()
	began := time.Now()
	if err := c.start(ctx); err != nil {
		c.end()
		if ended(ctx) {
			c.remove()
			return nil
		}
		return err // with the logs left for the reader
	}
	defer c.remove()
	defer c.end()
	if err := json.NewEncoder(os.Stdout).Encode(c.ready(began)); err != nil {
		return fmt.Errorf("saying that the cluster is ready: %w", err)
	}
	return c.obey(ctx, commands, os.Stdout)
}

var errParentGone = errors.New("stdin was closed")

// ended reports whether the supervisor was asked to end, which is no error.
func ended(ctx context.Context) bool { return ctx.Err() != nil }

// made lists what a control plane makes in its folder, besides logs.
var made = []string{"pki", "etcd", "admin.kubeconfig", "kwok.yaml", "kwok.kubeconfig", "kube-scheduler.yaml", "kube-scheduler.kubeconfig", "kube-controller-manager.kubeconfig", "audit-policy.yaml"}

// prepare locks the folder, clears what an earlier run may have left in it and
// writes keys and configuration.
func prepare(o options, program func(string) string) (c *cluster, release func(), err error) {
	logs := filepath.Join(o.dir, "logs")
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("creating the cluster's folder: %w", err)
	}
	lockFile := filepath.Join(o.dir, "lock")
	lock, err := os.OpenFile(lockFile, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("locking %s: %w", o.dir, err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, nil, fmt.Errorf("another control plane runs in %s", o.dir)
	}
	release = func() {
		os.Remove(lockFile)
		lock.Close()
		os.Remove(o.dir) // only if nothing is left in it
	}
	c = &cluster{options: o, program: program, crashed: make(chan error, 1), running: map[string]*process{}}
	unlock := release
	release = func() {
		for _, claim := range c.claims {
			claim.Close()
		}
		unlock()
	}
	c.removeData()
	if err := errors.Join(os.RemoveAll(logs), os.MkdirAll(logs, 0o755)); err != nil {
		release()
		return nil, nil, fmt.Errorf("clearing the logs of an earlier run: %w", err)
	}
	if err := c.configure(); err != nil {
		c.remove()
		release()
		return nil, nil, err
	}
	return c, release, nil
}

// configure writes everything the programs read.
func (c *cluster) configure() error {
	p, err := c.choosePorts()
	if err != nil {
		return err
	}
	c.server = fmt.Sprintf("https://%s:%d", c.apiServerHost(), p.apiserver)
	keys, err := newPKI(c.path("pki"))
	if err != nil {
		return err
	}
	if err := errors.Join(keys.server("server", c.apiServerHost()), keys.client(kubeletClient, kubeletClient, "system:masters"), keys.signingKey("service-account")); err != nil {
		return err
	}
	// Each is known by a token: to verify a certificate with every request takes a twentieth of the API
	// server's time where kwok speaks for a hundred kubelets.
	var tokens strings.Builder
	for _, user := range []struct{ name, user, group string }{
		{"admin", "admin", "system:masters"},
		{"kube-controller-manager", "system:kube-controller-manager", ""},
		{"kube-scheduler", "system:kube-scheduler", ""},
		{"kwok", "kwok", "system:masters"}, // it speaks for every kubelet
	} {
		token := rand.Text()
		fmt.Fprintln(&tokens, strings.TrimSuffix(strings.Join([]string{token, user.user, user.name, user.group}, ","), ","))
		if err := c.writeKubeconfig(keys, user.name, token); err != nil {
			return err
		}
	}
	if err := os.WriteFile(keys.path(tokenFile), []byte(tokens.String()), 0o600); err != nil {
		return fmt.Errorf("writing the tokens: %w", err)
	}
	if err := c.writeFiles(); err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AddCert(keys.ca)
	pair, err := tls.LoadX509KeyPair(keys.path(kubeletClient+".crt"), keys.path(kubeletClient+".key"))
	if err != nil {
		return fmt.Errorf("loading the certificate of %s: %w", kubeletClient, err)
	}
	c.client = &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}, DisableKeepAlives: true},
	}
	c.components = slices.DeleteFunc(components(c.dir, p, c.options), func(x component) bool {
		return slices.Contains(c.without, x.name)
	})
	return nil
}

func (c *cluster) path(name string) string { return filepath.Join(c.dir, name) }

func (c *cluster) log(name string) string { return filepath.Join(c.dir, "logs", name+".log") }

func (c *cluster) writeFiles() error {
	scheduler := fmt.Sprintf(schedulerConfigFormat, c.path("kube-scheduler.kubeconfig"))
	if c.schedulerConfig != "" {
		extra, err := os.ReadFile(c.schedulerConfig)
		if err != nil {
			return fmt.Errorf("reading --scheduler-config: %w", err)
		}
		scheduler += string(extra)
	}
	for name, content := range map[string][]byte{
		"kwok.yaml":           stages,
		"kube-scheduler.yaml": []byte(scheduler),
		"audit-policy.yaml":   []byte(auditPolicy),
	} {
		if err := os.WriteFile(c.path(name), content, 0o600); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}

func (c *cluster) writeKubeconfig(keys *pki, name, token string) error {
	authority, err := os.ReadFile(keys.path("ca.crt"))
	if err != nil {
		return fmt.Errorf("writing the kubeconfig of %s: %w", name, err)
	}
	config := fmt.Sprintf(kubeconfigFormat, c.server, base64.StdEncoding.EncodeToString(authority), name, token, name)
	if err := os.WriteFile(c.path(name+".kubeconfig"), []byte(config), 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig of %s: %w", name, err)
	}
	return nil
}

// choosePorts finds free ports below those that the kernel hands out by itself:
// a component that is stopped for a while must find its port free again. They are taken
// for as long as this process lives, also while nobody listens: clusters that start at
// one moment would now and then choose the same.
func (c *cluster) choosePorts() (ports, error) {
	var p ports
	for _, port := range []*int{&p.etcd, &p.etcdPeer, &p.apiserver, &p.kcm, &p.scheduler, &p.kwok} {
		taken, err := c.takePort()
		if err != nil {
			return p, err
		}
		*port = taken
	}
	return p, nil
}

// takePort takes a port by a socket that bears its number as a name, in the abstract
// namespace, which leaves no file behind (unix(7)).
func (c *cluster) takePort() (int, error) {
	const first, last = 20000, 32000
	var err error
	for range 100 {
		port := first + mathrand.IntN(last-first)
		var claim, probe net.Listener
		if claim, err = net.Listen("unix", fmt.Sprintf("@windlass-controlplane-%d", port)); err != nil {
			continue
		}
		if probe, err = net.Listen("tcp4", fmt.Sprintf("%s:%d", loopback, port)); err != nil {
			claim.Close()
			continue
		}
		probe.Close()
		c.claims = append(c.claims, claim)
		return port, nil
	}
	return 0, fmt.Errorf("finding a free loopback port: %w", err)
}

// start starts all components and waits until the cluster is of use: storage,
// then the API server, then the rest together.
func (c *cluster) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.readyTimeout, fmt.Errorf("not ready within %s", c.readyTimeout))
	defer cancel()
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	go func() {
		select {
		case err := <-c.crashed:
			abort(err)
		case <-ctx.Done():
		}
	}()
	for _, x := range c.components[:2] {
		if err := c.startOne(ctx, x); err != nil {
			return err
		}
	}
	if err := c.startTogether(ctx, c.components[2:]); err != nil {
		return err
	}
	if slices.Contains(c.without, "kube-controller-manager") {
		return nil
	}
	// Until then no pod can be created.
	if err := c.await(ctx, nil, c.server+"/api/v1/namespaces/default/serviceaccounts/default"); err != nil {
		return fmt.Errorf("waiting for the default service account: %w\n%s", err, lastLines(c.log("kube-controller-manager"), 20))
	}
	return nil
}

// startTogether starts components at once and waits until all are well.
func (c *cluster) startTogether(ctx context.Context, all []component) error {
	results := make(chan error)
	for _, x := range all {
		go func() { results <- c.startOne(ctx, x) }()
	}
	var errs []error
	for range all {
		errs = append(errs, <-results)
	}
	return errors.Join(errs...)
}

// startOne starts one component and waits until it is well.
func (c *cluster) startOne(ctx context.Context, x component) error {
	p, err := startProcess(c.program(x.name), x.args, c.dir, c.log(x.name))
	if err != nil {
		return fmt.Errorf("starting %s: %w", x.name, err)
	}
	c.mu.Lock()
	c.running[x.name] = p
	c.mu.Unlock()
	go c.watch(x, p)
	if err := c.await(ctx, p, x.health); err != nil {
		return fmt.Errorf("starting %s: %w\nthe end of its log:\n%s", x.name, err, lastLines(c.log(x.name), 20))
	}
	return nil
}

// watch reports a component that ends without being asked to, unless that is how it
// takes an API server that was away.
func (c *cluster) watch(x component, p *process) {
	<-p.exited
	c.mu.Lock()
	unasked := c.running[x.name] == p
	forsaken := slices.Contains(elected, x.name) && (c.running[apiServer] == nil || time.Since(c.away) < forsakenFor)
	c.mu.Unlock()
	if !unasked {
		return
	}
	if forsaken {
		c.restart(x, p)
		return
	}
	c.crash(fmt.Errorf("%s ended by itself: %v\nthe end of its log:\n%s", x.name, p.err, lastLines(c.log(x.name), 20)))
}

// crash reports the first end that nobody asked for.
func (c *cluster) crash(err error) {
	select {
	case c.crashed <- err:
	default: // another one was first
	}
}

// await asks url until it answers 200, the process p (if any) ends, or ctx does.
func (c *cluster) await(ctx context.Context, p *process, url string) error {
	var exited <-chan struct{}
	if p != nil {
		exited = p.exited
	}
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	for {
		last := c.get(ctx, url)
		if last == nil {
			return nil
		}
		select {
		case <-exited:
			return fmt.Errorf("it ended: %w", p.err)
		case <-ctx.Done():
			return fmt.Errorf("%w; last answer: %w", context.Cause(ctx), last)
		case <-tick.C:
		}
	}
}

func (c *cluster) get(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, body)
	}
	return nil
}

func (c *cluster) ready(began time.Time) ready {
	pids := map[string]int{}
	c.mu.Lock()
	for name, p := range c.running {
		pids[name] = p.cmd.Process.Pid
	}
	c.mu.Unlock()
	return ready{
		Ready:      true,
		Kubeconfig: c.path("admin.kubeconfig"),
		Server:     c.server,
		CA:         c.path("pki/ca.crt"),
		CAKey:      c.path("pki/ca.key"),
		Kubectl:    c.program("kubectl"),
		Logs:       c.path("logs"),
		PIDs:       pids,
		Seconds:    time.Since(began).Seconds(),
	}
}

// take removes a component from those that should be running and returns it.
func (c *cluster) take(name string) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.running[name]
	delete(c.running, name)
	return p
}

// end kills every component, clients first. Nothing they hold is worth a clean
// end: the data goes with them.
func (c *cluster) end() {
	for _, x := range slices.Backward(c.components) {
		p := c.take(x.name)
		if p == nil {
			continue
		}
		if err := p.kill(); err != nil {
			fmt.Fprintf(os.Stderr, "controlplane: ending %s: %v\n", x.name, err)
		}
	}
}

// remove takes away what the control plane made in its folder.
func (c *cluster) remove() {
	c.removeData()
	if c.keepLogs {
		return
	}
	if err := os.RemoveAll(c.path("logs")); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane: removing the logs:", err)
	}
}

func (c *cluster) removeData() {
	for _, name := range made {
		if err := os.RemoveAll(c.path(name)); err != nil {
			fmt.Fprintf(os.Stderr, "controlplane: removing %s: %v\n", name, err)
		}
	}
}

package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakegrpc"
	"windlass.dev/windlass/e2e/machine"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
)

// Config says what world to start, and where.
type Config struct {
	Spec Spec
	// Programs come from Build.
	Programs Programs
	// Dir holds keys, data, kubeconfigs and logs. "" is a folder of its own that
	// Close removes; in a folder that is named, the logs stay.
	Dir string
	// Manifests is the folder that is applied with kubectl apply -k. "" is the
	// checkout's. It is not used if the spec wants no programs.
	Manifests string
	// Progress gets what a person who waits may want to read; nil discards it.
	Progress io.Writer
	// Log gets what the world itself does; nil discards it.
	Log *slog.Logger
}

// World is what Start has started.
type World struct {
	// Dir is where its files are.
	Dir string
	// Plane is the control plane; Admin and Client are ways into its API server
	// with all rights.
	Plane  *ControlPlane
	Admin  *rest.Config
	Client kubernetes.Interface
	// AWS is the fake cloud.
	AWS *fakeaws.Server
	// Provider is the external provider in front of it; nil where the scaler knows AWS.
	Provider *fakegrpc.Provider

	log       *slog.Logger
	temporary bool
	region    string
	templates []cloud.LaunchTemplate // those of the spec
	joiner    *joiner
	runner    runner
	hub       *machine.Hub  // the network of real machines
	yard      *machine.Yard // where they stand
	programs  *programs     // the runner, unless the machines are real
	// providerArgs are what the programs are told of Provider, by program.
	providerArgs map[string][]string
	cancel       context.CancelFunc
	work         sync.WaitGroup
	closing      sync.Once
	closed       error
}

// Access keys and secret that clients of the fake AWS use. It takes any: the programs'
// is held to their IAM policy, a person's and the stand-in's for Cluster Autoscaler may do
// everything.
const (
	accessKey = "AKIAIOSFODNN7EXAMPLE"
	// PersonKey is that of whoever types commands.
	PersonKey = "AKIAI44QH8DHBEXAMPLE"
	// AutoscalerKey tells its calls from ours.
	AutoscalerKey = "AKIACLUSTERAUTOSCALE"
	secretKey     = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
)

// systemNodes is how many nodes there are of no group, in a zone each: one for
// each replica of the scaler.
const systemNodes = 2

// Start starts a world. It returns when the control plane is ready, the cloud's
// first instances are on their way and the manifests are applied.
func Start(ctx context.Context, c Config) (*World, error) {
	w := &World{Dir: c.Dir, log: c.Log}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	if c.Progress == nil {
		c.Progress = io.Discard
	}
	if err := w.start(ctx, c); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *World) start(ctx context.Context, c Config) error {
	if err := w.makeDir(); err != nil {
		return err
	}
	if err := w.openHub(c); err != nil {
		return err
	}
	plane, err := startControlPlane(ctx, c.Programs.Supervisor, filepath.Join(w.Dir, "cluster"), c.Spec.controlPlane(), c.Progress)
	if err != nil {
		return err
	}
	w.Plane = plane
	if w.Admin, err = kube.Config(plane.Kubeconfig, "world", "e2e"); err != nil {
		return err
	}
	if w.Client, err = kubernetes.NewForConfig(w.Admin); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	// From here on the world lives until Close, not until the caller's context
	// ends: the end has an order.
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w.cancel = cancel
	if err := w.startCloud(background, c); err != nil {
		return err
	}
	if c.Spec.Machines == Real {
		return w.startReal(ctx, c)
	}
	if err := w.createSystemNodes(ctx); err != nil {
		return err
	}
	if c.Spec.NoPrograms {
		return nil
	}
	w.startPrograms(background, c)
	if len(c.Spec.Autoscaler) > 0 {
		if err := w.Apply(ctx, []byte(c.Spec.autoscaler())); err != nil {
			return fmt.Errorf("applying the stand-in for Cluster Autoscaler: %w", err)
		}
	}
	return w.applyManifests(ctx, c)
}

func (w *World) makeDir() error {
	if w.Dir == "" {
		dir, err := os.MkdirTemp("", "windlass-world-")
		if err != nil {
			return fmt.Errorf("making the world's folder: %w", err)
		}
		w.Dir, w.temporary = dir, true
	}
	dir, err := filepath.Abs(w.Dir)
	if err != nil {
		return fmt.Errorf("resolving the world's folder: %w", err)
	}
	w.Dir = dir
	if err := os.MkdirAll(filepath.Join(w.Dir, "logs"), 0o755); err != nil {
		return fmt.Errorf("making the world's folder: %w", err)
	}
	return nil
}

// startCloud starts the fake AWS, whose instances join as nodes.
func (w *World) startCloud(ctx context.Context, c Config) error {
	aws, err := fakeaws.Start(fakeaws.Config{Spec: c.Spec.discoverable(), Addr: c.Spec.awsAddress(), NoIMDS: c.Spec.NoIMDS, Log: w.log})
	if err != nil {
		return fmt.Errorf("starting the fake AWS: %w", err)
	}
	w.AWS = aws
	if err := w.Restrict(ctx); err != nil {
		return err
	}
	if err := w.readCloud(); err != nil {
		return err
	}
	w.joiner = newJoiner(w.Client, w.log)
	if c.Spec.Machines != Real {
		w.joiner.hardware = w.simulate(c)
	} else if w.joiner.hardware, err = w.makeReal(ctx, c); err != nil {
		return err
	}
	for _, group := range c.Spec.Elsewhere {
		w.JoinElsewhere(group, true)
	}
	if c.Spec.Provider {
		if err := w.startProvider(c); err != nil {
			return err
		}
	}
	aws.OnInstance(w.joiner.observe)
	w.work.Go(func() { w.joiner.run(ctx) })
	return nil
}

// simulate makes the hardware of simulated nodes, and what runs on them.
func (w *World) simulate(c Config) hardware {
	w.programs = newPrograms(w.Client, w.Plane, w.Dir, w.log)
	w.programs.imds = w.joiner.imds
	w.programs.agents = func(node string) bool {
		i, isInstance := w.joiner.instance(node) // of a fixed node there is nothing to hear
		return isInstance && !slices.Contains(c.Spec.NoAgents, i.Group)
	}
	w.runner = w.programs
	return &simulated{
		client: w.Client, region: w.region, groups: w.group, disk: w.disk, readyAt: c.Spec.readyAt, rented: c.Spec.Provider, nameless: w.joiner.isAnonymous,
		powerOff: w.programs.powerOff, powerOn: w.programs.powerOn,
	}
}

// readCloud notes what never changes in the cloud.
func (w *World) readCloud() error {
	return w.AWS.With(func(c *cloud.Cloud, _ time.Time) error {
		w.region, w.templates = c.Region(), c.Spec().LaunchTemplates
		return nil
	})
}

// group finds what a group was declared as.
func (w *World) group(name string) (cloud.Group, bool) {
	g, err := w.AWS.Group(name)
	return g.Spec, err == nil
}

// disk is the size of an instance's root volume in GiB.
func (w *World) disk(i cloud.Instance) int {
	const usual = 20
	if g, ok := w.group(i.Group); ok && g.VolumeGiB > 0 {
		return g.VolumeGiB
	}
	for _, t := range w.templates {
		if t.Name != i.LaunchTemplate || i.LaunchTemplateVersion < 1 || i.LaunchTemplateVersion > len(t.Versions) {
			continue
		}
		if volumes := t.Versions[i.LaunchTemplateVersion-1].Volumes; len(volumes) > 0 && volumes[0].SizeGiB > 0 {
			return volumes[0].SizeGiB
		}
	}
	return usual
}

func (w *World) createSystemNodes(ctx context.Context) error {
	for i := range systemNodes {
		n := systemNode(i, w.region, w.region+string(rune('a'+i)))
		if _, err := w.Client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating system node %s: %w", n.Name, err)
		}
	}
	return nil
}

func (w *World) startPrograms(ctx context.Context, c Config) {
	w.programs.binaries = map[string]string{contract.AppAgent: c.Programs.Agent, contract.AppScaler: c.Programs.Scaler, contract.AppClusterAutoscaler: c.Programs.Autoscaler}
	w.programs.extra = c.Spec.extras()
	for program, args := range w.providerArgs {
		extra := w.programs.extra[program]
		extra.Args = append(args, extra.Args...)
		w.programs.extra[program] = extra
	}
	w.programs.clocks = c.Programs.Clocks
	w.programs.aws = w.awsEnvironment()
	w.work.Go(func() { w.programs.run(ctx) })
}

func (w *World) applyManifests(ctx context.Context, c Config) error {
	manifests := c.Manifests
	if manifests == "" {
		root, err := Root(ctx)
		if err != nil {
			return err
		}
		manifests = filepath.Join(root, "manifests")
	}
	if overlay := c.Spec.overlay(); overlay != "" {
		var err error
		if manifests, err = w.overlaid(manifests, overlay); err != nil {
			return err
		}
	}
	if _, err := w.Kubectl(ctx, nil, "apply", "-k", manifests); err != nil {
		return fmt.Errorf("applying the manifests: %w", err)
	}
	return nil
}

// overlaid is a folder of the same manifests with what an overlay says besides. To change
// them afterwards would let what they say act for a moment.
func (w *World) overlaid(manifests, overlay string) (string, error) {
	dir, err := filepath.EvalSymlinks(w.Dir)
	if err != nil {
		return "", fmt.Errorf("resolving the world's folder: %w", err)
	}
	dir = filepath.Join(dir, "manifests")
	base, err := filepath.Rel(dir, manifests)
	if err != nil {
		return "", fmt.Errorf("finding the way to the manifests: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making a folder of manifests: %w", err)
	}
	text := fmt.Sprintf("resources: [%s]\n%s", base, overlay)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("writing a folder of manifests: %w", err)
	}
	return dir, nil
}

// Namespace is where the manifests put both programs.
const Namespace = "windlass-system"

// KubectlCommand is kubectl as an administrator. It finds plugins in this folder, too, if
// there is one.
func (w *World) KubectlCommand(ctx context.Context, plugins string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, w.Plane.Kubectl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.Plane.Kubeconfig, "HOME="+w.Dir)
	if plugins != "" {
		cmd.Env = append(cmd.Env, "PATH="+plugins+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	return cmd
}

// Kubectl runs kubectl as an administrator and returns what it prints.
func (w *World) Kubectl(ctx context.Context, stdin []byte, args ...string) (string, error) {
	cmd := w.KubectlCommand(ctx, "", args...)
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := output(cmd)
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// Apply applies YAML as an administrator.
func (w *World) Apply(ctx context.Context, manifest []byte) error {
	_, err := w.Kubectl(ctx, manifest, "apply", "--server-side", "-f", "-")
	return err
}

// awsEnvironment leads any AWS SDK to the fake.
func (w *World) awsEnvironment() []string {
	return []string{
		"AWS_ENDPOINT_URL=" + w.AWS.URL(),
		"AWS_REGION=" + w.region,
		"AWS_DEFAULT_REGION=" + w.region,
		"AWS_ACCESS_KEY_ID=" + accessKey,
		"AWS_SECRET_ACCESS_KEY=" + secretKey,
		"AWS_EC2_METADATA_DISABLED=true", // no credentials are to be sought there
	}
}

// Environment leads kubectl, the aws command line, or another autoscaler into
// the world. IMDS addresses are those of the instances that are there now.
func (w *World) Environment() []string {
	env := append([]string{"KUBECONFIG=" + w.Plane.Kubeconfig, "KUBECTL=" + w.Plane.Kubectl}, w.awsEnvironment()...)
	env = append(env, "AWS_ACCESS_KEY_ID="+PersonKey, "FAKEAWS_CONTROL="+w.AWS.ControlURL())
	for _, i := range w.joiner.instances() {
		if i.IMDSAddr != "" {
			env = append(env, "IMDS_"+strings.ReplaceAll(i.ID, "-", "_")+"=http://"+i.IMDSAddr)
		}
	}
	return env
}

// Instance returns the instance behind a node.
func (w *World) Instance(node string) (cloud.Instance, bool) { return w.joiner.instance(node) }

// Scalers returns the names of the scaler's pods, sorted: replica n is the nth.
func (w *World) Scalers() []string { return w.podNames(contract.AppScaler) }

// Agents returns the names of the agents' pods, sorted.
func (w *World) Agents() []string { return w.podNames(contract.AppAgent) }

func (w *World) podNames(app string) []string {
	var names []string
	for _, p := range w.runner.list(app) {
		names = append(names, p.pod)
	}
	return names
}

// Autoscalers returns the names of the pods of the stand-in for Cluster Autoscaler.
func (w *World) Autoscalers() []string { return w.podNames(contract.AppClusterAutoscaler) }

// AgentOf returns the name of a node's agent pod.
func (w *World) AgentOf(node string) (string, error) {
	for _, p := range w.runner.list(contract.AppAgent) {
		if p.node == node {
			return p.pod, nil
		}
	}
	return "", fmt.Errorf("no agent runs on node %q", node)
}

// KillProgram ends the process of a pod with SIGKILL. On a simulated node it stays
// down, and the pod unready, until StartProgram; a real kubelet starts it again.
func (w *World) KillProgram(ctx context.Context, pod string) error { return w.runner.kill(ctx, pod) }

// ExhaustProgram has the kernel kill the process of a pod on a real machine for its
// memory limit.
func (w *World) ExhaustProgram(ctx context.Context, pod string) error {
	return w.runner.exhaust(ctx, pod)
}

// StartProgram runs the process of a pod again that was killed.
func (w *World) StartProgram(ctx context.Context, pod string) error { return w.runner.revive(ctx, pod) }

// Get asks the HTTP server of a pod's process, for its metrics or its health.
func (w *World) Get(ctx context.Context, pod, path string) (*http.Response, error) {
	return w.runner.get(ctx, pod, path)
}

// Verdicts is the URL where a scaler serves its verdicts: nodes that are no machines forward no
// port to their pods.
func (w *World) Verdicts(pod string) (string, error) {
	k, is := w.runner.(*programs)
	if !is {
		return "", errors.New("real machines forward ports: kubectl windlass plan wants no URL")
	}
	return k.verdicts(pod)
}

// Exits returns the programs' ends that nobody asked for: their crashes.
func (w *World) Exits() []Exit { return w.runner.ends() }

// Log returns what a pod's process has written so far, over all its runs.
func (w *World) Log(pod string) ([]byte, error) { return w.runner.log(pod) }

// Logs returns the log files of the programs and of the control plane.
func (w *World) Logs() ([]string, error) {
	var all []string
	for _, dir := range []string{"logs", "cluster/logs"} {
		files, err := filepath.Glob(filepath.Join(w.Dir, dir, "*.log"))
		if err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	return all, nil
}

// Close ends the world: the programs first, then the cloud, then the control
// plane. It may be called more than once.
func (w *World) Close() error {
	w.closing.Do(func() { w.closed = w.end() })
	return w.closed
}

func (w *World) end() error {
	var errs []error
	if w.cancel != nil {
		w.cancel()
	}
	if w.Provider != nil {
		w.Provider.Stop()
	}
	if w.AWS != nil {
		errs = append(errs, w.AWS.Close())
	}
	w.work.Wait()
	if w.yard != nil {
		errs = append(errs, w.yard.Close())
	}
	if w.Plane != nil {
		errs = append(errs, w.Plane.close())
	}
	if w.temporary {
		errs = append(errs, os.RemoveAll(w.Dir))
	}
	return errors.Join(errs...)
}

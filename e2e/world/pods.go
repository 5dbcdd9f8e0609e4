package world

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"windlass.dev/windlass/pkg/contract"
)

// programs is the kubelet of those pods whose container is really run: the
// agent's, the scaler's and that of a stand-in for Cluster Autoscaler. kwok plays all other pods. A pod that is bound to a
// node and Running has a process with the command line and the environment of
// its manifest and the credentials of its service account, bound to that very
// pod; the process ends with the pod.
type programs struct {
	client   kubernetes.Interface
	plane    *ControlPlane
	dir      string            // a folder per pod, and logs
	binaries map[string]string // by value of the label app.kubernetes.io/name
	extra    map[string]Extra  // likewise
	imds     func(node string) (address string, ok bool)
	agents   func(node string) bool // whether agents run there
	aws      []string               // environment that leads to the fake AWS
	clocks   bool                   // those of scalers can be set
	logger   *slog.Logger

	mu    sync.Mutex
	pods  map[types.UID]*programPod
	off   map[string]bool // nodes whose machine is off
	exits []Exit
	wait  sync.WaitGroup
}

func newPrograms(client kubernetes.Interface, plane *ControlPlane, dir string, log *slog.Logger) *programs {
	return &programs{client: client, plane: plane, dir: dir, logger: log, pods: map[types.UID]*programPod{}, off: map[string]bool{}}
}

// Extra is what a world adds to a program's manifest.
type Extra struct {
	Args []string
	Env  []string // NAME=value
}

// programPod is one pod whose container is a process.
type programPod struct {
	pod     *corev1.Pod
	app     string
	metrics *Port // of its HTTP server, if it has one
	answers *Port // where a scaler serves its verdicts

	gone  atomic.Bool // the pod is deleted, or about to be
	runs  atomic.Pointer[Process]
	begun chan struct{} // closed when its first start was tried

	telling sync.Mutex   // one status at a time
	told    atomic.Int64 // how many there were to tell

	mu      sync.Mutex // one change at a time
	recipe  *recipe    // nil before the first start
	process *process   // the latest; one that was asked to end stays down until revive
	down    bool       // killed by name; not even a reboot starts it
}

// restartAfter is the pause before a program that ended by itself runs again.
// A kubelet starts with none and goes up to five minutes.
const restartAfter = time.Second

// run watches pods until ctx ends, and then ends all processes.
func (k *programs) run(ctx context.Context) {
	observe := func(pod *corev1.Pod) { k.observe(ctx, pod) }
	if err := followPods(ctx, k.client, observe, k.forget); err != nil {
		k.logger.Error("cannot follow the programs", "error", err)
		return
	}
	k.mu.Lock()
	pods := slices.Collect(maps.Values(k.pods))
	k.mu.Unlock()
	for _, p := range pods {
		k.forget(p.pod)
	}
	k.wait.Wait()
}

// observe starts the process of a pod that came to run, and asks it to end when
// the pod shall.
func (k *programs) observe(ctx context.Context, pod *corev1.Pod) {
	k.mu.Lock()
	p := k.pods[pod.UID]
	k.mu.Unlock()
	if p == nil {
		if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
			return
		}
		k.adopt(ctx, pod)
		return
	}
	if pod.DeletionTimestamp != nil && !p.gone.Swap(true) {
		k.wait.Go(func() { k.end(ctx, p) })
	}
}

// adopt begins to run the program of a pod.
func (k *programs) adopt(ctx context.Context, pod *corev1.Pod) {
	app := pod.Labels[contract.LabelAppName]
	if k.binaries[app] == "" {
		return
	}
	if app == contract.AppAgent && !k.agents(pod.Spec.NodeName) {
		return
	}
	p := &programPod{pod: pod, app: app, begun: make(chan struct{})}
	k.mu.Lock()
	k.pods[pod.UID] = p
	k.mu.Unlock()
	k.wait.Go(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		defer close(p.begun)
		if k.isOff(pod.Spec.NodeName) {
			return // it starts with the machine
		}
		if err := k.start(ctx, p); err != nil && ctx.Err() == nil {
			k.logger.Error("cannot run a program", "pod", pod.Name, "error", err)
		}
	})
}

// end gives a process the pod's grace period, and when it needed less, tells
// the API server so, as a kubelet does.
func (k *programs) end(ctx context.Context, p *programPod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil {
		return
	}
	p.process.asked = true
	grace := 30 * time.Second
	if s := p.pod.Spec.TerminationGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	if err := p.process.stop(ctx, grace); err != nil {
		k.logger.Error("cannot end a program", "pod", p.pod.Name, "error", err)
		return
	}
	now := int64(0)
	err := k.client.CoreV1().Pods(p.pod.Namespace).Delete(ctx, p.pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(p.pod.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
		k.logger.Warn("cannot finish the deletion of a pod", "pod", p.pod.Name, "error", err)
	}
}

// find returns the pods that satisfy a condition, in the order of their names.
func (k *programs) find(wanted func(*programPod) bool) []*programPod {
	k.mu.Lock()
	defer k.mu.Unlock()
	var found []*programPod
	for _, p := range k.pods {
		if wanted(p) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b *programPod) int { return cmp.Compare(a.pod.Name, b.pod.Name) })
	return found
}

// start runs the process. The caller holds p.mu.
func (k *programs) start(ctx context.Context, p *programPod) error {
	if p.gone.Load() {
		return errors.New("the pod is deleted")
	}
	cmd, err := k.command(ctx, p)
	if err != nil {
		return err
	}
	logFile, err := os.OpenFile(k.logFile(p.pod), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("opening its log: %w", err)
	}
	defer logFile.Close() // the child has its own copy
	cmd.Stdout, cmd.Stderr = logFile, logFile
	running, err := startProcess(cmd)
	if err != nil {
		return err
	}
	p.process = running
	now := &Process{Pod: p.pod.Name, App: p.app, Node: p.pod.Spec.NodeName, PID: running.cmd.Process.Pid, Started: time.Now(), MemoryLimit: p.pod.Spec.Containers[0].Resources.Limits.Memory().Value()}
	p.runs.Store(now)
	k.logger.Debug("program runs", "pod", now.Pod, "node", now.Node, "pid", now.PID)
	k.wait.Go(func() {
		<-running.exited
		p.runs.CompareAndSwap(now, nil)
		k.watch(ctx, p, running)
	})
	return nil
}

func (k *programs) logFile(pod *corev1.Pod) string {
	return filepath.Join(k.dir, "logs", pod.Name+".log")
}

// watch starts a process that has ended again if it did so by itself, as a kubelet does, and
// remembers that it did.
func (k *programs) watch(ctx context.Context, p *programPod, running *process) {
	p.mu.Lock()
	unasked := !running.asked && ctx.Err() == nil
	p.mu.Unlock()
	if !unasked {
		return
	}
	if p.app != contract.AppClusterAutoscaler { // that ends when it has lost its Lease
		k.mu.Lock()
		k.exits = append(k.exits, Exit{Pod: p.pod.Name, At: time.Now(), Err: running.err, Said: Tail(k.logFile(p.pod), 1)})
		k.mu.Unlock()
	}
	k.logger.Warn("a program ended by itself", "pod", p.pod.Name, "error", running.err, "log", Tail(k.logFile(p.pod), 5))
	k.setReady(ctx, p, false)
	select {
	case <-ctx.Done():
		return
	case <-time.After(restartAfter):
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if running.asked || p.gone.Load() || p.process != running {
		return
	}
	if err := k.start(ctx, p); err != nil {
		k.logger.Error("cannot run a program again", "pod", p.pod.Name, "error", err)
		return
	}
	k.setReady(ctx, p, true)
}

func (k *programs) list(app string) []placed {
	var all []placed
	for _, p := range k.find(func(p *programPod) bool { return p.app == app }) {
		all = append(all, placed{p.pod.Name, p.pod.Spec.NodeName})
	}
	return all
}

func (k *programs) named(pod string) (*programPod, error) {
	found := k.find(func(p *programPod) bool { return p.pod.Name == pod })
	if len(found) == 0 {
		return nil, fmt.Errorf("no program runs for pod %q", pod)
	}
	return found[0], nil
}

func (k *programs) log(pod string) ([]byte, error) {
	return os.ReadFile(filepath.Join(k.dir, "logs", pod+".log"))
}

func (k *programs) ends() []Exit {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.exits)
}

// kill ends a program with SIGKILL; it stays down until revive.
func (k *programs) kill(ctx context.Context, pod string) error {
	p, err := k.named(pod)
	if err != nil {
		return err
	}
	<-p.begun
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil || !p.process.running() {
		return fmt.Errorf("the program of pod %s is not running", p.pod.Name)
	}
	p.process.asked, p.down = true, true
	if err := p.process.kill(); err != nil {
		return fmt.Errorf("killing the program of pod %s: %w", p.pod.Name, err)
	}
	k.setReady(ctx, p, false)
	return nil
}

// revive runs a program again that was killed.
func (k *programs) revive(ctx context.Context, pod string) error {
	p, err := k.named(pod)
	if err != nil {
		return err
	}
	<-p.begun
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process != nil && p.process.running() {
		return fmt.Errorf("the program of pod %s is running already", p.pod.Name)
	}
	if k.isOff(p.pod.Spec.NodeName) {
		return fmt.Errorf("the program of pod %s cannot run: the machine is off", p.pod.Name)
	}
	p.down = false
	if err := k.start(ctx, p); err != nil {
		return fmt.Errorf("starting the program of pod %s: %w", p.pod.Name, err)
	}
	k.setReady(ctx, p, true)
	return nil
}

func (k *programs) exhaust(context.Context, string) error {
	return errors.New("a process of this host has no memory limit; real machines are wanted")
}

// recipe is what a pod's process is started with, again and again.
type recipe struct {
	args, env []string
	dir       string
}

// command is the process of a pod's container. What it needs is asked of the API
// server once: a kubelet, too, starts a container again while that is away.
func (k *programs) command(ctx context.Context, p *programPod) (*exec.Cmd, error) {
	if p.recipe == nil {
		r, err := k.prepare(ctx, p)
		if err != nil {
			return nil, err
		}
		p.recipe = r
	}
	cmd := exec.Command(k.binaries[p.app], p.recipe.args...)
	cmd.Dir, cmd.Env = p.recipe.dir, slices.Clone(p.recipe.env)
	return cmd, nil
}

// prepare makes the command line and the environment of a pod's container.
func (k *programs) prepare(ctx context.Context, p *programPod) (*recipe, error) {
	container := p.pod.Spec.Containers[0]
	kubeconfig, err := k.credentials(ctx, p.pod)
	if err != nil {
		return nil, err
	}
	env, err := k.environment(ctx, p.pod, container)
	if err != nil {
		return nil, err
	}
	extra := k.extra[p.app]
	args := []string{}
	for _, arg := range slices.Concat(container.Command, container.Args) {
		args = append(args, expand(arg, env))
	}
	args = append(args, "--kubeconfig="+kubeconfig)
	if hasFlag(args, "metrics-address") {
		// Pods have an address each, processes share this host's.
		for _, port := range []**Port{&p.metrics, &p.answers} {
			if *port != nil {
				continue
			}
			if *port, err = TakePort(); err != nil {
				return nil, err
			}
		}
		args = append(args, "--metrics-address="+p.metrics.Address(), fmt.Sprintf("--verdicts-port=%d", p.answers.Number))
	}
	args = append(args, extra.Args...)
	r := &recipe{args: args, dir: filepath.Dir(kubeconfig)}
	for name, value := range env {
		r.env = append(r.env, name+"="+value)
	}
	slices.Sort(r.env)
	r.env = append(r.env, "HOME="+r.dir)
	if address, ok := k.imds(p.pod.Spec.NodeName); ok {
		r.env = append(r.env, "AWS_EC2_METADATA_SERVICE_ENDPOINT=http://"+address)
	}
	switch p.app {
	case contract.AppScaler:
		r.env = append(r.env, k.aws...)
	case contract.AppClusterAutoscaler:
		r.env = append(append(r.env, k.aws...), "AWS_ACCESS_KEY_ID="+AutoscalerKey)
	}
	if p.app == contract.AppScaler && k.clocks {
		if err := k.setClock(p.pod.Name, 0); err != nil {
			return nil, err
		}
		r.env = append(r.env, clockFile+"="+k.clockOf(p.pod.Name))
	}
	r.env = append(r.env, extra.Env...)
	return r, nil
}

func hasFlag(args []string, name string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		return a == "--"+name || strings.HasPrefix(a, "--"+name+"=")
	})
}

// tokenLife is longer than any world's.
const tokenLife = 7 * 24 * time.Hour

// credentials writes a kubeconfig with a token of the pod's service account
// that is bound to the pod: what a projected token volume would hold.
func (k *programs) credentials(ctx context.Context, pod *corev1.Pod) (file string, err error) {
	seconds := int64(tokenLife / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	answer, err := k.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for a token of service account %s: %w", pod.Spec.ServiceAccountName, err)
	}
	dir := filepath.Join(k.dir, "pods", pod.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the folder of pod %s: %w", pod.Name, err)
	}
	file = filepath.Join(dir, "kubeconfig")
	content := fmt.Sprintf(kubeconfigFormat, k.plane.Server, k.plane.CA, pod.Namespace, answer.Status.Token)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		return "", fmt.Errorf("writing the kubeconfig of pod %s: %w", pod.Name, err)
	}
	return file, nil
}

const kubeconfigFormat = `apiVersion: v1
kind: Config
clusters:
- name: world
  cluster:
    server: %s
    certificate-authority: %s
contexts:
- name: world
  context:
    cluster: world
    user: pod
    namespace: %s
current-context: world
users:
- name: pod
  user:
    token: %s
`

// environment resolves a container's envFrom and env as a kubelet does, as far
// as our manifests use it. A source that it does not know is an error: better
// than a program that runs without.
func (k *programs) environment(ctx context.Context, pod *corev1.Pod, container corev1.Container) (map[string]string, error) {
	env := map[string]string{}
	for _, source := range container.EnvFrom {
		if source.ConfigMapRef == nil {
			return nil, errors.New("envFrom without configMapRef is not supported")
		}
		config, err := k.client.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, source.ConfigMapRef.Name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("reading the environment from a ConfigMap: %w", err)
		}
		for name, value := range config.Data {
			env[source.Prefix+name] = value
		}
	}
	for _, v := range container.Env {
		value, err := valueOf(v, pod)
		if err != nil {
			return nil, err
		}
		env[v.Name] = expand(value, env)
	}
	return env, nil
}

func valueOf(v corev1.EnvVar, pod *corev1.Pod) (string, error) {
	if v.ValueFrom == nil {
		return v.Value, nil
	}
	if v.ValueFrom.FieldRef == nil {
		return "", fmt.Errorf("environment variable %s: only fieldRef is supported", v.Name)
	}
	switch path := v.ValueFrom.FieldRef.FieldPath; path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "status.hostIP":
		return pod.Status.HostIP, nil
	case "status.podIP":
		return pod.Status.PodIP, nil
	default:
		return "", fmt.Errorf("environment variable %s: field %s is not supported", v.Name, path)
	}
}

var reference = regexp.MustCompile(`\$\$|\$\([A-Za-z_][A-Za-z0-9_]*\)`)

// expand replaces $(NAME) as Kubernetes does: unknown names stay, $$ is $.
func expand(s string, env map[string]string) string {
	return reference.ReplaceAllStringFunc(s, func(r string) string {
		if r == "$$" {
			return "$"
		}
		value, known := env[r[2:len(r)-1]]
		if !known {
			return r
		}
		return value
	})
}

// get asks a program's own HTTP server.
func (k *programs) get(ctx context.Context, pod, path string) (*http.Response, error) {
	p, err := k.named(pod)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	port := p.metrics
	p.mu.Unlock()
	if port == nil {
		return nil, fmt.Errorf("the program of pod %s has no address", pod)
	}
	return httpGet(ctx, "http://"+port.Address()+path)
}

// verdicts is where a scaler serves its verdicts.
func (k *programs) verdicts(pod string) (url string, err error) {
	p, err := k.named(pod)
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answers == nil {
		return "", fmt.Errorf("the program of pod %s serves no verdicts", pod)
	}
	return "http://" + p.answers.Address(), nil
}

func httpGet(ctx context.Context, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(request)
}
